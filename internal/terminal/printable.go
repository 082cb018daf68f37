// Package terminal makes of what others wrote what a terminal shows and does not obey.
package terminal

import (
	"strconv"
	"strings"
	"unicode"
)

// Printable shows controls, and what turns the direction of writing around, as escapes: whoever names an object or signs in could else
// write on the auditor's screen.
func Printable(text string) string {
	if strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	var safe strings.Builder
	for _, r := range text {
		if unprintable(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			safe.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		safe.WriteRune(r)
	}
	return safe.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
