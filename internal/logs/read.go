package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// errBroken is the error of a line that is no whole JSON object.
var errBroken = errors.New("not a whole JSON object")

// Broken is an input with lines that could not be read.
type Broken struct {
	Input string `json:"input"`
	Lines int    `json:"lines"`
	// First is the number of the first such line, Why what is the matter with it.
	First int    `json:"first"`
	Why   string `json:"why"`
}

func (b Broken) String() string {
	return fmt.Sprintf("%s: lines that could not be read: %d, the first is line %d: %s", b.Input, b.Lines, b.First, b.Why)
}

// Read reads one log of JSON objects, gzipped or not; name is what it is called in what is said of it. Every line that is a whole
// object is handed to take, without white space around it, valid until take returns. What take makes an error of counts as a line that
// could not be read. It gives the number of lines, and what was broken. An error is one of reading itself; what came before it was taken.
func Read(name string, in io.Reader, take func(line []byte) error) (lines int, broken Broken, err error) {
	return read(name, in, take, func([]byte) bool { return false })
}

// ReadAmong reads like Read a log in which other lines stand among the objects: what does not begin as an object is passed over.
func ReadAmong(name string, in io.Reader, take func(line []byte) error) (lines int, broken Broken, err error) {
	return read(name, in, take, func(line []byte) bool { return line[0] != '{' })
}

func read(name string, in io.Reader, take func([]byte) error, passOver func([]byte) bool) (lines int, broken Broken, err error) {
	broken.Input = name
	content, err := decompressed(in)
	if err != nil {
		return 0, broken, fmt.Errorf("reading %s: %w", name, err)
	}
	err = eachLine(content, func(number int, line []byte) {
		lines++
		if err := takeWhole(line, take, passOver); err != nil {
			if broken.Lines == 0 {
				broken.First, broken.Why = number, err.Error()
			}
			broken.Lines++
		}
	})
	if err != nil {
		return lines, broken, fmt.Errorf("reading %s: %w", name, err)
	}
	return lines, broken, nil
}

func takeWhole(line []byte, take func([]byte) error, passOver func([]byte) bool) error {
	if line == nil {
		return errTooLong
	}
	line = bytes.TrimSpace(line)
	if len(line) == 0 || passOver(line) {
		return nil
	}
	if line[0] != '{' || !json.Valid(line) {
		return errBroken
	}
	return take(line)
}
