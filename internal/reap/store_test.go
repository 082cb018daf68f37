package reap

import (
	"strings"
	"testing"
)

func TestAURLThatCannotBeReadIsNotShown(t *testing.T) {
	for _, url := range []string{"postgres:/u:hushed@h/db", "host=h password hushed", "postgres://u:hushed@h:port/db", "password='hushed", "postgres://u:hu%zzhushed@h/db"} {
		_, err := parseDatabaseURL(url)
		if err == nil || strings.Contains(err.Error(), "hushed") || !strings.Contains(err.Error(), "reading the database URL: ") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
