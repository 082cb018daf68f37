package denials

import (
	"slices"
	"time"
)

// Filter says which denials are wanted. What is empty wants all.
type Filter struct {
	// Since and Until bound the time: from Since on, up to but without Until.
	Since, Until time.Time
	// Codes, Environments, Requesters and Sessions each name what is wanted; a denial with several codes needs one of them.
	Codes, Environments, Requesters, Sessions []string
}

// wants tells whether a denial is one of those.
func (f Filter) wants(d *Denial) bool {
	if d.Time.Before(f.Since) || !f.Until.IsZero() && !d.Time.Before(f.Until) {
		return false
	}
	code := len(f.Codes) == 0 || slices.ContainsFunc(d.Codes, func(code string) bool { return slices.Contains(f.Codes, code) })
	return code && among(f.Environments, d.Environment) && among(f.Requesters, d.Requester) && among(f.Sessions, d.Session)
}

func among(wanted []string, value string) bool {
	return len(wanted) == 0 || slices.Contains(wanted, value)
}
