package settle

import "reconcile.dev/reconcile/schemas"

// Verbs of a step.
const (
	StepRestore = "restore" // missing outputs of a success would be written back
	StepRun     = "run"     // a node would run, now or after others succeeded
	StepSkip    = "skip"    // a node would be skipped
	StepCancel  = "cancel"  // a node would be cancelled, or its run ended
	StepWrite   = "write"   // the status would change
	StepRemove  = "remove"  // the status and the records would go
)

// Step is one thing that a run would do, and why.
type Step struct {
	Ref  schemas.Ref
	Node string
	Verb string
	Why  string
}

// Tries describes the runs that one effect takes at most.
type Tries struct {
	Most  int    // number of runs
	Agent string // that is run; "" for a command
	// Limit ends each run; nil: the limit of the agent, if it has one. Whole ends it in any case, unless it is nil.
	Limit, Whole *schemas.Duration
}
