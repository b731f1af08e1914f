package sessions

import (
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/workflows"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/project"
)

var columns = []settle.Column{
	readiness.Ready, readiness.Phase,
	readiness.OfSpec("OWNER", func(s *schemas.SessionSpec) string { return s.Owner }),
	readiness.OfSpec("PRIORITY", func(s *schemas.SessionSpec) string { return string(s.Priority) }),
	readiness.OfStatus("NODES", func(s *schemas.SessionStatus) string { return s.Progress.String() }),
	readiness.OfStatus("ACTIVE", func(s *schemas.SessionStatus) string { return schemas.Shorten(s.ActiveDAGs, 3) }),
	readiness.Since,
}

var details = []settle.Column{
	readiness.OfStatus("Progress", func(s *schemas.SessionStatus) string { return s.Progress.String() + " nodes" }),
	readiness.OfStatus("Active DAGs", func(s *schemas.SessionStatus) string { return schemas.Shorten(s.ActiveDAGs, 10) }),
}

// Kind is the row of kind Session.
var Kind = settle.Kind{Kind: schemas.SessionKind, Decide: decide, Columns: columns, Details: details,
	Foretold: true, Affects: affects, Before: addReassigned, After: addAdmitted, OwnRound: true, Shared: true,
	KeepSpec: true, Mirror: &mirror.Session, Origin: workflows.Origin, Index: &project.Session}
