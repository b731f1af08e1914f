package dags

import (
	"fmt"

	"reconcile.dev/reconcile/controllers/breaker"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/controllers/preferences"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/research"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/project"
)

var columns = []settle.Column{
	readiness.Ready, readiness.Phase,
	readiness.OfSpec("SESSION", func(s *schemas.DAGSpec) string { return s.Session }),
	{Head: "NODES", Text: func(e *state.Entry) string {
		s, ok := e.Status().(*schemas.DAGStatus)
		switch {
		case !ok:
			return ""
		case nodes.NotHere(e) != nil:
			return s.Progress.String() + ", outputs not here"
		case s.Schedule != nil && !s.Schedule.Next.IsZero():
			return s.Progress.String() + ", next " + s.Schedule.Next.Format("2006-01-02T15:04Z")
		}
		return s.Progress.String()
	}},
	readiness.Since,
}

var details = []settle.Column{
	readiness.OfStatus("Issue status", func(s *schemas.DAGStatus) string { return s.IssueStatus }),
	readiness.OfStatus("Progress", func(s *schemas.DAGStatus) string { return s.Progress.String() + " nodes" }),
	readiness.TimeOf("Started", func(s *schemas.DAGStatus) schemas.Time { return s.StartedAt }),
	readiness.OfStatus("Group", inGroup),
	readiness.OfStatus("Next run", nextTime),
	readiness.TimeOf("Finished", func(s *schemas.DAGStatus) schemas.Time { return s.FinishedAt }),
	readiness.OfStatus("Notified", noticed),
}

// Kind is the row of kind DAG.
var Kind = settle.Kind{Kind: schemas.DAGKind, Decide: decide, Columns: columns, Details: details,
	DependsOn: []string{schemas.SessionKind.Name, schemas.AgentKind.Name},
	Performs:  true, Foretold: true, PartOf: partOf, Steps: steps, Tries: tries, Events: events, Why: why,
	Sources: []string{state.CheckpointKind}, Affects: affects, Before: before, After: after,
	Origin: fileOrigin, Rests: rests, RestOfUsers: true, Shared: true, Same: same, Note: note,
	Mirror: &mirror.DAG, Index: &project.DAG}

// before adds the DAGs that wait for budgets, agents and DAGs that have changed.
func before(r *settle.Round) {
	budgets.Watch(r)
	breaker.Watch(r)
	addGroups(r)
}

// after adds the questions of nodes whose keys moved, and the DAGs of groups in which something changed.
func after(r *settle.Round) {
	clarifications.AddMovedQuestions(r)
	addChangedGroups(r)
	r.EachChanged(schemas.DAGKind.Name, func(_, is *state.Entry) {
		if research.IsDAG(is.Name) {
			preferences.AddUndecided(r.Worklist)
		}
	})
}

// partOf is [settle.Kind.PartOf] for DAGs.
func partOf(e *state.Entry, node string) (dag, of string) { return e.Name, node }

// note says how many nodes have succeeded.
func note(s schemas.Status) string {
	if st, ok := s.(*schemas.DAGStatus); ok && st.Progress.Total > 0 {
		return fmt.Sprintf("%d of %d nodes succeeded", st.Progress.Done, st.Progress.Total)
	}
	return ""
}
