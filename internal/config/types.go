// Package config reads the one configuration file of vmwarden's binaries.
package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// APIVersion is the version of the configuration file that this build reads.
	APIVersion = "config.vmwarden.io/v1alpha1"
	// Kind is the kind of the configuration file.
	Kind = "WardenConfig"
)

// WardenConfig is the configuration file, mounted into both binaries from one ConfigMap. It holds no secret: the database
// is named by environment variables.
type WardenConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// Mode is Enforce (default), or Audit: everything is admitted and nothing written or deleted, and what would be is told.
	Mode Mode `json:"mode"`
	// VMNamespace is the namespace whose virtual machines are guarded.
	VMNamespace string `json:"vmNamespace"`
	// PodNamespaces are the namespaces of sessions that run as a Pod (runtime "pod").
	PodNamespaces []string `json:"podNamespaces,omitempty"`
	// Labels are the keys by which the platform marks its objects.
	Labels Labels `json:"labels"`
	// SessionIDFormat is UUID (default) or Text.
	SessionIDFormat string `json:"sessionIDFormat"`
	// Environments share the VM namespace; at least one.
	Environments []Environment `json:"environments"`
	// Caps bound how many virtual machines there may be.
	Caps Caps `json:"caps"`
	// Lifetimes bound how long a virtual machine may exist.
	Lifetimes Lifetimes `json:"lifetimes"`
	// TrustedControllers may change and delete every lab object: garbage collector, namespace controller, KubeVirt.
	TrustedControllers []ServiceAccount `json:"trustedControllers"`
	// Admins are bound by the caps and by the few rules whose breach helps nobody, such as GoldenWritable.
	Admins Admins `json:"admins"`
	// Messages are the texts of denials.
	Messages Messages `json:"messages"`
	// Database maps the sessions table of the environments' databases.
	Database Database `json:"database"`
	// Reaping tunes the pass of reapjob.
	Reaping Reaping `json:"reaping"`
	// Brakes stop a pass that finds more to delete than can be true.
	Brakes Brakes `json:"brakes"`
}

// Mode says whether anything is prevented or done.
type Mode string

const (
	// Enforce denies, stamps, links and deletes.
	Enforce Mode = "Enforce"
	// Audit only reports.
	Audit Mode = "Audit"
)

// Labels are label keys, and the value of the lab label.
type Labels struct {
	Lab         string `json:"lab"`
	LabValue    string `json:"labValue"`
	Session     string `json:"session"`
	Environment string `json:"environment"`
	Golden      string `json:"golden"`
}

// ServiceAccount names one ServiceAccount. Both parts are matched exactly.
type ServiceAccount struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Environment is one backend with one database and one reaper.
type Environment struct {
	// Name is the value of the environment label.
	Name string `json:"name"`
	// Backends are the ServiceAccounts that create this environment's sessions.
	Backends []ServiceAccount `json:"backends"`
	// Reaper is the ServiceAccount under which reapjob runs for this environment.
	Reaper *ServiceAccount `json:"reaper,omitempty"`
	// Cap is the greatest number of this environment's virtual machines; without it only the namespace's bounds them.
	Cap *int `json:"cap,omitempty"`
	// SessionsDatabase is false for an environment without a sessions table: its passes run the deadline direction alone.
	SessionsDatabase *bool `json:"sessionsDatabase,omitempty"`
}

// Lifetimes make the deadline: start + ceiling + deadlineGrace.
type Lifetimes struct {
	Ceiling       metav1.Duration `json:"ceiling"`
	DeadlineGrace metav1.Duration `json:"deadlineGrace"`
}

// Admins are matched by group or by user name.
type Admins struct {
	Groups []string `json:"groups,omitempty"`
	Users  []string `json:"users,omitempty"`
}

