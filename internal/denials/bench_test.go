package denials

import (
	"io"
	"strings"
	"testing"
)

// repeated gives a text again and again, up to a length.
type repeated struct {
	text string
	left int64
	at   int
}

func (r *repeated) Read(buffer []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := copy(buffer, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	r.left -= int64(n)
	return n, nil
}

// BenchmarkAnAuditLog reads a log in which every fifth entry is of our decisions, most of them with a body of 4 KB.
func BenchmarkAnAuditLog(b *testing.B) {
	other := `{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"update","requestObject":{"items":[` +
		strings.Repeat(`{"name":"disk0","disk":{"bus":"virtio"}},`, 100) + `{}]}}` + "\n"
	text := strings.Repeat(other, 4) + audited(noon) + "\n"
	collector := NewCollector(Filter{}, DefaultLimit)
	b.SetBytes(int64(len(text)))
	if err := collector.Read("log", &repeated{text: text, left: int64(b.N) * int64(len(text))}); err != nil {
		b.Fatal(err)
	}
}
