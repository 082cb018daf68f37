package lab

import (
	"strings"
	"testing"
)

func TestSessionIDFormats(t *testing.T) {
	for _, c := range []struct {
		format SessionIDFormat
		id     string
		valid  bool
	}{
		{SessionIDUUID, "a0000000-0000-4000-8000-000000000001", true},
		{SessionIDUUID, "A0000000-0000-4000-8000-000000000001", false},
		{SessionIDUUID, "a00000000000400080000000000000001", false},
		{SessionIDUUID, "a0000000-0000-4000-8000-000000000001\n", false},
		{SessionIDUUID, "", false},
		{SessionIDText, "lesson.7", true},
		{SessionIDText, "", false},
		{SessionIDText, "-x", false},
		{SessionIDText, strings.Repeat("x", 64), false},
	} {
		if err := c.format.Validate(c.id); (err == nil) != c.valid {
			t.Errorf("%s.Validate(%q) = %v, want valid = %t", c.format, c.id, err, c.valid)
		}
	}
}
