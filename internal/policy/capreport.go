package policy

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ttlab/vmwarden/internal/lab"
	"github.com/ttlab/vmwarden/internal/policy/ledger"
)

// CapReport is a count of the places for a person or a program.
type CapReport struct {
	Namespace    string            `json:"namespace"`
	VMs          PlacesReport      `json:"vms"`
	Environments []OfEnvironment   `json:"environments"`
	Sessions     []OfSession       `json:"sessions"`
	CPU          *BudgetReport     `json:"cpuMilli,omitempty"`
	Memory       *BudgetReport     `json:"memoryBytes,omitempty"`
	NextDeadline string            `json:"nextDeadline,omitempty"`
	Reservation  ReservationReport `json:"reservation"`
}

// PlacesReport is a number of places; the limit is missing where none is set.
type PlacesReport struct {
	Used     int  `json:"used"`
	Reserved int  `json:"reserved"`
	Limit    *int `json:"limit,omitempty"`
}

// OfEnvironment is the places of an environment.
type OfEnvironment struct {
	Environment string `json:"environment"`
	PlacesReport
}

// OfSession is the places of a session that holds some.
type OfSession struct {
	Environment string `json:"environment"`
	Session     string `json:"session"`
	PlacesReport
}

// BudgetReport is what launcher Pods request of a budget.
type BudgetReport struct {
	Used     int64 `json:"used"`
	Reserved int64 `json:"reserved"`
	Limit    int64 `json:"limit"`
}

// ReservationReport tells when the first reservation lapses; zero where nothing is reserved.
type ReservationReport struct {
	FirstLapseSeconds float64 `json:"firstLapseSeconds"`
}

// NewCapReport makes the report of a count.
func NewCapReport(contract lab.Contract, tally ledger.Tally) CapReport {
	places := func(share ledger.Share, limit *int) PlacesReport {
		return PlacesReport{share.Used, share.Reserved, limit}
	}
	report := CapReport{
		Namespace: contract.VMNamespace, VMs: places(tally.Total, new(tally.Limits.VMs)),
		Environments: []OfEnvironment{}, Sessions: []OfSession{},
		Reservation: ReservationReport{tally.Total.FirstLapse.Seconds()},
	}
	if !tally.Total.NextDeadline.IsZero() {
		report.NextDeadline = lab.FormatDeadline(tally.Total.NextDeadline)
	}
	for _, share := range environmentShares(contract, tally) {
		var limit *int
		if own, found := tally.Limits.Environments[share.name]; found {
			limit = &own
		}
		report.Environments = append(report.Environments, OfEnvironment{share.name, places(share.Share, limit)})
	}
	byName := func(a, b ledger.Tenant) int {
		return strings.Compare(a.Environment+"/"+a.Session, b.Environment+"/"+b.Session)
	}
	for _, tenant := range slices.SortedFunc(maps.Keys(tally.Sessions), byName) {
		share := tally.Sessions[tenant]
		if tenant.Session != "" && share.Used+share.Reserved > 0 {
			report.Sessions = append(report.Sessions, OfSession{tenant.Environment, tenant.Session, places(share, tally.Limits.Session)})
		}
	}
	if limit := tally.Limits.MilliCPU; limit != nil {
		report.CPU = &BudgetReport{tally.Total.UsedNeed.MilliCPU, tally.Total.ReservedNeed.MilliCPU, *limit}
	}
	if limit := tally.Limits.Memory; limit != nil {
		report.Memory = &BudgetReport{tally.Total.UsedNeed.Memory, tally.Total.ReservedNeed.Memory, *limit}
	}
	return report
}

// WriteTable writes the report for a person.
func (r CapReport) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "OF\tUSED\tRESERVED\tLIMIT")
	row := func(of string, places PlacesReport) {
		limit := "none"
		if places.Limit != nil {
			limit = fmt.Sprint(*places.Limit)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", of, places.Used, places.Reserved, limit)
	}
	row("namespace "+r.Namespace, r.VMs)
	for _, environment := range r.Environments {
		row("environment "+environment.Environment, environment.PlacesReport)
	}
	for _, session := range r.Sessions {
		row("session "+session.Environment+"/"+session.Session, session.PlacesReport)
	}
	budget := func(of string, b *BudgetReport, amount func(int64) string) {
		if b != nil {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", of, amount(b.Used), amount(b.Reserved), amount(b.Limit))
		}
	}
	budget("CPU requests", r.CPU, cpus)
	budget("memory requests", r.Memory, gibibytes)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	if r.NextDeadline != "" {
		fmt.Fprintf(w, "\nThe next deadline is %s.\n", r.NextDeadline)
	}
	if r.Reservation.FirstLapseSeconds > 0 {
		fmt.Fprintf(w, "A reservation whose create fails lapses in %s at most.\n",
			rounded(time.Duration(r.Reservation.FirstLapseSeconds*float64(time.Second))))
	}
	return nil
}
