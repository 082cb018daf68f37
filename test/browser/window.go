package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// patience bounds one answer of the browser, on a machine that has other things to do.
const patience = 30 * time.Second

// Window is a page in a chromium that takes keys. It is driven by the browser's own protocol, over a pipe.
type Window struct {
	t       *testing.T
	to      io.Writer
	from    *bufio.Reader
	session string
	next    int
}

// message is one of the protocol's.
type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Params    any             `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start opens a page in a browser that lives until the test ends.
func Start(t *testing.T, text string) *Window {
	t.Helper()
	program, file, arguments := prepare(t, text)
	arguments = append(arguments, "--remote-debugging-pipe")
	ours, theirs := pipes(t), pipes(t)
	command := exec.CommandContext(t.Context(), program, arguments...)
	// The browser reads descriptor 3 and writes descriptor 4.
	command.ExtraFiles = []*os.File{ours.read, theirs.write}
	command.WaitDelay = patience
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// By itself it ends its children first.
		_, _ = ours.write.WriteString(`{"id":0,"method":"Browser.close"}` + "\x00")
		timer := time.AfterFunc(patience, func() { _ = command.Process.Kill() })
		defer timer.Stop()
		_ = command.Wait()
	})
	_ = ours.read.Close()
	_ = theirs.write.Close()
	if err := theirs.read.SetReadDeadline(time.Now().Add(20 * patience)); err != nil {
		t.Fatal(err)
	}
	w := &Window{t: t, to: ours.write, from: bufio.NewReader(theirs.read)}
	var target struct{ TargetID string }
	w.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	w.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	w.session = attached.SessionID
	w.call("Page.enable", nil, nil)
	w.send("Page.navigate", map[string]any{"url": "file://" + file})
	w.await("Page.loadEventFired")
	return w
}

type pipe struct{ read, write *os.File }

func pipes(t *testing.T) pipe {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = read.Close()
		_ = write.Close()
	})
	return pipe{read, write}
}

// send sends a command and gives its number.
func (w *Window) send(method string, params any) int {
	w.t.Helper()
	w.next++
	text, err := json.Marshal(message{ID: w.next, Method: method, SessionID: w.session, Params: params})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.to.Write(append(text, 0)); err != nil {
		w.t.Fatalf("%s: %v", method, err)
	}
	return w.next
}

func (w *Window) receive() message {
	w.t.Helper()
	text, err := w.from.ReadBytes(0)
	if err != nil {
		w.t.Fatalf("the browser says nothing more: %v", err)
	}
	var m message
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *Window) await(event string) {
	w.t.Helper()
	for {
		if w.receive().Method == event {
			return
		}
	}
}

// call sends a command and reads its answer into result, if that is not nil.
func (w *Window) call(method string, params, result any) {
	w.t.Helper()
	id := w.send(method, params)
	for {
		m := w.receive()
		if m.ID != id {
			continue
		}
		if m.Error != nil {
			w.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result == nil {
			return
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			w.t.Fatal(err)
		}
		return
	}
}

// Text evaluates an expression in the page, as text.
func (w *Window) Text(expression string) string {
	w.t.Helper()
	var answer struct {
		Result struct {
			Value any `json:"value"`
		} `json:"result"`
	}
	// A page's own policy does not bind the protocol.
	w.call("Runtime.evaluate", map[string]any{"expression": "String(" + expression + ")"}, &answer)
	return fmt.Sprint(answer.Result.Value)
}

// expect waits until an expression gives what is wanted: the browser does what a key asks for when it gets to it, frame by frame.
func (w *Window) expect(what, expression string, wanted func(string) bool) {
	w.t.Helper()
	const frame = `new Promise(resolve => requestAnimationFrame(() => resolve(String(%s))))`
	end := time.Now().Add(patience)
	for {
		var answer struct {
			Result struct {
				Value string `json:"value"`
			} `json:"result"`
		}
		w.call("Runtime.evaluate", map[string]any{"expression": fmt.Sprintf(frame, expression), "awaitPromise": true}, &answer)
		if wanted(answer.Result.Value) {
			return
		}
		if time.Now().After(end) {
			w.t.Errorf("%s: it is %q", what, answer.Result.Value)
			return
		}
	}
}

func is(want string) func(string) bool { return func(got string) bool { return got == want } }

// Press presses a key by its name, such as Tab or Enter.
func (w *Window) Press(key string) {
	w.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13}
	down := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
	if key == "Enter" {
		down["text"] = "\r"
	}
	w.call("Input.dispatchKeyEvent", down, nil)
	w.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}, nil)
}

// Type types a text where the focus is.
func (w *Window) Type(text string) {
	w.t.Helper()
	for _, letter := range text {
		w.call("Input.dispatchKeyEvent", map[string]any{"type": "char", "text": string(letter)}, nil)
	}
}

// focused names what has the focus: an id, or a link's target.
const focused = `document.activeElement.id || document.activeElement.getAttribute('href') || document.activeElement.tagName`

// tabs presses Tab until the focus is there, and gives what it met on its way.
func (w *Window) tabs(to string) []string {
	w.t.Helper()
	var met []string
	for range 200 {
		w.Press("Tab")
		met = append(met, w.Text(focused))
		if met[len(met)-1] == to {
			return met
		}
	}
	w.t.Fatalf("Tab never reaches %s: %v", to, met)
	return nil
}

// ExpectKeyboard expects that a page of ours can be used by keys alone: the first Tab offers the way to the list, every chart takes the focus,
// so that it can be scrolled, the search does, and finds; and from an entry that is found Enter leads to the section that explains it.
func (w *Window) ExpectKeyboard(search, section string) {
	w.t.Helper()
	charts := w.Text(`document.querySelectorAll('.chart [tabindex="0"]').length`)
	met := w.tabs("words")
	if met[0] != "#list" {
		w.t.Errorf("the first Tab leads to %s, want the way to the list", met[0])
	}
	scrolled := len(met) - 1 - len(slices.DeleteFunc(slices.Clone(met[:len(met)-1]), func(name string) bool { return name == "DIV" }))
	if fmt.Sprint(scrolled) != charts {
		w.t.Errorf("%d charts of %s take the focus: %v", scrolled, charts, met)
	}
	w.Type(search)
	w.expect("the search finds one for "+search, `document.getElementById('told').textContent`, func(told string) bool { return strings.HasPrefix(told, "1 of ") })
	w.expect("what has the focus is marked", `getComputedStyle(document.activeElement).outlineStyle`, func(outline string) bool { return outline != "none" })
	w.tabs("#" + section)
	w.Press("Enter")
	w.expect("Enter leads to "+section, "location.hash", is("#"+section))
	w.expect("the search is kept", `document.getElementById('words').value`, is(search))
}

// ExpectPhone expects that nothing of the page reaches beyond the width of a phone.
func (w *Window) ExpectPhone() {
	w.t.Helper()
	const width = 360
	w.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 740, "deviceScaleFactor": 2, "mobile": true}, nil)
	w.expect(fmt.Sprintf("the page fits a phone of %d", width), "document.documentElement.scrollWidth", is(fmt.Sprint(width)))
}

// scratch is a directory for a browser. Its children outlive it by a moment and write on, so that one attempt to remove what they write may
// not do.
func scratch(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
			return os.RemoveAll(filepath.Join(directory, profile)) == nil, nil
		})
		if err != nil {
			t.Errorf("removing what the browser wrote: %v", err)
		}
	})
	return directory
}

// profile is where a browser keeps what it writes.
const profile = "profile"

// prepare writes the page to a file and gives the browser's arguments.
func prepare(t *testing.T, text string) (program, file string, arguments []string) {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed; make test-browser sees to it")
	}
	directory := scratch(t)
	file = filepath.Join(directory, "page.html")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments = []string{
		"--headless", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--user-data-dir=" + filepath.Join(directory, profile),
		// Nothing of a page that needs no network is to come from there.
		"--host-resolver-rules=MAP * ~NOTFOUND",
	}
	if os.Getuid() == 0 {
		// Chromium has no sandbox for root, and the page is our own.
		arguments = append(arguments, "--no-sandbox")
	}
	return program, file, arguments
}
