package settle

import (
	"time"

	"reconcile.dev/reconcile/schemas"
)

// ReportKind says what happened to an effect.
type ReportKind int

// Kinds of reports. Each submitted effect ends in exactly one of Finished, Released, Held and Broken.
const (
	Started    ReportKind = iota + 1 // PID is its process group
	Finished                         // Run is the record
	Released                         // it was given up or interrupted; there is no record, and it may be wanted again
	Held                             // an earlier run of it could not be ended; there is no record
	Broken                           // reconcile itself could not do its part, for Err; there is no record
	Progressed                       // Turn is what is known of an agent's turn that runs
)

// Ends reports whether the effect ends with this report.
func (k ReportKind) Ends() bool { return k != Started && k != Progressed }

// Report is the notice of a performer about an effect.
type Report struct {
	Kind ReportKind
	Key  string
	At   time.Time
	PID  int
	Run  *schemas.Run
	Why  string        // Released, Held; of Finished what is worth a warning and not part of the record
	Err  error         // Broken
	Turn *schemas.Turn // Progressed
	// Waits says why a Released landing cannot be performed before a person has done something; "" for another reason.
	Waits string
	// Missing are files that Task.Expects named and that do not exist; then the effect is Released without having started.
	Missing []string
}
