package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxRead bounds how much of a log is read, in bytes.
const maxRead = 64 << 20

// logFile is the part of a log file that one process wrote: a restarted server appends to the file of the one before.
type logFile struct {
	file   *os.File
	path   string
	offset int64
}

func openLog(path string) (logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return logFile{}, fmt.Errorf("opening the log: %w", err)
	}
	offset, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return logFile{}, errors.Join(fmt.Errorf("finding the end of the log: %w", err), file.Close())
	}
	return logFile{file: file, path: path, offset: offset}, nil
}

func (l logFile) read() (text []byte, err error) {
	file, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return nil, err
	}
	// /dev/full, as the disk on which nothing can be written, has no end.
	return io.ReadAll(io.LimitReader(file, maxRead))
}

// LogTail is the last lines of what this process wrote, at most the given number. It is meant for error messages: a log that
// cannot be read is reported in its place.
func (p *Process) LogTail(lines int) string {
	text, err := p.log.read()
	if err != nil {
		return fmt.Sprintf("(the log cannot be read: %v)", err)
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// PortTaken tells whether the process said that somebody else listens on its port: the fate of a port that was free when it was
// chosen. Then it is started again with another.
func (p *Process) PortTaken() bool {
	text, err := p.log.read()
	return err == nil && bytes.Contains(bytes.ToLower(text), []byte("address already in use"))
}
