package ledger

import (
	"maps"
	"slices"
	"time"
)

// maxTenants bounds how many tenants' creates of one name may be under way: each is an entry of the page, which has a bound of
// its own.
const maxTenants = 8

// count is what is taken of the limits, place by place.
type count struct {
	limits       Limits
	names        map[string]*holding
	total        Share
	environments map[string]*Share
	sessions     map[Tenant]*Share
}

// holding is what one name holds. A name stands for one object at a time, so it holds one place and the most that any of its
// objects needs; but where several tenants ask for it, each may be the one who gets it.
type holding struct {
	used, reserved         bool
	usedNeed, reservedNeed Need
	tenants                []Tenant
}

func (h *holding) need() Need { return h.usedNeed.most(h.reservedNeed) }

func (h *holding) holds(is func(Tenant) bool) bool { return slices.ContainsFunc(h.tenants, is) }

// newCount counts the occupants, and the reservations on top of them.
func newCount(limits Limits, occupants []Occupant, reservations []Reservation, now time.Time, reservation time.Duration) *count {
	c := &count{
		limits: limits, names: make(map[string]*holding, len(occupants)+len(reservations)),
		environments: map[string]*Share{}, sessions: map[Tenant]*Share{},
	}
	for _, occupant := range occupants {
		c.occupy(occupant)
	}
	for _, r := range reservations {
		for _, tenant := range r.Tenants {
			c.reserve(r.Name, tenant, r.Need, r.At.Add(reservation).Sub(now))
		}
	}
	return c
}

// occupy enters an object that exists. A second object of the name, an instance besides its virtual machine, raises the need. Where
// it is another tenant's, it is that of a virtual machine that is gone, under whose name a new one was made: it is what is left if
// the new one goes, so it holds its tenant's place too.
func (c *count) occupy(o Occupant) {
	if h, found := c.names[o.Name]; found {
		more := o.beyond(h.usedNeed)
		h.usedNeed = h.usedNeed.most(o.Need)
		c.each(h.tenants[0], func(s *Share) { s.UsedNeed = s.UsedNeed.plus(more) })
		if !h.holds(func(t Tenant) bool { return t.Environment == o.Environment }) {
			c.environment(o.Environment).use(o.Need, o.Deadline)
		}
		if !slices.Contains(h.tenants, o.Tenant) {
			c.session(o.Tenant).use(o.Need, o.Deadline)
			h.tenants = append(h.tenants, o.Tenant)
		}
		return
	}
	c.names[o.Name] = &holding{used: true, usedNeed: o.Need, tenants: []Tenant{o.Tenant}}
	c.each(o.Tenant, func(s *Share) { s.use(o.Need, o.Deadline) })
}

// reserve enters a tenant's reservation of a name, which may exist or be reserved already.
func (c *count) reserve(name string, tenant Tenant, need Need, lapse time.Duration) {
	h, found := c.names[name]
	if !found {
		h = &holding{}
		c.names[name] = h
	}
	more := need.beyond(h.need())
	h.reservedNeed = h.reservedNeed.most(need)
	if !h.used && !h.reserved {
		c.total.Reserved++
	}
	c.total.ReservedNeed = c.total.ReservedNeed.plus(more)
	if !h.holds(func(t Tenant) bool { return t.Environment == tenant.Environment }) {
		c.environment(tenant.Environment).Reserved++
	}
	if !slices.Contains(h.tenants, tenant) {
		c.session(tenant).Reserved++
		h.tenants = append(h.tenants, tenant)
	}
	c.environment(tenant.Environment).ReservedNeed = c.environment(tenant.Environment).ReservedNeed.plus(more)
	c.session(tenant).ReservedNeed = c.session(tenant).ReservedNeed.plus(more)
	h.reserved = true
	c.each(tenant, func(s *Share) { s.lapse(lapse) })
}

