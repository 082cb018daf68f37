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
	// UID is the object that was admitted. It is empty where more than one create asked for the name.
	UID types.UID `json:"uid,omitempty"`
	// At is when the latest of them was admitted.
	At time.Time `json:"at"`
	// Tenants are those whose creates asked for the name, each once.
	Tenants []Tenant `json:"tenants"`
	// Need is the most that any of them needs.
	Need
}

// normalize gives the page the form that is written: a hand may have changed it.
func (p *Page) normalize() {
	byName := map[string]Reservation{}
	for _, r := range p.Reservations {
		if len(r.Tenants) == 0 {
			r.Tenants = []Tenant{{}}
		}
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

// merge makes one reservation of two of the same name. Where they are for different objects, it is not known which of them an
// object that is seen came from.
func merge(a, b Reservation) Reservation {
	if a.UID != b.UID {
		a.UID = ""
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

// dropSeen drops the reservations whose object the witness has seen.
func (p *Page) dropSeen(witness Witness) {
	p.Reservations = slices.DeleteFunc(slices.Clone(p.Reservations), func(r Reservation) bool {
		return r.UID != "" && witness.Seen(r.UID)
	})
}

// settle drops the reservations whose object is in the list, and those that lapsed. It tells whether it dated one anew.
func (p *Page) settle(occupants []Occupant, now time.Time, reservation time.Duration) (redated bool) {
	listed := make(map[types.UID]bool, len(occupants))
	for _, occupant := range occupants {
		listed[occupant.UID] = true
	}
	p.Reservations = slices.DeleteFunc(slices.Clone(p.Reservations), func(r Reservation) bool {
		return (r.UID != "" && listed[r.UID]) || now.Sub(r.At) > reservation
	})
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
	r := Reservation{Name: claim.Name, UID: claim.UID, At: now, Tenants: []Tenant{claim.Tenant}, Need: claim.Need}
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
		if r.UID != "" {
			known[r.UID] = r.Need
		}
	}
	return known
}
