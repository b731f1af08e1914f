package settle

import (
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// In is all that a decision may depend on.
type In struct {
	*state.Entry // never nil; Gone() and Broken() tell what became of the spec
	Tree         *state.Tree
	World        *World // What is shared by all decisions over one tree
	Now          time.Time
}

// Out is a decision.
type Out struct {
	// Status replaces the status file; nil means that there is to be none, and that the object's records go with it.
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
	// unchanged says that Status is the one that the entry has. Where outs are kept, Status is nil then, so that the decoded status
	// does not stay in memory.
	unchanged bool
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

// DecideRecord is the decision about objects that only record something (replies, observations): they have a status
// only while something is wrong with them.
func DecideRecord[S any, P interface {
	*S
	schemas.Status
}](in In) Out {
	if !in.Broken() {
		return Out{}
	}
	st := P(new(S))
	*st.Base() = Common(in.Status())
	JudgeBroken(in, st.Base().Phase).Settle(st.Base(), st.Base().ObservedDigest, in.Now)
	return Out{Status: st}
}