func (c *count) each(tenant Tenant, change func(*Share)) {
	change(&c.total)
	change(c.environment(tenant.Environment))
	change(c.session(tenant))
}

func (c *count) environment(name string) *Share {
	if c.environments[name] == nil {
		c.environments[name] = &Share{}
	}
	return c.environments[name]
}

func (c *count) session(tenant Tenant) *Share {
	if c.sessions[tenant] == nil {
		c.sessions[tenant] = &Share{}
	}
	return c.sessions[tenant]
}

// adds is what a claim would add: nothing where its name holds the place already, since then its create meets the other object
// and fails, or follows it.
type adds struct {
	place, environment, session int64
	need                        Need
	tenants                     int
}

func (c *count) adds(claim Claim) adds {
	h, found := c.names[claim.Name]
	if !found {
		return adds{place: 1, environment: 1, session: 1, need: claim.Need, tenants: 1}
	}
	a := adds{need: claim.beyond(h.need()), tenants: len(h.tenants)}
	if !h.holds(func(t Tenant) bool { return t.Environment == claim.Environment }) {
		a.environment = 1
	}
	if !slices.Contains(h.tenants, claim.Tenant) {
		a.session = 1
		a.tenants++
	}
	return a
}

// shortages are the limits that the claim would pass. What a limit was passed by before, a claim that adds nothing to it does not
// answer for: lowering a cap touches nothing that runs.
func (c *count) shortages(claim Claim) []Shortage {
	a := c.adds(claim)
	var short []Shortage
	check := func(scope Scope, share Share, limit, used, reserved, asked int64) {
		if asked > 0 && used+reserved+asked > limit {
			short = append(short, Shortage{
				Scope: scope, Limit: limit, Used: used, Reserved: reserved, Asked: asked,
				FirstLapse: share.FirstLapse, NextDeadline: share.NextDeadline,
			})
		}
	}
	places := func(scope Scope, share Share, limit int, asked int64) {
		check(scope, share, int64(limit), int64(share.Used), int64(share.Reserved), asked)
	}
	places(Namespace, c.total, c.limits.VMs, a.place)
	if limit, found := c.limits.Environments[claim.Environment]; found {
		places(Environment, *c.environment(claim.Environment), limit, a.environment)
	}
	if c.limits.Session != nil && claim.Session != "" {
		places(Session, *c.session(claim.Tenant), *c.limits.Session, a.session)
	}
	if limit := c.limits.MilliCPU; limit != nil {
		check(CPU, c.total, *limit, c.total.UsedNeed.MilliCPU, c.total.ReservedNeed.MilliCPU, a.need.MilliCPU)
	}
	if limit := c.limits.Memory; limit != nil {
		check(Memory, c.total, *limit, c.total.UsedNeed.Memory, c.total.ReservedNeed.Memory, a.need.Memory)
	}
	if a.tenants > maxTenants {
		short = append(short, Shortage{Scope: Name, Limit: maxTenants, Reserved: maxTenants, Asked: 1, FirstLapse: c.total.FirstLapse})
	}
	return short
}

// last are the scopes of which the claim takes the last place.
func (c *count) last(claim Claim) []Scope {
	a := c.adds(claim)
	var scopes []Scope
	if a.place > 0 && c.total.Used+c.total.Reserved+1 == c.limits.VMs {
		scopes = append(scopes, Namespace)
	}
	share := c.environment(claim.Environment)
	if limit, found := c.limits.Environments[claim.Environment]; found && a.environment > 0 && share.Used+share.Reserved+1 == limit {
		scopes = append(scopes, Environment)
	}
	return scopes
}

func (c *count) tally() Tally {
	t := Tally{Limits: c.limits, Total: c.total, Environments: map[string]Share{}, Sessions: map[Tenant]Share{}}
	for name, share := range maps.All(c.environments) {
		t.Environments[name] = *share
	}
	for tenant, share := range maps.All(c.sessions) {
		t.Sessions[tenant] = *share
	}
	return t
}
