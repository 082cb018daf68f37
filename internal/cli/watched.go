package cli

import (
	"context"
	"fmt"
	"io"
)

// progressStep is how much is read between two words on how far it is, where the size is not known.
const progressStep = 16 << 20

// watched reads on until the context ends, and shows on a terminal how far it is.
type watched struct {
	// ctx is here since a reader is handed none.
	ctx  context.Context
	from io.Reader
	name string
	// size is 0 where it is not known.
	size, read, shown int64
	// terminal is nil where nothing is to be shown.
	terminal io.Writer
}

func newWatched(ctx context.Context, from io.Reader, name string, size int64, terminal io.Writer) *watched {
	return &watched{ctx: ctx, from: from, name: name, size: size, shown: -1, terminal: terminal}
}

func (w *watched) Read(buffer []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.from.Read(buffer)
	w.read += int64(n)
	w.show(err != nil)
	return n, err
}

// show writes over its own line, at most a hundred times a file, and takes the line away at the end.
func (w *watched) show(end bool) {
	if w.terminal == nil {
		return
	}
	const clearLine = "\r\x1b[K"
	if end {
		fmt.Fprint(w.terminal, clearLine)
		return
	}
	if w.size == 0 {
		if step := w.read / progressStep; step > w.shown {
			w.shown = step
			fmt.Fprintf(w.terminal, "%s%s: %d MiB", clearLine, w.name, w.read>>20)
		}
		return
	}
	if percent := w.read * 100 / w.size; percent > w.shown {
		w.shown = percent
		fmt.Fprintf(w.terminal, "%s%s: %d%% of %d MiB", clearLine, w.name, percent, w.size>>20)
	}
}
