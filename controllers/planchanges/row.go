package planchanges

import (
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/project"
)

// Kind is the row of kind PlanChange.
var Kind = settle.Kind{Kind: schemas.PlanChangeKind, Decide: decide, Columns: columns, Details: details,
	DependsOn: []string{schemas.DAGKind.Name, schemas.SessionKind.Name}, Affects: affects, Before: addOpen, After: addAsking, Shared: true,
	PartOf: partOf, Origin: origin, Retired: retired, Mirror: &mirror.PlanChange, Index: &project.PlanChange}

var columns = []settle.Column{
	readiness.Ready, readiness.Phase,
	readiness.OfSpec("CHANGE", func(s *schemas.PlanChangeSpec) string { return s.Change }),
	readiness.OfSpec("TARGET", func(s *schemas.PlanChangeSpec) string { return strings.TrimSpace(s.Target + " " + s.Node) }),
	readiness.OfSpec("BY", func(s *schemas.PlanChangeSpec) string { return schemas.Acting(s.By, s.Proof) }),
	readiness.OfSpec("REASON", func(s *schemas.PlanChangeSpec) string { return strings.Join(strings.Fields(s.Reason), " ") }),
}

var details = []settle.Column{
	readiness.OfSpec("Blocker", func(s *schemas.PlanChangeSpec) string { return s.BlockerType }),
	readiness.OfSpec("Priority", func(s *schemas.PlanChangeSpec) string { return string(s.Urgency()) }),
	readiness.OfSpec("Context", (*schemas.PlanChangeSpec).ShownContext),
	readiness.OfSpec("Tried", func(s *schemas.PlanChangeSpec) string { return strings.Join(s.Tried, "; ") }),
	readiness.OfSpec("Blocked", func(s *schemas.PlanChangeSpec) string { return strings.Join(s.Blocked, ", ") }),
	readiness.OfSpec("Failed", func(s *schemas.PlanChangeSpec) string { return strings.Join(s.Failed, ", ") }),
	readiness.OfStatus("Accepted edit", func(s *schemas.PlanChangeStatus) string { return s.Proposal.Shown() }),
	readiness.OfStatus("Answered in", func(s *schemas.PlanChangeStatus) string {
		if s.AnswerDAG == "" {
			return ""
		}
		return schemas.DAGKind.Ref(s.AnswerDAG).String()
	}),
	readiness.OfStatus("Answer", changeAnswer),
	readiness.OfStatus("Changes", func(s *schemas.PlanChangeStatus) string { return strings.Join(s.Changes, "; ") }),
	readiness.OfStatus("Not applied", func(s *schemas.PlanChangeStatus) string { return strings.Join(s.Rejected, "; ") }),
}

// changeAnswer is the decision in a line.
func changeAnswer(s *schemas.PlanChangeStatus) string {
	a := s.Answer
	if a == nil {
		return ""
	}
	word := "refused"
	if a.Accept {
		word = "accepted"
	}
	return word + " by " + schemas.Acting(a.By, a.Proof) + because(strings.TrimSpace(a.Reason+" "+a.Instructions))
}

// affects adds the DAG that waits for the answer, or whose file changes.
func affects(c *settle.Change) {
	if c.Entry == nil {
		c.AddAll()
		return
	}
	refs := c.Entry.Refs
	if c.Entry.Object != nil {
		refs = c.Entry.Object.Refs
	}
	for _, r := range refs {
		c.Add(r.To)
	}
	for _, ref := range c.Tree().ReferrersOf(c.Ref, schemas.ActionKind.Name) {
		c.Add(ref)
	}
	for _, ref := range c.Tree().ReferrersOf(c.Ref, schemas.DAGKind.Name) { // its answers, which may come too late by now
		c.AddWithReaders(ref)
	}
}

// addOpen adds the plan changes without an answer where agents changed: an architect may be among them.
func addOpen(r *settle.Round) {
	if r.Everything() || !r.HasKind(schemas.AgentKind.Name) {
		return
	}
	for _, e := range r.Tree().Entries(schemas.PlanChangeKind.Name) {
		if Status(e).Phase == schemas.PlanPending {
			r.Add(e.Ref)
		}
	}
}

