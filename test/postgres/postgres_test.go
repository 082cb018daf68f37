package postgres

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"k8s.io/apimachinery/pkg/util/wait"
)

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The context of a test has ended when it is cleaned up. A test may have broken the connection.
		_ = connection.Close(context.Background())
	})
	return connection
}

func execute(t *testing.T, connection *pgx.Conn, statement string) {
	t.Helper()
	if _, err := connection.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestADatabaseIsMadeWhateverItsName(t *testing.T) {
	name := `lessons "prod"; --` + rand.Text()
	if err := shared.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := connect(t, shared.URL(name)).QueryRow(t.Context(), "SELECT current_database()").Scan(&got); err != nil || got != name {
		t.Errorf("connected to %q (%v)", got, err)
	}
	if err := shared.CreateDatabase(t.Context(), name); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("making it again: %v", err)
	}
}

func TestAUserNeedsItsPassword(t *testing.T) {
	admin := connect(t, shared.URL("postgres"))
	execute(t, admin, "CREATE ROLE reaper LOGIN PASSWORD 'a/b@c'")
	defer execute(t, admin, "DROP ROLE reaper")
	var got string
	right := connect(t, shared.URLFor("postgres", "reaper", "a/b@c"))
	if err := right.QueryRow(t.Context(), "SELECT current_user").Scan(&got); err != nil || got != "reaper" {
		t.Errorf("connected as %q (%v)", got, err)
	}
	_, err := pgx.Connect(t.Context(), shared.URLFor("postgres", "reaper", "wrong"))
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "28P01" {
		t.Errorf("a wrong password gives %v, want invalid_password", err)
	}
}

func TestWhatWasCommittedSurvivesARestartOnTheSamePort(t *testing.T) {
	for _, paused := range []bool{false, true} {
		before := connect(t, shared.URL("postgres"))
		execute(t, before, "CREATE TABLE kept (id int); INSERT INTO kept VALUES (1)")
		if paused {
			if err := shared.Pause(); err != nil {
				t.Fatal(err)
			}
		}
		if err := shared.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := before.Ping(t.Context()); err == nil {
			t.Error("a connection outlived the server")
		}
		execute(t, connect(t, shared.URL("postgres")), "DELETE FROM kept; DROP TABLE kept")
	}
}

func TestAPausedServerKeepsItsConnectionsAndAnswersNone(t *testing.T) {
	connection := connect(t, shared.URL("postgres"))
	if err := shared.Pause(); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() { answer <- connection.Ping(t.Context()) }()

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := pgx.Connect(ctx, shared.URL("postgres")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused server answers a new connection: %v", err)
	}
	select {
	case err := <-answer:
		t.Errorf("a paused server answers an old connection: %v", err)
	default:
	}
	if err := shared.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil {
		t.Errorf("the old connection after the pause: %v", err)
	}
}

func TestNothingOutlivesAKilledOwner(t *testing.T) {
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"=1")
	owner.Stderr = os.Stderr
	if _, err := owner.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, directory, _ := strings.Cut(strings.TrimSpace(line), " ")
	if len(sharedMemory(t, pid)) == 0 {
		t.Error("the server has no shared memory: what is tested here does not happen any more")
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // It was killed.
	eventually(t, "its directory is gone", func() bool {
		_, err := os.Stat(directory)
		return errors.Is(err, os.ErrNotExist)
	})
	if _, err := os.Stat("/proc/" + pid + "/exe"); err == nil {
		t.Error("the server is still running")
	}
	if left := sharedMemory(t, pid); len(left) > 0 {
		t.Errorf("shared memory is left behind: %q", left)
	}
}

// sharedMemory are the System V segments that the process made.
func sharedMemory(t *testing.T, pid string) []string {
	t.Helper()
	table, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Skipf("the system does not tell of its shared memory: %v", err)
	}
	var segments []string
	for line := range strings.Lines(string(table)) {
		// key shmid perms size cpid …
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == pid {
			segments = append(segments, line)
		}
	}
	return segments
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return condition(), nil
	}); err != nil {
		t.Fatalf("a minute passed, and it is not so that %s", what)
	}
}

// fakeServer is a directory with programs that call themselves this version of PostgreSQL.
func fakeServer(t *testing.T, parent string, major int) string {
	t.Helper()
	directory := filepath.Join(parent, strconv.Itoa(major), "bin")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"initdb", "postgres"} {
		script := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + strconv.Itoa(major) + ".4 (Debian)'\n"
		if err := os.WriteFile(filepath.Join(directory, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestTheNewestServerIsFoundAndNoneTooOld(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(binariesVariable, "")
	parent := t.TempDir()
	pattern := filepath.Join(parent, "*", "bin")

	old := fakeServer(t, parent, 14)
	_, err := findBinaries(t.Context(), []string{pattern})
	if err == nil || !strings.Contains(err.Error(), "apt-get install postgresql") {
		t.Errorf("with version 14 alone: %v, want the package to install", err)
	}
	fakeServer(t, parent, 9)
	newest := fakeServer(t, parent, 17)
	inPath := fakeServer(t, parent, 15)
	if got, err := findBinaries(t.Context(), []string{pattern}); err != nil || got != newest {
		t.Errorf("got %s (%v), want %s", got, err, newest)
	}
	t.Setenv("PATH", old)
	if got, err := findBinaries(t.Context(), []string{pattern}); err != nil || got != newest {
		t.Errorf("with version 14 in PATH: %s (%v), want %s", got, err, newest)
	}
	t.Setenv("PATH", inPath)
	if got, err := findBinaries(t.Context(), []string{pattern}); err != nil || got != inPath {
		t.Errorf("with version 15 in PATH: %s (%v), want %s", got, err, inPath)
	}
	t.Setenv(binariesVariable, old)
	if _, err := findBinaries(t.Context(), []string{pattern}); err == nil || !strings.Contains(err.Error(), binariesVariable) {
		t.Errorf("with $%s set to version 14: %v, want that this is said", binariesVariable, err)
	}
}
