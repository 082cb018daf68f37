package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/ttlab/vmwarden/internal/logs"
)

// logReader takes one log.
type logReader interface {
	Read(name string, in io.Reader) error
}

// stdinName is how the command line names stdin.
const stdinName = "-"

// readLog hands a file, or stdin, to a reader, and shows on a terminal how far it is.
func readLog(ctx context.Context, reader logReader, file string, stdin io.Reader, terminal io.Writer) error {
	if file == stdinName {
		return reader.Read("stdin", newWatched(ctx, stdin, "stdin", 0, terminal))
	}
	opened, err := os.Open(file)
	if err != nil {
		return err
	}
	// It was only read: what closing says changes nothing.
	defer func() { _ = opened.Close() }()
	information, err := opened.Stat()
	if err != nil {
		return err
	}
	return reader.Read(file, newWatched(ctx, opened, file, information.Size(), terminal))
}

// progressTerminal is stderr where that is a terminal, else nil.
func progressTerminal() io.Writer {
	if term.IsTerminal(int(os.Stderr.Fd())) {
		return os.Stderr
	}
	return nil
}

// noticeBroken says on stderr which lines could not be read.
func noticeBroken(stderr io.Writer, inputs []logs.Broken) {
	for _, broken := range inputs {
		fmt.Fprintf(stderr, "webhook: %s\n", broken)
	}
}
