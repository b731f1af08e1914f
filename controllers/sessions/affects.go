package sessions

import (
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// slotsMayChange is noted when sessions may get or lose their slots in the round.
const slotsMayChange = "slots"

// affects notes that slots may change.
func affects(c *settle.Change) { c.Note(slotsMayChange) }

// NoteWork notes that sessions may have got or lost work, so that slots may change: a DAG is new, edited or gone, a question was asked or ended.
func NoteWork(c *settle.Change) { c.Note(slotsMayChange) }

// addReassigned adds the sessions whose status does not show the slot that they have, and what depends on them.
func addReassigned(r *settle.Round) {
	if r.Everything() || !r.Noted(slotsMayChange) {
		return
	}
	for _, e := range r.Tree().Active(schemas.SessionKind.Name) {
		if s := SlotsOf(r.World).SlotOf(e.Name); s != nil && !s.shownBy(e.Status()) {
			r.Add(e.Ref)
			r.AddDependents(e.Ref)
		}
	}
}

// addAdmitted adds the sessions whose slot is another one after the round.
func addAdmitted(r *settle.Round) {
	given := SlotsOf(r.World).bySession
	if given == nil {
		return
	}
	for name, is := range assignSlots(r.Tree(), SlotsOf(r.World).sums) {
		if was := given[name]; was == nil || was.Gate != is.Gate || was.idle != is.idle {
			r.AddChanged(schemas.SessionKind.Ref(name))
		}
	}
}

// AddOwner adds a session that a DAG belongs to. If the session's desired phase is Completed, its slot may become
// free.
func AddOwner(w settle.Worklist, name string) {
	e := w.Tree().Entry(schemas.SessionKind.Ref(name))
	if e == nil {
		return
	}
	w.Add(e.Ref)
	if spec := state.SpecOf[*schemas.SessionSpec](e); spec != nil && spec.Phase == schemas.SessionCompleted {
		w.Note(slotsMayChange)
	}
}
