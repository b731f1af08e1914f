package derive

import (
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// changes records which objects may require new specs. All other objects of tree required none.
type changes struct {
	tree  *state.Tree
	again map[schemas.Ref]bool // the objects that called for a spec which the tree lacked
}

// due are the objects to examine; all of them if refs is nil.
type due struct{ refs map[schemas.Ref]bool }

// since tells what may call for a spec by now. An agent or a workflow that changed may let any question through, and a spec
// that is gone may be called for by any record.
func (c *changes) since(t *state.Tree) due {
	if c.tree == nil || c.tree.Settings() != t.Settings() {
		return due{}
	}
	for _, k := range []schemas.Kind{schemas.AgentKind, schemas.WorkflowKind, schemas.SessionKind} {
		for was, is := range t.Since(c.tree, k.Name) {
			if digestOf(was) != digestOf(is) {
				return due{}
			}
		}
	}
	d := due{refs: maps.Clone(c.again)}
	for was, is := range t.Since(c.tree, schemas.ObservationKind.Name) {
		if went(was, is) {
			return due{}
		}
	}
	for was, is := range t.Since(c.tree, schemas.ClarificationRequestKind.Name) {
		if id := clarifications.Status(was).ID; went(was, is) || id != "" && id != clarifications.Status(is).ID {
			return due{} // others may have that number now
		}
		d.add(was)
		d.add(is)
	}
	for _, kind := range []string{schemas.DAGKind.Name, schemas.ActionKind.Name, schemas.PlanChangeKind.Name, schemas.SessionKind.Name} {
		for _, is := range t.Since(c.tree, kind) {
			d.add(is)
		}
	}
	for l := range t.LedgersSince(c.tree) {
		d.refs[l.Ref()] = true
	}
	return d
}

// digestOf returns the digest of the spec of an object; "" without a usable spec.
func digestOf(e *state.Entry) string {
	if e == nil || e.Object == nil {
		return ""
	}
	return e.Object.Digest
}

// went reports whether an object was removed.
func went(was, is *state.Entry) bool { return was != nil && !was.Gone() && (is == nil || is.Gone()) }

// add adds an object, and the DAG that a request is about.
func (d *due) add(e *state.Entry) {
	if e == nil {
		return
	}
	d.refs[e.Ref] = true
	if e.Kind != schemas.ClarificationRequestKind.Name || e.Object == nil {
		return
	}
	for _, r := range e.Object.Refs {
		if r.To.Kind == schemas.DAGKind.Name {
			d.refs[r.To] = true
		}
	}
}

// of lists the entries of a kind that are due, by name.
func (d *due) of(t *state.Tree, kind string) []*state.Entry {
	if d.refs == nil {
		return t.Active(kind) // what is dormant calls for nothing
	}
	var out []*state.Entry
	for ref := range d.refs {
		if e := t.Entry(ref); ref.Kind == kind && e != nil {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *state.Entry) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// ledgers lists the ledgers with open questions that are due.
func (d *due) ledgers(t *state.Tree) []*state.Ledger {
	var out []*state.Ledger
	for _, l := range t.Ledgers() {
		if l.Open > 0 && (d.refs == nil || d.refs[l.Ref()]) {
			out = append(out, l)
		}
	}
	return out
}