// Messages replace the built-in English texts of denials. Codes stay as they are.
type Messages struct {
	// Language is en (default), ja or ko.
	Language string `json:"language,omitempty"`
	// Templates are Go templates by code, over the language's.
	Templates map[string]string `json:"templates,omitempty"`
}

// Database maps the sessions table. All names are quoted as identifiers before they reach PostgreSQL.
type Database struct {
	// Schema is empty where the table is found by the search_path.
	Schema   string   `json:"schema,omitempty"`
	Table    string   `json:"table"`
	Columns  Columns  `json:"columns"`
	Statuses Statuses `json:"statuses"`
	Runtimes Runtimes `json:"runtimes"`
	// TimeZone is the zone, by PostgreSQL's name for it, of columns that are a timestamp without time zone. Without it such
	// columns are refused; columns with a time zone need none.
	TimeZone string `json:"timeZone,omitempty"`
}

// Columns are column names of the sessions table.
type Columns struct {
	ID         string `json:"id"`
	Runtime    string `json:"runtime"`
	Status     string `json:"status"`
	VMName     string `json:"vmName"`
	StartedAt  string `json:"startedAt"`
	ExpiresAt  string `json:"expiresAt"`
	FinishedAt string `json:"finishedAt"`
}

// Statuses are the words of the status column. A row whose word is none of these counts as live: it protects its objects.
type Statuses struct {
	// Starting and Running are the words of a live session.
	Starting string `json:"starting"`
	Running  string `json:"running"`
	// Expired and Failed are the words that reapjob writes.
	Expired string `json:"expired"`
	Failed  string `json:"failed"`
	// Ended are the other words of a session that is over.
	Ended []string `json:"ended"`
}

// Runtimes are the words of the runtime column.
type Runtimes struct {
	VM  string `json:"vm"`
	Pod string `json:"pod"`
}

// What a template of Reaping.SecretNames may hold.
const (
	MachinePlaceholder       = "{vm}"
	SessionPlaceholder       = "{session}"
	SessionPrefixPlaceholder = "{session8}"
	// SessionPrefixLength is how many characters of the id {session8} stands for.
	SessionPrefixLength = 8
)

// Reaping tunes a pass.
type Reaping struct {
	// OrphanMinimumAge is how old an object without a live session must be before it counts as an orphan.
	OrphanMinimumAge metav1.Duration `json:"orphanMinimumAge"`
	// StartupGrace is how long after its start a running session may be without a virtual machine before it counts as a ghost.
	StartupGrace metav1.Duration `json:"startupGrace"`
	// SecretNames are templates of the names that a session's Secrets have: where one without a session label has such a name, it
	// is deleted with its session. Each holds {vm} (the virtual machine's name), {session} (the id) or {session8} (its first eight
	// characters).
	SecretNames []string `json:"secretNames"`
	// Concurrency is how many items are worked on at once.
	Concurrency int32 `json:"concurrency"`
	// ItemTimeout bounds the work on one row or one object.
	ItemTimeout metav1.Duration `json:"itemTimeout"`
	// PassTimeout bounds a whole pass.
	PassTimeout metav1.Duration `json:"passTimeout"`
}

// Brakes hold a direction back in which more turns up than can be true.
type Brakes struct {
	Orphans Brake `json:"orphans"`
	Ghosts  Brake `json:"ghosts"`
	// ClockDifference is how far apart the clocks of database and API server may be.
	ClockDifference metav1.Duration `json:"clockDifference"`
}

// Brake holds when more than MaxCount, or, from ShareFloor sessions on, more than MaxShare of all are up.
type Brake struct {
	// MaxCount is the greatest number of sessions that may turn out lost in one pass.
	MaxCount int `json:"maxCount"`
	// MaxSharePercent is the greatest share of all sessions seen, in percent.
	MaxSharePercent int `json:"maxSharePercent"`
	// ShareFloor is the number of lost sessions from which the share counts: one of one is no sign of a wrong database.
	ShareFloor int `json:"shareFloor"`
}
