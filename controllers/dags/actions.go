package dags

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Unapplied lists the actions that were not applied to the DAG yet: the actions on it, and retries of its whole session.
func (f *fold) newActs(applied []schemas.AppliedAction) []actions.Pending {
	acts := actions.Unapplied(f.Tree, f.Entry, applied)
	session := f.Tree.Entry(schemas.SessionKind.Ref(f.p.Spec.Session))
	if session == nil {
		return acts
	}
	for _, a := range actions.Unapplied(f.Tree, session, applied) {
		if a.Spec.Verb == schemas.VerbRetry {
			a.Spent = !f.HasStatus() // a DAG that is new has nothing to retry
			acts = append(acts, a)
		}
	}
	slices.SortStableFunc(acts, func(a, b actions.Pending) int {
		return cmp.Or(a.Spec.At.Compare(b.Spec.At.Time), strings.Compare(a.Entry.Name, b.Entry.Name))
	})
	return acts
}

// apply puts one action in force, given the states that the nodes have now, and reports whether it changes anything. done is the
// record of it.
func (f *fold) apply(pending actions.Pending, done *schemas.AppliedAction) bool {
	a := pending.Spec
	if a.Permission != nil {
		i, ok := f.p.Index[a.Node]
		return ok && f.awaits(i, a.Permission)
	}
	if schemas.IsMessage(a.Verb) {
		return f.hears(a.Node)
	}
	if i, ok := f.p.Index[a.Node]; ok && a.Verb == schemas.VerbApprove {
		return f.approveNode(i, pending, done)
	}
	hold, gens, verbs := f.hold, slices.Clone(f.gens), slices.Clone(f.verbs)
	f.put(a)
	return f.hold != hold || !slices.Equal(f.gens, gens) || !slices.Equal(f.verbs, verbs)
}

func (f *fold) put(a *schemas.ActionSpec) {
	switch a.Verb {
	case schemas.VerbPause:
		f.hold = schemas.VerbPause
		return
	case schemas.VerbResume:
		f.hold = ""
		return
	}
	if a.Node != "" {
		if i, ok := f.p.Index[a.Node]; ok {
			f.applyTo(i, a.Verb, true)
		}
		return
	}
	for i := range f.next {
		f.applyTo(int32(i), a.Verb, a.All)
	}
}

// Approvable reports whether an approval of a node, or of a whole DAG where node is empty, would find something to do.
func Approvable(t *state.Tree, ref schemas.Ref, node string, now time.Time) bool {
	e := settle.Tree(t, now, []schemas.Ref{ref}).Tree.Entry(ref)
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok || spec == nil {
		return true // nothing is known
	}
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		s := st.Nodes[n.Name]
		switch {
		case node != "" && n.Name != node:
		case node != "" && s.Reason == settle.ReasonWaitsForApproval:
			return true
		case s.Verb == schemas.VerbHold, node != "" && s.Reason == settle.ReasonRoundsUsedUp,
			agents.IsPerson(t, n.Agent) && (s.State == schemas.NodeBlocked || node != "" && !readiness.NodeEnded(&s)):
			return true
		}
	}
	return false
}

// applyTo puts a verb in force on one node. Where the node was named, it means that node; else only those nodes that
// the verb can be about.
func (f *fold) applyTo(i int32, verb string, named bool) {
	s := &f.next[i]
	done := s.State == schemas.NodeSucceeded || readiness.NodeMet(s)
	switch verb {
	case schemas.VerbRetry:
		if named || s.State == schemas.NodeFailed || s.State == schemas.NodeCancelled ||
			s.State == schemas.NodeSkipped && !readiness.NodeMet(s) {
			f.gens[i]++
			f.verbs[i] = ""
			f.restartLoop(i)
		}
	case schemas.VerbCancel:
		if !done && s.State != schemas.NodeFailed {
			f.verbs[i] = verb
			if !named && f.p.CleansUp(i) {
				f.verbs[i] = verbCleanup
			}
		}
	case schemas.VerbSkip:
		if s.State != schemas.NodeSucceeded {
			f.verbs[i] = verb
		}
	case schemas.VerbHold:
		if !done && f.verbs[i] == "" && (named || s.State != schemas.NodeFailed && s.State != schemas.NodeCancelled) {
			f.verbs[i] = verb
		}
	case schemas.VerbApprove: // of the whole DAG
		if f.verbs[i] == schemas.VerbHold {
			f.verbs[i] = ""
		} else if f.b.Human[i] && f.approveOf(i) == nil && f.next[i].State == schemas.NodeBlocked {
			f.answer(i, nil)
		}
	}
}
