package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// elsewhere stands for all objects that name none of the configured environments. A name that somebody put on an object would
// let metrics grow without bound.
const elsewhere = "no configured environment"

// environmentShare is what one environment holds.
type environmentShare struct {
	name string
	ledger.Share
}

// environmentShares gives the shares in the order of the configuration: of every environment that holds or may hold something.
func environmentShares(contract lab.Contract, tally ledger.Tally) []environmentShare {
	var shares []environmentShare
	for _, name := range contract.Environments {
		shares = append(shares, environmentShare{name, tally.Environments[name]})
	}
	other := environmentShare{name: elsewhere}
	for name, share := range tally.Environments {
		if !contract.HasEnvironment(name) {
			other.Used += share.Used
			other.Reserved += share.Reserved
			other.UsedNeed.MilliCPU += share.UsedNeed.MilliCPU
			other.UsedNeed.Memory += share.UsedNeed.Memory
			other.ReservedNeed.MilliCPU += share.ReservedNeed.MilliCPU
			other.ReservedNeed.Memory += share.ReservedNeed.Memory
		}
	}
	if other.Used+other.Reserved > 0 {
		shares = append(shares, other)
	}
	return shares
}

// mentionedSessions is how many sessions a message names.
const mentionedSessions = 10

// sessionsOf lists an environment's sessions that hold places.
func sessionsOf(tally ledger.Tally, environment string) string {
	var names []string
	for _, tenant := range slices.SortedFunc(maps.Keys(tally.Sessions), func(a, b ledger.Tenant) int { return strings.Compare(a.Session, b.Session) }) {
		share := tally.Sessions[tenant]
		if tenant.Environment != environment || tenant.Session == "" || share.Used+share.Reserved == 0 {
			continue
		}
		names = append(names, tenant.Session)
	}
	if more := len(names) - mentionedSessions; more > 0 {
		names = append(names[:mentionedSessions], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
