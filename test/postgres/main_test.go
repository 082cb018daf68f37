package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
)

// ownerVariable makes this test program another: the owner of a server, which is then killed.
const ownerVariable = "VMWARDEN_TEST_OWNER"

// shared is the server of most tests.
var shared *Server

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) != "" {
		if err := own(); err != nil {
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
	if shared, err = Start(context.Background(), Options{Progress: os.Stderr}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	return m.Run(), nil
}

// own says where its server is and keeps it until its input ends.
func own() error {
	server, err := Start(context.Background(), Options{})
	if err != nil {
		return err
	}
	fmt.Println(server.process.PID(), server.group.Directory())
	_, err = io.ReadAll(os.Stdin)
	return errors.Join(err, server.Stop())
}
