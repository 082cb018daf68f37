package ledger

import "time"

// Scope is what a limit is for.
type Scope string

// The scopes.
const (
	Namespace   Scope = "namespace"
	Environment Scope = "environment"
	Session     Scope = "session"
	CPU         Scope = "cpu"
	Memory      Scope = "memory"
	// Name is the number of different tenants whose creates of one name may be under way at the same time.
	Name Scope = "name"
)

// Verdict answers a Claim.
type Verdict struct {
	Granted bool
	// Shortages are all limits that the claim would have passed; none where it is granted.
	Shortages []Shortage
	// Last are the scopes in which the claim takes the last place.
	Last []Scope
	// Tally is what was counted without this claim.
	Tally Tally
}

// Shortage is a limit that a claim would pass. Its numbers are places, thousandths of a CPU or bytes, by its scope.
type Shortage struct {
	Scope Scope
	Limit int64
	// Used is held by objects that exist.
	Used int64
	// Reserved is held by virtual machines that were admitted and do not show yet.
	Reserved int64
	// Asked is what the claim adds.
	Asked int64
	// FirstLapse is how long the reservation in this scope that lapses first still lasts; zero where nothing is reserved.
	FirstLapse time.Duration
	// NextDeadline is the nearest deadline of an object in this scope; zero where none is known.
	NextDeadline time.Time
}

// OnlyReserved tells whether the claim would fit if all that is reserved came to nothing.
func (s Shortage) OnlyReserved() bool { return s.Used+s.Asked <= s.Limit }

// Share is what a namespace, an environment or a session holds.
type Share struct {
	// Used counts the places of objects that exist, Reserved those of virtual machines that were admitted and do not show yet.
	Used, Reserved         int
	UsedNeed, ReservedNeed Need
	// NextDeadline is the nearest deadline of an object that exists; zero where none is known.
	NextDeadline time.Time
	// FirstLapse is how long the reservation that lapses first still lasts; zero where nothing is reserved.
	FirstLapse time.Duration
}

func (s *Share) use(need Need, deadline time.Time) {
	s.Used++
	s.UsedNeed = s.UsedNeed.plus(need)
	if !deadline.IsZero() && (s.NextDeadline.IsZero() || deadline.Before(s.NextDeadline)) {
		s.NextDeadline = deadline
	}
}

func (s *Share) lapse(after time.Duration) {
	// A reservation that lapses this instant is one all the same.
	after = max(after, 1)
	if s.FirstLapse == 0 || after < s.FirstLapse {
		s.FirstLapse = after
	}
}

// Tally is a count of everything at one moment.
type Tally struct {
	Limits       Limits
	Total        Share
	Environments map[string]Share
	Sessions     map[Tenant]Share
}
