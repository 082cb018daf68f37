package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// ParseMoment reads a time, or how long ago it is; the zero time for an empty value.
func ParseMoment(value string, now time.Time) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return t, nil
	}
	ago, err := time.ParseDuration(value)
	if days, found := strings.CutSuffix(value, "d"); found {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		ago = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || ago < 0 {
		return time.Time{}, errors.New("neither how long ago, such as 24h or 7d, nor a time such as 2026-11-29T15:00:00Z")
	}
	return now.Add(-ago), nil
}
