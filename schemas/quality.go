package schemas

import "cmp"

// Quality has the work of a session verified as a whole when all its DAGs have ended well: first the linters, formatters and type checkers
// that the project uses, on all files of the branch, and then all tests. A check that did not run is not passed.
type Quality struct {
	// Scope says which findings count: all, or session for those in files that changed on the branch since the first task of the session
	// that landed began. All tests count. Default all.
	Scope string `json:"scope,omitempty" jsonschema:"enum=all,enum=session,default=all"`
	// Fix has reconcile make a DAG that mends what was found. Without it a person decides.
	Fix bool `json:"fix,omitempty"`
	// Rounds is how many such DAGs there are before a person has to decide. Default 3.
	Rounds int `json:"rounds,omitempty" jsonschema:"minimum=1,maximum=20,default=3"`
	// FailOn is the severity from which on a finding counts. Default low.
	FailOn string `json:"failOn,omitempty" jsonschema:"enum=critical,enum=high,enum=medium,enum=low,enum=info,default=low"`
	// AllowUnknown names tools whose checks may be unknown, and inspect and test where the project may have none for that step, or for
	// some of the files.
	AllowUnknown []string `json:"allowUnknown,omitempty" jsonschema:"maxItems=100"`
	// Timeout ends each of the checks. Default 10m.
	Timeout *Duration `json:"timeout,omitempty"`
}

// QualitySession is the Scope of what the session changed.
const QualitySession = "session"

// Most is Rounds with its default.
func (q *Quality) Most() int { return cmp.Or(q.Rounds, 3) }

// Steps are the checks of the session, as those of a change.
func (q *Quality) Steps() *Pipeline {
	return &Pipeline{FailOn: q.FailOn, AllowUnknown: q.AllowUnknown, Timeout: q.Timeout}
}

func (q *Quality) check(at Spot) {
	if q != nil {
		q.Steps().check(at, "")
	}
}

// States of the verification of a session.
const (
	QualityPending    = "Pending"    // its DAGs have not ended well
	QualityInspecting = "Inspecting" // the branch is inspected
	QualityTesting    = "Testing"    // its tests run
	QualityFixing     = "Fixing"     // a DAG mends what was found
	QualityWaiting    = "Waiting"    // a person has to decide
	QualityVerified   = "Verified"   // both passed, or a person took it
)

// Verified is the condition of a session whose work was verified as a whole.
const Verified = "Verified"

// QualityStatus says how far the verification of a session is.
type QualityStatus struct {
	State string `json:"state"` // one of the Quality constants
	// Of is the digest of the ended DAGs that the rest is about.
	Of string `json:"of,omitempty"`
	// Again counts how often a person had the same work verified again.
	Again int `json:"again,omitempty"`
	// Inspected and Tested are the verdicts: the outcome, and what was looked at and found.
	Inspected string `json:"inspected,omitempty"`
	Tested    string `json:"tested,omitempty"`
	// Commit is the commit that they are about, and At the time of the last of them.
	Commit string `json:"commit,omitempty"`
	At     Time   `json:"at,omitzero"`
	// Accepted is the number of findings and failed tests that people accepted.
	Accepted int `json:"accepted,omitempty"`
	// Overridden says what people accepted when it was verified, who and why: of the whole, and of the changes of tasks; at most 20.
	Overridden []string `json:"overridden,omitempty"`
	// Corrections counts what has to be mended, by severity. A failed test is high.
	Corrections map[string]int `json:"corrections,omitempty"`
	// Found is the digest of the corrections for which the DAG Fix was made. Rounds counts such DAGs, From those of them before the
	// session was verified last, or a person had it verified again.
	Found  string `json:"found,omitempty"`
	Fix    string `json:"fix,omitempty"`
	Rounds int    `json:"rounds,omitempty"`
	From   int    `json:"from,omitempty"`
	// TakenBy is who took the work as it is, with the reason; "" for no one. TakenAs is the digest of what was asked then.
	TakenBy string `json:"takenBy,omitempty"`
	TakenAs string `json:"takenAs,omitempty"`
	// Undecided are the questions about tools that the verification waits for.
	Undecided []ToolQuestion `json:"undecided,omitempty"`
	// Base is the commit that the first task of the session began with, of those that landed.
	Base string `json:"base,omitempty"`
	// Message says what it waits for.
	Message string `json:"message,omitempty"`
}
