package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/ttlab/vmwarden/test/process"
)

// PgBouncer is a running PgBouncer in transaction mode before one user's connections to a server.
type PgBouncer struct {
	group          *process.Group
	port           int
	user, password string
}

// StartPgBouncer puts a PgBouncer before the server for one user, in transaction mode, with so few server connections that two
// transactions of a client meet different ones. The context bounds the start alone.
func (s *Server) StartPgBouncer(ctx context.Context, user, password string) (*PgBouncer, error) {
	// Debian puts it where only root's path leads.
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			return nil, fmt.Errorf("the program pgbouncer was not found: on Debian and Ubuntu run `apt-get install pgbouncer`: %w", err)
		}
	}
	group, err := process.NewGroup("", "vmwarden-pgbouncer")
	if err != nil {
		return nil, err
	}
	b := &PgBouncer{group: group, user: user, password: password}
	if err := b.start(ctx, path, s); err != nil {
		return nil, errors.Join(fmt.Errorf("starting PgBouncer: %w", err), b.Stop())
	}
	return b, nil
}

func (b *PgBouncer) start(ctx context.Context, path string, server *Server) error {
	var err error
	if b.port, err = process.FreePort(); err != nil {
		return err
	}
	directory := b.group.Directory()
	settings, users := filepath.Join(directory, "pgbouncer.ini"), filepath.Join(directory, "users")
	content := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = transaction
default_pool_size = 4
`, server.port, b.port, users)
	if err := os.WriteFile(settings, []byte(content), 0o600); err != nil {
		return fmt.Errorf("writing its settings: %w", err)
	}
	if err := os.WriteFile(users, fmt.Appendf(nil, "%q %q\n", b.user, b.password), 0o600); err != nil {
		return fmt.Errorf("writing its users: %w", err)
	}
	var credential *syscall.Credential
	if os.Getuid() == 0 {
		// It refuses to run as root as well.
		if credential, err = serverUser(); err != nil {
			return err
		}
		for _, name := range []string{directory, settings, users} {
			if err := os.Chown(name, int(credential.Uid), int(credential.Gid)); err != nil {
				return fmt.Errorf("giving its files to its user: %w", err)
			}
		}
	}
	running, err := b.group.Start(ctx, process.Spec{Name: "pgbouncer", Path: path, Args: []string{settings}, WorkingDirectory: directory, Credential: credential})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("%s passed", startTimeout))
	defer cancel()
	return running.AwaitReady(ctx, func(ctx context.Context) error {
		connection, err := pgx.Connect(ctx, b.URL("postgres"))
		if err != nil {
			return err
		}
		return connection.Close(ctx)
	})
}

// URL is how the user connects to a database through it.
func (b *PgBouncer) URL(database string) string {
	address := url.URL{
		Scheme: "postgres", User: url.UserPassword(b.user, b.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return address.String()
}

// Stop ends it and removes its files.
func (b *PgBouncer) Stop() error { return b.group.Close() }
