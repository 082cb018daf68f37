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
}

// dropSeen drops the reservations whose object the witness has seen.
func (p *Page) dropSeen(witness Witness) {
	p.Reservations = slices.DeleteFunc(slices.Clone(p.Reservations), func(r Reservation) bool {
		return r.UID != "" && witness.Seen(r.UID)
	})
}

// settle drops the reservations whose object is in the list, and those that lapsed.
func (p *Page) settle(occupants []Occupant, now time.Time, reservation time.Duration) {
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
		}
	}
}

// reserve enters a granted claim.
func (p *Page) reserve(claim Claim, now time.Time) {
	i, found := slices.BinarySearchFunc(p.Reservations, claim.Name, func(r Reservation, name string) int {
		return strings.Compare(r.Name, name)
	})
	if !found {
		p.Reservations = slices.Insert(p.Reservations, i, Reservation{Name: claim.Name, UID: claim.UID, At: now})
		return
	}
	if p.Reservations[i].UID != claim.UID {
		p.Reservations[i].UID = ""
	}
	p.Reservations[i].At = now
}

// firstLapse is how long the reservation that ends first still lasts.
func (p *Page) firstLapse(now time.Time, reservation time.Duration) time.Duration {
	var first time.Duration
	for i, r := range p.Reservations {
		if left := r.At.Add(reservation).Sub(now); i == 0 || left < first {
			first = left
		}
	}
	return first
}

// places is the set of names that are taken.
type places struct {
	names map[string]bool
	used  int
}

func newPlaces(occupants []Occupant, reservations []Reservation) *places {
	p := &places{names: make(map[string]bool, len(occupants)+len(reservations)+1)}
	for _, occupant := range occupants {
		p.names[occupant.Name] = true
	}
	p.used = len(p.names)
	for _, r := range reservations {
		p.names[r.Name] = true
	}
	return p
}

func (p *places) reserved() int {
	return len(p.names) - p.used
}

// take grants the name if it holds a place already (the create will meet the other object of that name, and fail) or if
// there is one left.
func (p *places) take(name string, limit int, dryRun bool) bool {
	if p.names[name] {
		return true
	}
	if len(p.names) >= limit {
		return false
	}
	if !dryRun {
		p.names[name] = true
	}
	return true
}
