package main

import (
	"fmt"
	"io"

	"github.com/ttlab/vmwarden/internal/reap"
)

// progressOn shows on a terminal, in one line that is written over, how far a direction is. Without a terminal nothing is shown.
func progressOn(terminal io.Writer) func(reap.Direction, int, int) {
	if terminal == nil {
		return nil
	}
	return func(direction reap.Direction, finished, of int) {
		const clearLine = "\r\x1b[K"
		end := ""
		if finished == of {
			end = "\n"
		}
		// A terminal that is gone needs to be shown nothing.
		_, _ = fmt.Fprintf(terminal, "%s%s: %d of %d%s", clearLine, direction, finished, of, end)
	}
}
