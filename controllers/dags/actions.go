package dags

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// newActs lists the actions that were not applied to the DAG yet: the actions on it, and those on its session, or on all, that are about
// nodes.
func (f *fold) newActs(applied []schemas.AppliedAction) []actions.Pending {
	acts := actions.Unapplied(f.Tree, f.Entry, applied)
	session := f.Tree.Entry(schemas.SessionKind.Ref(f.p.Spec.Session))
	if session == nil {
		return acts
	}
	for _, a := range actions.Unapplied(f.Tree, session, applied) {
		if a.Spec.Verb == schemas.VerbRetry || a.Spec.Verb == schemas.VerbSkip {
			a.Spent = !f.HasStatus() || sessions.VerifiesAgain(session, a.Entry.Name, a.Spec) // a DAG that is new has nothing to retry
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
	if done.Refused = pending.Distrusted(); done.Refused != "" && !f.proved(pending) {
		return false
	}
	done.Refused = ""
	if a.Permission != nil {
		i, ok := f.p.Index[a.Node]
		return ok && f.awaits(i, a.Permission)
	}
	if i, ok := f.p.Index[a.Node]; ok && (a.Verb == schemas.VerbHandoff || a.Verb == schemas.VerbStopHandoff) {
		return f.takeHandoff(i, pending, done)
	}
	if schemas.IsMessage(a.Verb) {
		return f.hears(a.Node)
	}
	if i, ok := f.p.Index[a.Node]; ok && schemas.IgnoredStep(a.Verb) != "" {
		return f.ignore(i, pending, done)
	}
	if i, ok := f.p.Index[a.Node]; ok && a.Verb == schemas.VerbRetry {
		if done.Refused = f.retryIsLost(i, a.Alone); done.Refused != "" {
			return false
		}
	}
	if i, ok := f.p.Index[a.Node]; ok && a.Verb == schemas.VerbApprove && len(f.partNodes(i)) > 0 {
		return f.releaseParts(i)
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
	case schemas.VerbPause, schemas.VerbResume:
		if a.Node == "" {
			f.hold = heldBy[a.Verb]
			return
		}
	}
	if a.Node == "" {
		for i := range f.next {
			f.applyTo(int32(i), verbOf(a), a.All)
		}
		return
	}
	i, ok := f.p.Index[a.Node]
	switch {
	case !ok:
	default:
		f.putNode(i, a, a.Verb != schemas.VerbRetry || readiness.NodeMet(f.next[i]))
	}
}

// putNode puts an action on node i in force. One on a node that joins others is about these: all says whether a retry is also about those
// that have succeeded.
func (f *fold) putNode(i int32, a *schemas.ActionSpec, all bool) {
	parts := f.partNodes(i)
	for _, part := range parts {
		f.putNode(part, a, all)
	}
	named := all || f.p.Spec.Nodes[i].Name == a.Node
	switch {
	case len(parts) > 0 && a.Verb == schemas.VerbRetry:
		f.verbs[i] = ""
	case len(parts) > 0 && a.Verb != schemas.VerbSkip:
	case a.Alone && f.recs[i].won && named:
		f.verbs[i] = verbAgain + strconv.Itoa(f.recs[i].wonAt)
	default:
		f.applyTo(i, verbOf(a), named)
	}
}

// releaseParts releases the holds of the nodes that node i joins, and reports whether there were any. A gate or a task of a person has to
// be approved by its own name.
func (f *fold) releaseParts(i int32) (released bool) {
	if released = f.verbs[i] == schemas.VerbHold; released {
		f.verbs[i] = ""
	}
	for _, part := range f.partNodes(i) {
		released = f.releaseParts(part) || released
	}
	return released
}

// inheritVerbs puts in force on nodes that are new what an action put on the node that joins them, before they were made.
func (f *fold) inheritVerbs() {
	for _, i := range slices.Backward(f.p.Order) { // a join before what it joins
		verb, made := f.verbs[i], false
		switch verb {
		case schemas.VerbHold, schemas.VerbCancel, verbKill, verbEnd, verbCleanup:
		default:
			continue
		}
		for _, part := range f.partNodes(i) {
			if f.verbs[part] == "" && f.old.Nodes.Find(f.p.Spec.Nodes[part].Name) == nil {
				f.verbs[part], made = verb, true
				if verb == verbCleanup && !f.p.CleansUp(part) { // the DAG was cancelled as a whole
					f.verbs[part] = schemas.VerbCancel
				}
			}
		}
		if made {
			f.verbs[i] = ""
		}
	}
}

// heldBy is what pause and resume leave in force on a DAG.
var heldBy = map[string]string{schemas.VerbPause: schemas.VerbPause, schemas.VerbResume: ""}

// verbOf is the verb of an action as it is in force on nodes: a mode of cancel is a verb of its own.
func verbOf(a *schemas.ActionSpec) string {
	switch {
	case a.Verb == schemas.VerbCancel && a.Mode == schemas.CancelImmediate:
		return verbKill
	case a.Verb == schemas.VerbCancel && a.Mode == schemas.CancelWait:
		return verbEnd
	case a.Verb == schemas.VerbPause:
		return schemas.VerbHold
	}
	return a.Verb
}

// runsAgain reports whether an action lets node i run again after its latest success. A verb that has had its effect is dropped.
func (f *fold) runsAgain(i int32) bool {
	seq, ok := strings.CutPrefix(f.verbs[i], verbAgain)
	if !ok {
		return false
	}
	if n, err := strconv.Atoi(seq); err != nil || f.recs[i].wonAt > n {
		f.verbs[i] = ""
		return false
	}
	return f.recs[i].won
}

// Approvable reports whether an approval of a node, or of a whole DAG where node is empty, would find something to do.
func Approvable(t *state.Tree, ref schemas.Ref, node string, now time.Time) bool {
	e := settle.Tree(t, now, []schemas.Ref{ref}).Tree.Entry(ref)
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok || spec == nil {
		return true // nothing is known
	}
	parts := map[string]bool{}
	addPartNames(parts, spec, node)
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		s := st.Nodes.Of(n.Name)
		switch {
		case parts[n.Name] && s.Verb == schemas.VerbHold:
			return true
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

// addPartNames adds the names of the nodes that a node joins, also by other joins.
func addPartNames(to map[string]bool, spec *schemas.DAGSpec, node string) {
	n := spec.Node(node)
	if n == nil || n.Made == nil || len(n.Made.Joins) == 0 {
		return
	}
	for _, name := range n.Needs {
		to[name] = true
		addPartNames(to, spec, name)
	}
}

// applyTo puts a verb in force on one node. Where the node was named, it means that node; else only those nodes that
// the verb can be about.
func (f *fold) applyTo(i int32, verb string, named bool) {
	s := f.next[i]
	done := s.State == schemas.NodeSucceeded || readiness.NodeMet(s)
	switch verb {
	case schemas.VerbRetry:
		if named || s.State == schemas.NodeFailed || s.State == schemas.NodeCancelled ||
			s.State == schemas.NodeSkipped && !readiness.NodeMet(s) {
			f.gens[i]++
			f.verbs[i] = ""
			f.restartLoop(i)
		}
	case schemas.VerbCancel, verbKill, verbEnd:
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
	case schemas.VerbResume: // of the node
		if f.verbs[i] == schemas.VerbHold {
			f.verbs[i] = ""
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
