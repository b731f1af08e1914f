package sessions

import (
	"fmt"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/workflows"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
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
	readiness.OfStatus("Quality", qualityLine),
	readiness.OfStatus("Active DAGs", func(s *schemas.SessionStatus) string { return schemas.Shorten(s.ActiveDAGs, 10) }),
}

// qualityLine says how far the verification of a session is.
func qualityLine(s *schemas.SessionStatus) string {
	q := s.Quality
	if q == nil {
		return ""
	}
	line := q.State
	for _, part := range []struct{ what, text string }{{"at commit ", q.Commit}, {"inspected: ", q.Inspected}, {"tested: ", q.Tested}, {"overridden: ", strings.Join(q.Overridden, "; ")}, {"to mend: ", severities(q.Corrections)},
		{"taken as it is by ", q.TakenBy}, {"", q.Message}} {
		if part.text != "" {
			line += "; " + part.what + part.text
		}
	}
	return line
}

// ActivePipelines are the pipelines of a session that work or wait, by task; nil of anything else.
func ActivePipelines(t *state.Tree, session *state.Entry) map[string]*schemas.PipelineStatus {
	st, ok := session.Status().(*schemas.SessionStatus)
	if !ok {
		return nil
	}
	out := map[string]*schemas.PipelineStatus{}
	for _, name := range st.ActiveDAGs {
		e := t.Entry(schemas.DAGKind.Ref(name))
		if e == nil {
			continue
		}
		for node, s := range schemas.NodesIn(e.Status()).All() {
			if p := s.Pipeline; p != nil && p.State != schemas.PipelineCompleted && p.State != schemas.PipelineFailed {
				out[e.Ref.String()+":"+node] = p
			}
		}
	}
	return out
}

// severities counts by severity, as "1 critical, 2 high".
func severities(counts map[string]int) string {
	var parts []string
	for _, s := range []checks.Severity{checks.Critical, checks.High, checks.Medium, checks.Low, checks.Info} {
		if n := counts[string(s)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// Kind is the row of kind Session.
var Kind = settle.Kind{Kind: schemas.SessionKind, Decide: decide, Columns: columns, Details: details,
	Performs: true, Foretold: true, Affects: affects, Before: addReassigned, After: addAdmitted, OwnRound: true, Shared: true,
	KeepSpec: true, Mirror: &mirror.Session, Origin: workflows.Origin, Rests: rests, RestOfUsers: true, Index: &project.Session}

// rests: a session that is paused by its spec, and by nothing else: it takes no place. Its file is a user's.
func rests(*state.Tree) func(*state.Entry) bool {
	return func(e *state.Entry) bool {
		spec := state.SpecOf[*schemas.SessionSpec](e)
		st, ok := e.Status().(*schemas.SessionStatus)
		if !ok || spec == nil || spec.Phase != schemas.SessionPaused || spec.Quality != nil || spec.Budget != nil || len(e.Object.Refs) > 0 {
			return false
		}
		return st.Phase == schemas.SessionPaused && e.Brief().Ready == schemas.True && st.Hold == "" && st.Quality == nil && st.Running == 0 &&
			len(st.Actions) == 0 && e.RunCount() == 0
	}
}
