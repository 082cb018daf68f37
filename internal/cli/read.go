package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/ttlab/vmwarden/internal/logs"
	"github.com/ttlab/vmwarden/internal/terminal"
)

// LogReader takes one log.
type LogReader interface {
	Read(name string, in io.Reader) error
}

// ReadLog hands a file, or stdin, to a reader, and shows on a terminal how far it is.
func ReadLog(ctx context.Context, reader LogReader, file string, stdin io.Reader, progress io.Writer) error {
	if file == Stdin {
		if isTerminal(stdin) {
			// How far it is would be written into what is typed.
			progress = nil
		}
		return reader.Read("stdin", newWatched(ctx, ReadStdin(ctx, stdin, os.Stderr), "stdin", 0, progress))
	}
	opened, err := os.Open(file)
	if err != nil {
		return FileError(file, err)
	}
	// It was only read: what closing says changes nothing.
	defer func() { _ = opened.Close() }()
	information, err := opened.Stat()
	if err != nil {
		return FileError(file, err)
	}
	if information.IsDir() {
		return FileError(file, errDirectory)
	}
	return reader.Read(file, newWatched(ctx, opened, terminal.Printable(file), information.Size(), progress))
}

// ProgressTerminal is stderr where that is a terminal, else nil.
func ProgressTerminal() io.Writer {
	if isTerminal(os.Stderr) {
		return os.Stderr
	}
	return nil
}

// NoticeBroken says on stderr which lines could not be read.
func NoticeBroken(program string, stderr io.Writer, inputs []logs.Broken) {
	for _, broken := range inputs {
		fmt.Fprintf(stderr, "%s: %s\n", program, terminal.Printable(broken.String()))
	}
}
