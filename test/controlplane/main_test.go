package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// neighbourVariable makes this test program another, which starts a control plane of its own beside that of the tests.
const neighbourVariable = "VMWARDEN_TEST_NEIGHBOUR"

var (
	// shared is the control plane of most tests, and next a second one that was started at the same time by another process.
	shared *ControlPlane
	next   *neighbour
)

func TestMain(m *testing.M) {
	if os.Getenv(neighbourVariable) != "" {
		if err := beNeighbour(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	status, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(status)
}

func runTests(m *testing.M) (status int, err error) {
	if next, err = startNeighbour(); err != nil {
		return 0, err
	}
	// As a closure: a test may have put another in its place.
	defer func() { err = errors.Join(err, next.end()) }()
	if shared, err = Start(context.Background(), Options{Progress: os.Stderr}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	if err := next.await(); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// neighbour is another process with a control plane.
type neighbour struct {
	command   *exec.Cmd
	input     io.Closer
	output    io.Reader
	server    string
	directory string
}

func startNeighbour() (*neighbour, error) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), neighbourVariable+"=1")
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &neighbour{command: command, input: input, output: output}, command.Start()
}

// beNeighbour is the neighbour's side: it says where its control plane is and keeps it until its input ends.
func beNeighbour() error {
	c, err := Start(context.Background(), Options{})
	if err != nil {
		return err
	}
	fmt.Println(c.AdminConfig().Host, c.Dir())
	_, err = io.ReadAll(os.Stdin)
	return errors.Join(err, c.Stop())
}

func (n *neighbour) await() error {
	line, err := bufio.NewReader(n.output).ReadString('\n')
	if err != nil {
		return fmt.Errorf("starting a second control plane beside the first: %w", err)
	}
	n.server, n.directory, _ = strings.Cut(strings.TrimSpace(line), " ")
	return nil
}

// livingNeighbour is a new one if a test has killed the one before, as with -count=2.
func livingNeighbour(t *testing.T) *neighbour {
	t.Helper()
	if next.command.ProcessState == nil {
		return next
	}
	var err error
	if next, err = startNeighbour(); err != nil {
		t.Fatal(err)
	}
	if err := next.await(); err != nil {
		t.Fatal(err)
	}
	return next
}

// end lets the neighbour end well, unless a test has killed it.
func (n *neighbour) end() error {
	if n.command.ProcessState != nil {
		return nil
	}
	return errors.Join(n.input.Close(), n.command.Wait())
}
