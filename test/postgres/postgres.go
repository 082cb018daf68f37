// Package postgres runs a real PostgreSQL server of one's own for tests, on loopback, with data that is thrown away.
package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ttlab/vmwarden/test/process"
)

const (
	superuser = "postgres"
	// startTimeout is long for the sake of machines that compile at the same time.
	startTimeout = time.Minute
	// portTries is how often another port is tried when somebody took the one that had been free.
	portTries = 5
)

// Options change what Start starts. The zero value is a plain server.
type Options struct {
	// Progress is told what is being started; nil: nothing is said.
	Progress io.Writer
}

// Server is a running PostgreSQL server. Passwords are checked, by scram-sha-256, as in production.
type Server struct {
	group    *process.Group
	password string
	port     int
	spec     process.Spec
	process  *process.Process
}

// Start makes a new database cluster and serves it on a free port of 127.0.0.1. The context bounds the start alone. If the program
// ends without Stop, a watchdog ends the server and removes its files.
func Start(ctx context.Context, options Options) (*Server, error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	binaries, err := findBinaries(ctx, usualPlaces)
	if err != nil {
		return nil, err
	}
	group, err := process.NewGroup("", "vmwarden-postgres")
	if err != nil {
		return nil, err
	}
	s := &Server{group: group, password: rand.Text()}
	if err := s.start(ctx, binaries, options); err != nil {
		return nil, errors.Join(fmt.Errorf("starting PostgreSQL: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, binaries string, options Options) error {
	began := time.Now()
	data, credential, err := s.initialize(ctx, binaries)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		if s.port, err = process.FreePort(); err != nil {
			return err
		}
		s.spec = serverSpec(binaries, data, s.port, credential)
		err = s.run(ctx)
		if err == nil {
			fmt.Fprintf(options.Progress, "%6.2fs PostgreSQL is ready on port %d\n", time.Since(began).Seconds(), s.port)
			return nil
		}
		if try == portTries || s.process == nil || !s.process.PortTaken() {
			return err
		}
	}
}

// run starts the server and waits until it answers.
func (s *Server) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("%s passed", startTimeout))
	defer cancel()
	var err error
	if s.process, err = s.group.Start(ctx, s.spec); err != nil {
		return err
	}
	return s.process.AwaitReady(ctx, func(ctx context.Context) error {
		connection, err := pgx.Connect(ctx, s.URL(superuser))
		if err != nil {
			return err
		}
		return connection.Close(ctx)
	})
}

// Stop ends the server and removes its files. Stopping twice does nothing.
func (s *Server) Stop() error { return s.group.Close() }

// Restart is Kill and Revive.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Kill(); err != nil {
		return err
	}
	return s.Revive(ctx)
}

// Kill ends the server without a good-bye, as a crash would.
func (s *Server) Kill() error {
	// A paused server takes the first signal only after the second.
	if err := errors.Join(s.process.Signal(syscall.SIGQUIT), s.Resume()); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = s.process.Wait() // A server that is quit reports failure.
	return nil
}

// Revive starts a killed server again with the same data on the same port, and waits until it answers. What was committed is still
// there.
func (s *Server) Revive(ctx context.Context) error { return s.run(ctx) }

// CreateDatabase makes an empty database.
func (s *Server) CreateDatabase(ctx context.Context, name string) error {
	connection, err := pgx.Connect(ctx, s.URL(superuser))
	if err != nil {
		return fmt.Errorf("connecting to create database %s: %w", name, err)
	}
	_, err = connection.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	if err = errors.Join(err, connection.Close(ctx)); err != nil {
		return fmt.Errorf("creating database %s: %w", name, err)
	}
	return nil
}

// URL is how the superuser connects to a database. The database "postgres" is always there.
func (s *Server) URL(database string) string { return s.URLFor(database, superuser, s.password) }

// URLFor is how a user, whom the caller has created, connects to a database.
func (s *Server) URLFor(database, user, password string) string {
	address := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(user, password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return address.String()
}
