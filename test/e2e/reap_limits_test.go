package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/ttlab/vmwarden/internal/reap"
	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/lab"
)

// impatient is the lab's configuration with short time limits.
var impatient = strings.Replace(lab.Config, "  itemTimeout: 5s\n", "  itemTimeout: 2s\n  passTimeout: 10s\n", 1)

// killAfter bounds a process that should have ended by itself, on a machine however loaded.
const killAfter = 50 * time.Second

// runToItsEnd runs reapjob and fails the test if it has to be killed.
func runToItsEnd(t *testing.T, configuration string) (reap.Document, lab.Run) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), killAfter)
	defer cancel()
	run, err := shared.ReapjobWith(ctx, "prod", shared.ReaperURL("prod"), configuration, "run", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("it did not end within its pass deadline:\n%s", run.Stderr)
	}
	var document reap.Document
	if err := json.Unmarshal([]byte(run.Stdout), &document); err != nil {
		t.Fatalf("it ended without a report: %v\n%s", err, run.Stderr)
	}
	return document, run
}

func TestAPassEndsWithAReportWhileTheDatabaseHangs(t *testing.T) {
	clean(t)
	session := sessionID('g', 1)
	open(t, "prod", session)
	insert(t, "prod", expired(session))
	if err := shared.Postgres.Pause(); err != nil {
		t.Fatal(err)
	}
	resume := func() {
		if err := shared.Postgres.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(resume)
	document, run := runToItsEnd(t, impatient)
	resume()
	expectExit(t, run, reap.ExitCouldNotRun)
	if got, want := holds(document), "expired Aborted, orphan Aborted, ghost Aborted"; got != want {
		t.Errorf("holds = %s, want %s", got, want)
	}
	expectLeft(t, session)
	expectStatus(t, "prod", session, "running")
}

func TestAPassEndsWithAReportWhileTheAPIServerHangs(t *testing.T) {
	clean(t)
	session := sessionID('g', 11)
	open(t, "prod", session)
	insert(t, "prod", expired(session))
	const component = "kube-apiserver"
	command, err := shared.ReapjobCommand(t.Context(), "prod", shared.ReaperURL("prod"), impatient, "run", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if err := shared.ControlPlane.Pause(component); err != nil {
		t.Fatal(err)
	}
	resume := func() {
		if err := shared.ControlPlane.Resume(component); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(resume)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	killer := time.AfterFunc(killAfter, func() { _ = command.Process.Kill() })
	err = command.Run()
	resume()
	if !killer.Stop() {
		t.Fatalf("it did not end within its pass deadline:\n%s", stderr.String())
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != reap.ExitCouldNotRun {
		t.Errorf("it ended with %v, want exit status %d\n%s", err, reap.ExitCouldNotRun, stderr.String())
	}
	var document reap.Document
	if err := json.Unmarshal(stdout.Bytes(), &document); err != nil {
		t.Fatalf("it ended without a report: %v\n%s", err, stderr.String())
	}
	if got, want := holds(document), "deadline Aborted, expired Aborted, orphan Aborted, ghost Aborted"; got != want {
		t.Errorf("holds = %s, want %s", got, want)
	}
	await(t, "the API server is back", func(ctx context.Context) error {
		_, err := clients(t).Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
	expectLeft(t, session)
	expectStatus(t, "prod", session, "running")
}

// TestSIGTERMFinishesTheItemAtHandAndBeginsNoOther stops a pass of one item at a time while it waits, with its first row locked, for
// a deletion that a webhook of the test's own holds up.
func TestSIGTERMFinishesTheItemAtHandAndBeginsNoOther(t *testing.T) {
	clean(t)
	sessions := []string{sessionID('g', 21), sessionID('g', 22), sessionID('g', 23)}
	for i, session := range sessions {
		open(t, "prod", session)
		row := expired(session)
		row.ends = -time.Duration(10-i) * time.Minute
		insert(t, "prod", row)
	}
	turnstile := obstructWithTurnstile(t, backend.Lesson{Session: sessions[0]}.VMName())
	configuration := strings.Replace(lab.Config, "reaping:\n", "reaping:\n  concurrency: 1\n", 1)
	command, err := shared.ReapjobCommand(t.Context(), "prod", shared.ReaperURL("prod"), configuration, "run", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	stderr := newWatched("told to stop")
	command.Stdout, command.Stderr = &stdout, stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // its exit status is looked at below
	}()
	reached := func(what string, event <-chan struct{}) {
		t.Helper()
		select {
		case <-event:
		case <-ended:
			t.Fatalf("it ended before %s\n%s", what, stderr.String())
		}
	}
	reached("the deletion arrived", turnstile.arrived)
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	reached("it said that it was told to stop", stderr.seen)
	turnstile.open()
	<-ended
	var document reap.Document
	if err := json.Unmarshal(stdout.Bytes(), &document); err != nil {
		t.Fatalf("it ended without a report: %v\n%s", err, stderr.String())
	}
	if got := command.ProcessState.ExitCode(); got != reap.ExitItemsFailed {
		t.Errorf("exit status %d, want %d\n%s", got, reap.ExitItemsFailed, stderr.String())
	}
	expectStatus(t, "prod", sessions[0], "expired")
	expectStatus(t, "prod", sessions[1], "running")
	expectStatus(t, "prod", sessions[2], "running")
	expectLeft(t, sessions[1], sessions[2])
	for _, item := range document.Items[1:] {
		if !strings.Contains(item.Detail, "told to stop") {
			t.Errorf("session %s: %s (%s), want that the pass was told to stop", item.Session, item.Result, item.Detail)
		}
	}
	// The status ConfigMap knows of the pass too.
	expectExit(t, showStatus(t, "prod"), reap.ExitItemsFailed)
}

// watched is output in which somebody waits for a word.
type watched struct {
	word string
	seen chan struct{}

	mutex sync.Mutex
	text  strings.Builder
	once  sync.Once
}

func newWatched(word string) *watched { return &watched{word: word, seen: make(chan struct{})} }

func (w *watched) Write(content []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.text.Write(content)
	if strings.Contains(w.text.String(), w.word) {
		w.once.Do(func() { close(w.seen) })
	}
	return len(content), nil
}

func (w *watched) String() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.text.String()
}

// TestAPassShowsProgressOnATerminalAlone runs a pass whose stderr is a terminal.
func TestAPassShowsProgressOnATerminalAlone(t *testing.T) {
	clean(t)
	for i := range 3 {
		insert(t, "prod", expired(sessionID('g', 30+i)))
	}
	ours, theirs := terminal(t)
	command, err := shared.ReapjobCommand(t.Context(), "prod", shared.ReaperURL("prod"), lab.Config, "run")
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = theirs
	shown := make(chan string)
	go func() {
		// Reading a terminal whose other side is closed ends with an error, which is its end.
		all, _ := io.ReadAll(ours)
		shown <- string(all)
	}()
	err = errors.Join(command.Run(), theirs.Close())
	if err != nil {
		t.Fatal(err)
	}
	text := <-shown
	expectMention(t, "the terminal", text, "expired: 1 of 3", "expired: 3 of 3")
	if strings.Contains(text, `"level":"info"`) {
		t.Errorf("the terminal shows the log between the progress:\n%s", text)
	}
	insert(t, "prod", expired(sessionID('g', 40)))
	_, run := reapjob(t, "prod", "run")
	if strings.Contains(run.Stderr, "1 of 1") {
		t.Errorf("progress was shown where there is no terminal:\n%s", run.Stderr)
	}
}

// terminal makes a pseudo-terminal: what is written to theirs is read from ours.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	descriptor := int(ours.Fd())
	if err := unix.IoctlSetPointerInt(descriptor, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(descriptor, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

func TestTheTimeZoneOfTheMachineMakesNoDifference(t *testing.T) {
	clean(t)
	ended, runs := sessionID('g', 51), sessionID('g', 52)
	for _, session := range []string{ended, runs} {
		open(t, "prod", session)
	}
	insert(t, "prod", expired(ended), running(runs))
	execute(t, "prod", `alter database prod set timezone = 'Asia/Seoul'`)
	t.Cleanup(func() { execute(t, "prod", `alter database prod reset timezone`) })
	command, err := shared.ReapjobCommand(t.Context(), "prod", shared.ReaperURL("prod"), lab.Config, "run")
	if err != nil {
		t.Fatal(err)
	}
	command.Env = append(command.Env, "TZ=America/Los_Angeles", "PGTZ=Pacific/Auckland")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	expectStatus(t, "prod", ended, "expired")
	expectStatus(t, "prod", runs, "running")
	expectLeft(t, runs)
}

func TestAReadOnlyDatabaseDeletesNothing(t *testing.T) {
	clean(t)
	ended, orphan := sessionID('g', 61), sessionID('g', 62)
	for _, session := range []string{ended, orphan} {
		open(t, "prod", session)
	}
	insert(t, "prod", expired(ended), running(sessionID('g', 63)))
	comeOfAge(t, orphan)
	execute(t, "prod", `alter database prod set default_transaction_read_only = on`)
	writable := func() {
		query(t, "prod", func(ctx context.Context, connection *pgx.Conn) error {
			// One after the other: the transaction that the first one is in stays read-only.
			for _, statement := range []string{`set default_transaction_read_only = off`, `alter database prod reset default_transaction_read_only`} {
				if _, err := connection.Exec(ctx, statement); err != nil {
					return err
				}
			}
			return nil
		})
	}
	t.Cleanup(writable)
	document, run := reapjob(t, "prod", "run")
	writable()
	expectExit(t, run, reap.ExitCouldNotRun)
	if got, want := holds(document), "expired Aborted, orphan Aborted, ghost Aborted"; got != want || len(document.Items) > 0 {
		t.Errorf("holds = %s, want %s; items %v", got, want, document.Items)
	}
	expectLeft(t, ended, orphan)
	expectStatus(t, "prod", ended, "running")
}
