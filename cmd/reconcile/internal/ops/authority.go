package ops

import (
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
)

// Authority says what of an operation only people may do. Inside a run it is refused, whatever the request.
type Authority struct {
	// What names the operation, as a verb phrase.
	What string
	// Anywhere says that the runs of other trees are refused, too, since it is about more than this tree.
	Anywhere bool
}

// PeopleOnly has the operations that only people may do, by name. What Act, Apply, Create, Edit and Delete may do inside a run depends
// on the request: schemas.OnlyPeople and schemas.OfPeople decide. All other operations read, work, or speak as the agent of the run.
var PeopleOnly = map[string]Authority{
	"Allow":              {"allow what is sent elsewhere", true},
	"AskTools":           {"ask an agent about tools", false},
	"DropWorkspace":      {"delete a workspace", true},
	"Doctor":             {"repair the tree", false}, // with Fix
	"Init":               {"initialize a tree again", false},
	"InitWorkflows":      {"write workflows", false},
	"InstallMergeDriver": {"configure the repository", false},
	"InstallTools":       {"install tools", true},
	"OverrideCheck":      {"accept what a check found", false},
	"Run":                {"set parameters", false}, // with Params
	"Start":              {"start a workflow", false},
	"Switch":             {"switch to a session", false},
	"Task":               {"prompt or steer a task", false},
}

// authorize refuses an operation of PeopleOnly inside a run.
func (e Env) authorize(op string) error {
	a := PeopleOnly[op]
	if in := e.Caller.AnyRun(); in != nil && (a.Anywhere || !in.Elsewhere) {
		return caller.NotInRun(a.What, in)
	}
	return nil
}
