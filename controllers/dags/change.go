package dags

import (
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// When the spec of a DAG changes while it works, nodes with other keys run again; all others go on. policy.onChange says what becomes of
// the runs of nodes with other keys, and whether the whole begins again.

// keepsFormer reports whether the run of node i's former definition goes on until it ends.
func (f *fold) keepsFormer(i int32) bool {
	r := &f.recs[i]
	if !r.formerRuns() || r.former.NodeKey == f.b.Keys[i] || r.claim != nil || f.p.Spec.Policy.OnChange != schemas.OnChangeMergePending || !f.gate.Keep {
		return false
	}
	switch f.verbs[i] {
	case schemas.VerbCancel, verbKill, schemas.VerbSkip:
		return false
	}
	f.set(i, schemas.NodeRunning, settle.ReasonFormerDefinition, "it runs by its former definition; the present one follows")
	f.want[i] = true
	return true
}

// restarts reports whether the spec was changed while the DAG worked, and all of it begins again: then every node has another generation.
func (f *fold) restarts() bool {
	if f.p.Spec.Policy.OnChange != schemas.OnChangeAbort || f.old.ObservedDigest == "" || f.old.ObservedDigest == f.Object.Digest ||
		f.old.StartedAt.IsZero() || over(f.old) || !f.differs() {
		return false
	}
	for i := range f.gens {
		if f.was[i].Key != "" {
			f.gens[i]++
		}
	}
	f.restartLoops(true)
	return true
}

// differs reports whether the DAG has other nodes than its status, or nodes with other keys.
func (f *fold) differs() bool {
	if f.old.Nodes.Len() != len(f.next) {
		return true
	}
	for i := range f.was {
		if f.was[i].Key != f.b.Keys[i] {
			return true
		}
	}
	return false
}
