package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/ttlab/vmwarden/test/process"
)

// initialize makes the data directory and returns it with the user that the server has to run as; nil means our own.
func (s *Server) initialize(ctx context.Context, binaries string) (data string, credential *syscall.Credential, err error) {
	directory := s.group.Directory()
	data = filepath.Join(directory, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return "", nil, fmt.Errorf("making the data directory: %w", err)
	}
	password := filepath.Join(directory, "password")
	if err := os.WriteFile(password, []byte(s.password), 0o600); err != nil {
		return "", nil, fmt.Errorf("writing the superuser's password: %w", err)
	}
	if os.Getuid() == 0 {
		if credential, err = serverUser(); err != nil {
			return "", nil, err
		}
		// The user may pass through the group's directory and owns what is its own there.
		if err := errors.Join(
			os.Chmod(directory, 0o711),
			os.Chown(data, int(credential.Uid), int(credential.Gid)),
			os.Chown(password, int(credential.Uid), int(credential.Gid)),
		); err != nil {
			return "", nil, fmt.Errorf("giving the data directory to the server's user: %w", err)
		}
	}
	initialization, err := s.group.Start(ctx, process.Spec{
		Name: "initdb",
		Path: filepath.Join(binaries, "initdb"),
		Args: []string{
			"--pgdata=" + data,
			"--username=" + superuser,
			"--pwfile=" + password,
			"--auth=scram-sha-256",
			"--encoding=UTF8",
			"--no-locale",
			"--no-sync",
			"--no-instructions",
		},
		WorkingDirectory: directory,
		Credential:       credential,
	})
	if err != nil {
		return "", nil, err
	}
	select {
	case <-initialization.Exited():
	case <-ctx.Done():
		return "", nil, errors.Join(fmt.Errorf("waiting for initdb: %w", context.Cause(ctx)), initialization.Stop(0))
	}
	if err := initialization.Wait(); err != nil {
		return "", nil, fmt.Errorf("initdb: %w\n%s", err, initialization.LogTail(25))
	}
	return data, credential, nil
}

// serverUser is the user for a server that root starts: PostgreSQL refuses to run as root.
func serverUser() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidError := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidError := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(uidError, gidError); err != nil {
			return nil, fmt.Errorf("reading the ids of user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor a user nobody")
}

func serverSpec(binaries, data string, port int, credential *syscall.Credential) process.Spec {
	arguments := []string{"-D", data}
	for _, setting := range []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(port),
		// A socket's path must be short, and TCP is what production uses.
		"unix_socket_directories=",
		// Committed data need not survive a power cut, only a crash of the server: commits stay synchronous.
		"fsync=off",
		"full_page_writes=off",
		// In the data directory: POSIX shared memory would outlive a killed server in /dev/shm.
		"dynamic_shared_memory_type=mmap",
		"max_connections=200",
		"timezone=UTC",
		"log_timezone=UTC",
	} {
		arguments = append(arguments, "-c", setting)
	}
	return process.Spec{
		Name:             "postgres",
		Path:             filepath.Join(binaries, "postgres"),
		Args:             arguments,
		WorkingDirectory: data,
		Credential:       credential,
		// An immediate shutdown. By SIGKILL the server would leave its System V shared memory behind, and its backends, which
		// have sessions of their own, to themselves.
		DeathSignal: syscall.SIGQUIT,
	}
}