// addAsking adds the plan changes whose answers came in the round, and those whose questions describe a DAG that changed in it.
func addAsking(r *settle.Round) {
	t := r.Tree()
	if len(t.Entries(schemas.PlanChangeKind.Name)) == 0 {
		return
	}
	r.EachChanged(schemas.DAGKind.Name, func(_, is *state.Entry) {
		spec := state.SpecOf[*schemas.DAGSpec](is)
		if spec == nil {
			return
		}
		if spec.Answers != "" {
			r.AddChanged(schemas.PlanChangeKind.Ref(spec.Answers))
		}
		for _, target := range []schemas.Ref{is.Ref, schemas.SessionKind.Ref(spec.Session)} {
			for _, ref := range t.ReferrersOf(target, schemas.PlanChangeKind.Name) {
				if st := Status(t.Entry(ref)); waitsForHandoff(t.Entry(ref), st) || st.Phase == schemas.PlanPending && st.AnswerDAG != "" && t.Entry(schemas.DAGKind.Ref(st.AnswerDAG)) == nil {
					r.AddChanged(ref)
				}
			}
		}
	})
}

// partOf is [settle.Kind.PartOf] for plan changes: a hand-off belongs to the node that is handed over.
func partOf(e *state.Entry, _ string) (dag, of string) {
	if spec := Spec(e); spec != nil && spec.Change == schemas.ChangeHandoff {
		to, _ := spec.TargetRef()
		return to.Name, spec.Node
	}
	return "", ""
}

// waitsForHandoff reports whether a plan change is decided by a hand-off of its DAG.
func waitsForHandoff(e *state.Entry, st *schemas.PlanChangeStatus) bool {
	spec := Spec(e)
	return spec != nil && spec.Change == schemas.ChangeHandoff && (st.Phase == "" || st.Phase == schemas.PlanPending)
}

// origin: the output of an agent, or a command, once a run has taken the request.
func origin(*state.Tree) func(*state.Entry) settle.Origin {
	return func(e *state.Entry) settle.Origin {
		spec, b := Spec(e), e.Brief()
		switch {
		case spec != nil && spec.Run != "":
			return settle.OriginRecord
		case b.Phase != "" && b.ObservedDigest == e.Object.Digest:
			return settle.OriginOnce
		}
		return settle.OriginUser
	}
}

// DAGOrigin is the origin of the files of DAGs: those that answer a plan change, those that mend a session, and those as a plan change left
// them, belong to the program.
func DAGOrigin(t *state.Tree) func(*state.Entry) settle.Origin {
	all, changed := len(t.Entries(schemas.PlanChangeKind.Name)), Changed(t)
	return func(e *state.Entry) settle.Origin {
		if NamesFix(e.Name) && state.SpecOf[*schemas.DAGSpec](e).Fixes != "" {
			return settle.OriginRecord
		}
		if all > 0 && (changed(e) || state.SpecOf[*schemas.DAGSpec](e).Answers != "") {
			return settle.OriginRecord
		}
		return settle.OriginUser
	}
}

// Changed returns what reports whether a sound DAG is as a plan change left it.
func Changed(t *state.Tree) func(*state.Entry) bool {
	changed := map[string]bool{}
	for _, e := range t.Entries(schemas.PlanChangeKind.Name) {
		if st := Status(e); st.Phase == schemas.PlanApplied && st.Digest != "" {
			changed[st.DAG+" "+st.Digest] = true
		}
	}
	return func(e *state.Entry) bool { return changed[e.Ref.String()+" "+e.Object.Declared().Digest] }
}

// NamesFix reports whether a DAG has a name as those that mend a session.
func NamesFix(name string) bool { return strings.Contains(name, "-fix-") }

// retired is when a plan change ended.
func retired(*state.Tree) func(*state.Entry) time.Time {
	return func(e *state.Entry) time.Time {
		if b := e.Brief(); b.ObservedDigest != e.Object.Digest || b.Phase != schemas.PlanApplied && b.Phase != schemas.PlanRefused {
			return time.Time{}
		}
		return readiness.SinceWhen(e.Status())
	}
}
