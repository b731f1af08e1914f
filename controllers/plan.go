package controllers

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Plan lists what a run over the tree would do. The results of commands are unknown, so nodes after others are listed
// as if those succeeded. Work that no run can start now is not listed: nodes of a paused session or DAG, and nodes
// after a blocked one; [readiness.Why] explains them.
//
// tool, if it is not nil, says which version a program has here, where that is known without a run. dirty are the objects to decide, as
// [settle.Doubtful] lists them; nil: all.
func Plan(t *state.Tree, now time.Time, tool func(name string) (settle.Tool, bool), dirty []schemas.Ref) []settle.Step {
	d := (&settle.Decider{Tool: tool}).Settle(t, now, dirty)
	var steps []settle.Step
	decided := slices.SortedFunc(maps.Keys(d.Outs), schemas.Ref.Compare)
	for _, k := range settle.TableOf(t) {
		for _, ref := range decided {
			if ref.Kind != k.Name {
				continue
			}
			e := t.Entry(ref)
			if e == nil {
				continue
			}
			out := d.Outs[ref]
			out.Status = d.StatusOf(ref)
			_, changed := slices.BinarySearchFunc(d.Changed, ref, schemas.Ref.Compare)
			steps = append(steps, objectSteps(&k, e, out, changed)...)
		}
	}
	return steps
}

func objectSteps(k *settle.Kind, e *state.Entry, out settle.Out, changed bool) []settle.Step {
	var steps []settle.Step
	switch {
	case out.Status == nil && e.HasStatus() && e.Gone():
		return []settle.Step{{Ref: e.Ref, Verb: settle.StepRemove, Why: "its spec is gone"}}
	case out.Status == nil && e.HasStatus():
		return []settle.Step{{Ref: e.Ref, Verb: settle.StepRemove, Why: "nothing is wrong with it any more"}}
	case changed && !e.HasStatus():
		steps = []settle.Step{{Ref: e.Ref, Verb: settle.StepWrite, Why: "it is new"}}
	case changed:
		steps = []settle.Step{{Ref: e.Ref, Verb: settle.StepWrite, Why: whyWrite(e, out.Status)}}
	}
	for _, r := range out.Restore {
		steps = append(steps, settle.Step{Ref: e.Ref, Node: r.Node, Verb: settle.StepRestore, Why: r.Why()})
	}
	if k.Steps != nil {
		return append(steps, k.Steps(e, out)...)
	}
	for i := range out.Effects {
		if f := &out.Effects[i]; settle.ClaimOf(e, f.Key) == nil {
			steps = append(steps, settle.Step{Ref: e.Ref, Node: f.Node, Verb: settle.StepRun, Why: "has not run yet"})
		}
	}
	return steps
}

func whyWrite(e *state.Entry, now schemas.Status) string {
	was, is := e.Status().Base(), now.Base()
	switch {
	case was.Phase != is.Phase:
		return fmt.Sprintf("it becomes %s, from %s", is.Phase, was.Phase)
	case was.ObservedDigest != is.ObservedDigest:
		return "its spec changed"
	}
	if a, b := was.Condition(schemas.Ready), is.Condition(schemas.Ready); a != nil && b != nil && a.Reason != b.Reason {
		return fmt.Sprintf("%s: %s", b.Reason, b.Message)
	}
	return "its status changed"
}

// Foretold reports whether the status of an object may be written later: see [settle.Kind.Foretold].
func Foretold(t *state.Tree, ref schemas.Ref) bool {
	k := settle.RowOf(t, ref.Kind)
	return k != nil && k.Foretold
}

// Current returns t with the statuses that follow from the records of the given objects, which are those that a journal
// says something about. The status of a spec that no run has looked at yet stays as it is.
func Current(t *state.Tree, now time.Time, refs []schemas.Ref) *state.Tree {
	refs = slices.DeleteFunc(slices.Clone(refs), func(ref schemas.Ref) bool { return !observed(t.Entry(ref)) })
	if len(refs) == 0 {
		return t
	}
	d := settle.Tree(t, now, refs)
	var entries []*state.Entry
	for _, ref := range d.Changed {
		if is := d.Tree.Entry(ref); is != nil && is.HasStatus() && Foretold(t, ref) && observed(t.Entry(ref)) {
			entries = append(entries, is)
		}
	}
	return t.With(entries...)
}

// observed reports whether the status of an object is about its spec as it is now.
func observed(e *state.Entry) bool {
	return e != nil && e.Object != nil && e.HasStatus() && e.Status().Base().ObservedDigest == e.Object.Digest
}
