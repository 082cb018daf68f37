package status

// Directions are those in which a pass goes, in their order. A reader of many statuses that makes something lasting of them, as a
// metric is, goes by these words: what else a ConfigMap may name was not written by a reaper.
func Directions() []string { return []string{"deadline", "expired", "orphan", "ghost"} }

// Causes are those for which a direction is held back.
func Causes() []string { return []string{"Aborted", "Fenced", "Braked"} }

// ExitStatuses are those with which a pass ends that leaves a trace: wrong use (2) ends before there is a pass.
func ExitStatuses() []int { return []int{0, 1, 3, 4} }
