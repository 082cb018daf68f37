package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

var errDirectory = errors.New("is a directory; name the files in it")

// FileError is what is the matter with a file, said once: the system's own error names the file too. what is how the command line
// names it, such as "--old stored.yaml".
func FileError(what string, err error) error {
	if system, ok := errors.AsType[*fs.PathError](err); ok {
		err = system.Err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// ReadFile reads a file, or stdin, as a whole; flag is what it was named by.
func ReadFile(ctx context.Context, flag, file string, stdin io.Reader) ([]byte, error) {
	if file == Stdin {
		content, err := io.ReadAll(ReadStdin(ctx, stdin, os.Stderr))
		if err != nil {
			return nil, fmt.Errorf("%s %s: reading stdin: %w", flag, file, err)
		}
		return content, nil
	}
	if information, err := os.Stat(file); err == nil && information.IsDir() {
		return nil, FileError(flag+" "+file, errDirectory)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, FileError(flag+" "+file, err)
	}
	return content, nil
}
