package checks

import "fmt"

// Repair says how a tool's command that repairs files ended. The checks afterwards report the remaining problems.
type Repair struct {
	Tool    string        `json:"tool"`
	Folder  string        `json:"folder,omitempty"` // where it ran; "" is the root
	Outcome RepairOutcome `json:"outcome"`
	Reason  string        `json:"reason,omitempty"` // of one that did not run to its end; it ends with the last line of the output
}

// RepairOutcome says whether a repair succeeded.
type RepairOutcome string

// The outcomes of repairs. After one that is unknown, files may be as before, repaired or half repaired.
const (
	RepairRan     RepairOutcome = "ran"
	RepairFailed  RepairOutcome = "failed"
	RepairUnknown RepairOutcome = "unknown"
)

// JudgeRepair decides how a repair ended, and why where it did not run to its end. A formatter leaves nothing to find, so that only a clean
// end is one; other tools end as their checks do if there is something that they cannot repair.
func JudgeRepair(x Expected, e Ended, category Category) (RepairOutcome, string) {
	e.Unreadable = "" // what it prints does not matter
	if why := e.broken(x); why != "" {
		return RepairUnknown, why
	}
	if clean, found := x.Means(e.Exit); clean || found && category != Formatter {
		return RepairRan, ""
	}
	return RepairFailed, fmt.Sprintf("exit code %d%s", e.Exit, e.said())
}
