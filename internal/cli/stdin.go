package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// Stdin is how a command line names stdin.
const Stdin = "-"

// ReadStdin gives what reads stdin until the context ends. Reading stdin itself is not ended by a signal: whoever forgot to name a file, and
// sits before a terminal, could not even leave with Ctrl-C. To them it is said what is waited for.
func ReadStdin(ctx context.Context, stdin io.Reader, stderr io.Writer) io.Reader {
	if isTerminal(stdin) {
		fmt.Fprintln(stderr, "reading what you type: end it with Ctrl-D on a line of its own, or leave with Ctrl-C and name a file")
	}
	reader, writer := io.Pipe()
	go func() {
		_, err := io.Copy(writer, stdin)
		writer.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { writer.CloseWithError(ctx.Err()) })
	return reader
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
