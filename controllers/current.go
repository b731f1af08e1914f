package controllers

import (
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Foretold reports whether the status of an object may be written later: see [settle.Kind.Foretold].
func Foretold(t *state.Tree, ref schemas.Ref) bool {
	k := settle.TableOf(t).Row(ref.Kind)
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
