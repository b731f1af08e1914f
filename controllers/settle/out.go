package settle

import (
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Out is a decision.
type Out struct {
	// Status replaces the status file; nil removes it and the object's records, unless the decision leaves the
	// status as it is.
	Status schemas.Status
	// Effects are the effects that should run or start now, in the order of their keys.
	Effects []Effect
	// Restore lists the missing outputs that are to be written back now, in the order of the nodes' names.
	Restore []Restore
	// Again is when to decide again although nothing changed; zero means never.
	Again time.Time
	// Await says that a one-shot run waits for Again (a retry's back-off, a DAG's timeout) instead of leaving it to a
	// later run (an answer's time limit).
	Await bool
	// Due says that a time of the object's schedule has come: a spec follows from it.
	Due bool
	// unchanged says that Status is the one that the entry has. Then Status is nil, so that the decoded status does not stay in memory.
	unchanged bool
}

// kept is out in the form in which it is kept: without a status that is unchanged.
func (out Out) kept(unchanged bool) Out {
	if out.unchanged = unchanged; unchanged {
		out.Status = nil
	}
	return out
}

// Release releases the decoded spec of an object that has nothing to do, and its status if that stays as it is.
func Release(e *state.Entry, out Out) {
	if e.Object == nil || len(out.Effects) > 0 || len(e.Claims) > 0 || !out.Again.IsZero() {
		return
	}
	e.Object.Release()
	if out.unchanged {
		e.ReleaseStatus()
	}
}

// Restore says that outputs of a recorded success are missing.
type Restore struct {
	Owner   schemas.Ref
	Node    string
	Run     *schemas.Run
	Outputs []schemas.Output // those that are missing
	// Cached says that the local cache has them.
	Cached bool
	// Ref is the reference in git that is to have them, too; "" where they are not kept.
	Ref string
}

// What names the missing outputs, the first of many.
func (r *Restore) What() string {
	return r.Outputs[0].Path + schemas.AndOthers(len(r.Outputs)-1) + " of " + r.Node
}

// Why says what a run would restore.
func (r *Restore) Why() string {
	return "outputs of its success are not here: " + r.Outputs[0].Path + schemas.AndOthers(len(r.Outputs)-1) + "; from " + r.From()
}

// From says where the outputs are.
func (r *Restore) From() string {
	if r.Cached {
		return "the local cache"
	}
	return r.Ref
}
