package denials

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ttlab/vmwarden/internal/policy"
)

// Report is what was found.
type Report struct {
	Denials []*Denial `json:"denials"`
	Read    Reading   `json:"read"`
}

// Group is a number of denials that have something in common.
type Group struct {
	// Name is what they have in common; empty for those that do not have it.
	Name string `json:"name"`
	// Denied were refused, WouldDeny only reported, in mode Audit.
	Denied    int `json:"denied"`
	WouldDeny int `json:"wouldDeny"`
	// WentThrough is how many of the denied were allowed later.
	WentThrough int `json:"wentThrough"`
}

// Total is how many there are.
func (g Group) Total() int { return g.Denied + g.WouldDeny }

// Groupings are what a report can be grouped by.
func Groupings() []string { return []string{"code", "environment", "requester", "day"} }

// Groups counts the denials by one of the Groupings: days in their order, all else by how many there are. A denial with several
// codes counts for each.
func (r Report) Groups(by string) []Group {
	counted := map[string]*Group{}
	for _, d := range r.Denials {
		for _, name := range d.names(by) {
			if counted[name] == nil {
				counted[name] = &Group{Name: name}
			}
			counted[name].count(d)
		}
	}
	groups := make([]Group, 0, len(counted))
	for _, group := range counted {
		groups = append(groups, *group)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		if by == "day" {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.Name, b.Name))
	})
	return groups
}

// Total counts all denials, each once.
func (r Report) Total() Group {
	var total Group
	for _, d := range r.Denials {
		total.count(d)
	}
	return total
}

func (g *Group) count(d *Denial) {
	if d.Decision == policy.ReportedWord {
		g.WouldDeny++
		return
	}
	g.Denied++
	if d.Later.State == LaterAllowed {
		g.WentThrough++
	}
}

func (d *Denial) names(by string) []string {
	switch by {
	case "environment":
		return []string{d.Environment}
	case "requester":
		return []string{d.Requester}
	case "day":
		return []string{d.Time.UTC().Format(time.DateOnly)}
	}
	// One code twice in a line is one code.
	codes := slices.Clone(d.Codes)
	slices.Sort(codes)
	return slices.Compact(codes)
}

// WriteJSON writes the report for programs; grouped by one of the Groupings, or with every denial where by is empty.
func (r Report) WriteJSON(out io.Writer, by string) error {
	var document any = r
	if by != "" {
		document = map[string]any{"groupBy": by, "groups": r.Groups(by), "total": r.Total(), "read": r.Read}
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Object names the object as kubectl does.
func (d *Denial) Object() string {
	name := strings.ToLower(d.Kind) + "/" + d.Name
	if d.Namespace != "" {
		name = d.Namespace + "/" + name
	}
	return name
}

// Became says in words what became of it.
func (d *Denial) Became() string {
	switch d.Later.State {
	case LaterAllowed:
		after := d.Later.At.Sub(d.Time)
		if after > time.Second {
			after = after.Round(time.Second)
		}
		return fmt.Sprintf("allowed %s later, at try %d", after.Round(time.Millisecond), d.Later.Retries+1)
	case LaterDenied:
		return fmt.Sprintf("tried %d more times, never allowed", d.Later.Retries)
	case LaterNotSeen:
		return "not seen again"
	case LaterAdmitted:
		return "admitted (mode Audit)"
	}
	return "not known"
}
