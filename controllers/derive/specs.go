package derive

import (
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Spec is a spec file that follows from what is on record, and is to be written: it did not exist when it was derived.
type Spec struct {
	Path string // below the root
	Ref  schemas.Ref
	Spec schemas.Spec
	// Labels are those of the object; nil: none.
	Labels map[string]string
}

type deriver struct {
	tree      *state.Tree
	w         *clarifications.Requests
	remembers bool
	out       []Spec
	kept      Checkpoints
	derived   map[schemas.Ref]bool
}

// lacks reports whether an object neither exists nor is derived.
func (d *deriver) lacks(ref schemas.Ref) bool {
	e := d.tree.Entry(ref)
	return (e == nil || e.Gone()) && !d.derived[ref]
}

// add adds a spec, unless it exists. A ledger may have an id twice: the first record is taken.
func (d *deriver) add(k schemas.Kind, name string, spec schemas.Spec) {
	ref := schemas.Ref{Kind: k.Name, Name: name}
	if !d.lacks(ref) {
		return
	}
	if d.derived == nil {
		d.derived = map[schemas.Ref]bool{}
	}
	d.derived[ref] = true
	path := d.tree.Settings().Folders.Specs + "/" + k.Plural + "/" + name + ".yaml"
	d.out = append(d.out, Spec{Path: path, Ref: ref, Spec: spec})
}

// Checkpoints are the changes of checkpoints that follow from records.
type Checkpoints struct{ Add, Drop []*schemas.Checkpoint }

// supersededBy reports whether the node ran again under the same key after run i. Runs are sorted.
func supersededBy(runs []*schemas.Run, i int) bool {
	return i+1 < len(runs) && runs[i+1].Node == runs[i].Node && runs[i+1].NodeKey == runs[i].NodeKey
}
