package ledger

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Page is the ledger's content at one version.
type Page struct {
	// Version is what the page was read under: a resourceVersion, empty for a page that does not exist yet.
	Version string
	// Reservations are at most one for each name, ordered by name.
	Reservations []Reservation
}

// Reservation holds the place of a name for a virtual machine that was admitted and does not show in a list yet.
type Reservation struct {
	Name string `json:"name"`
	// Awaited are the objects that were admitted under the name and were not seen yet, each once.
	Awaited []types.UID `json:"awaited"`
	// Others is true where more were admitted than Awaited has room for: then nobody knows when all were seen.
	Others bool `json:"others,omitempty"`
	// At is when the latest of them was admitted.
	At time.Time `json:"at"`
	// Tenants are those whose creates asked for the name, each once.
	Tenants []Tenant `json:"tenants"`
	// Need is the most that any of them needs.
	Need
}

// maxAwaited bounds how many creates of one name are told apart: a client that hammers a name that exists must not fill the page.
const maxAwaited = 16

// normalize gives the page the form that is written: a hand may have changed it.
func (p *Page) normalize() {
	byName := map[string]Reservation{}
	for _, r := range p.Reservations {
		if len(r.Tenants) == 0 {
			r.Tenants = []Tenant{{}}
		}
		r.Others = r.Others || len(r.Awaited) == 0
		r.Need = Need{MilliCPU: max(r.MilliCPU, 0), Memory: max(r.Memory, 0)}
		if other, found := byName[r.Name]; found {
			r = merge(other, r)
		}
		byName[r.Name] = r
	}
	p.Reservations = p.Reservations[:0]
	for _, r := range byName {
		p.Reservations = append(p.Reservations, r)
	}
	slices.SortFunc(p.Reservations, func(a, b Reservation) int { return strings.Compare(a.Name, b.Name) })
}

// merge makes one reservation of two of the same name. It awaits the objects of both: while one may still come through, seeing
// another of them frees nothing.
func merge(a, b Reservation) Reservation {
	a.Others = a.Others || b.Others
	a.Awaited = slices.Clone(a.Awaited)
	for _, uid := range b.Awaited {
		switch {
		case slices.Contains(a.Awaited, uid):
		case len(a.Awaited) == maxAwaited:
			a.Others = true
		default:
			a.Awaited = append(a.Awaited, uid)
		}
	}
	if b.At.After(a.At) {
		a.At = b.At
	}
	a.Tenants = slices.Clone(a.Tenants)
	for _, tenant := range b.Tenants {
		if !slices.Contains(a.Tenants, tenant) {
			a.Tenants = append(a.Tenants, tenant)
		}
	}
	a.Need = a.most(b.Need)
	return a
}

// drop takes the objects that came to be off the reservations, and drops those that await no other.
func (p *Page) drop(cameToBe func(types.UID) bool) {
	left := make([]Reservation, 0, len(p.Reservations))
	for _, r := range p.Reservations {
		r.Awaited = slices.DeleteFunc(slices.Clone(r.Awaited), cameToBe)
		if len(r.Awaited) > 0 || r.Others {
			left = append(left, r)
		}
	}
	p.Reservations = left
}

// dropSeen drops what the witness has seen.
func (p *Page) dropSeen(witness Witness) { p.drop(witness.Seen) }

// settle drops what is in the list, and the reservations that lapsed. It tells whether it dated one anew.
func (p *Page) settle(occupants []Occupant, now time.Time, reservation time.Duration) (redated bool) {
	listed := make(map[types.UID]bool, len(occupants))
	for _, occupant := range occupants {
		listed[occupant.UID] = true
	}
	p.drop(func(uid types.UID) bool { return listed[uid] })
	p.Reservations = slices.DeleteFunc(p.Reservations, func(r Reservation) bool { return now.Sub(r.At) > reservation })
	for i, r := range p.Reservations {
		if r.At.Sub(now) > reservation {
			p.Reservations[i].At = now
			redated = true
		}
	}
	return redated
}

// reserve enters a granted claim.
func (p *Page) reserve(claim Claim, now time.Time) {
	r := Reservation{Name: claim.Name, Awaited: []types.UID{claim.UID}, At: now, Tenants: []Tenant{claim.Tenant}, Need: claim.Need}
	i, found := slices.BinarySearchFunc(p.Reservations, claim.Name, func(r Reservation, name string) int {
		return strings.Compare(r.Name, name)
	})
	if found {
		p.Reservations[i] = merge(p.Reservations[i], r)
		return
	}
	p.Reservations = slices.Insert(p.Reservations, i, r)
}

// needs are what the virtual machines need that are on the page with the UID of their one create.
func (p *Page) needs() map[types.UID]Need {
	known := make(map[types.UID]Need, len(p.Reservations))
	for _, r := range p.Reservations {
		if len(r.Awaited) == 1 && !r.Others {
			known[r.Awaited[0]] = r.Need
		}
	}
	return known
}
