// Package logs reads logs as they are handed in: a line at a time, gzipped or not, in bounded memory. It knows nothing of what the
// lines tell. Lines that cannot be read are counted.
package logs

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// MaxLine bounds a line in bytes. An audit entry holds at most the request and the answer, 3 MiB each by the API server's limits.
const MaxLine = 16 << 20

// bufferSize is how much is read at once.
const bufferSize = 256 << 10

// errTooLong is the error of a line that is longer than 16 MiB.
var errTooLong = fmt.Errorf("longer than %d MiB", MaxLine>>20)

// decompressed gives the content of a log that may be gzipped, as rotation leaves it: told by its first bytes, not its name.
func decompressed(in io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(in, bufferSize)
	start, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(start, []byte{0x1f, 0x8b}) {
		return buffered, nil
	}
	unzipped, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("unzipping: %w", err)
	}
	return unzipped, nil
}

// eachLine hands over every line, without its end, and counts from 1. A line that is too long comes as nil. The bytes are valid only
// until do returns.
func eachLine(in io.Reader, do func(number int, line []byte)) error {
	reader := bufio.NewReaderSize(in, bufferSize)
	var line []byte
	tooLong := false
	for number := 1; ; {
		part, err := reader.ReadSlice('\n')
		switch {
		case len(line)+len(part) > MaxLine:
			tooLong = true
			line = line[:0]
		case !tooLong:
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 || tooLong {
			if tooLong {
				line = nil
			}
			do(number, bytes.TrimSuffix(line, []byte("\n")))
		}
		number++
		line, tooLong = line[:0], false
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
