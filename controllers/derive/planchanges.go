package derive

import (
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// planChanges adds the changes of the plan that the latest runs of a DAG's nodes under their present keys asked for.
func (d *deriver) planChanges(e *state.Entry) {
	if e.Object == nil || !e.RunsHave(state.Asks) {
		return
	}
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return
	}
	for i, r := range e.Runs() {
		if len(r.PlanChange) == 0 || st.Nodes.Of(r.Node).Key != r.NodeKey || supersededBy(e.Runs(), i) {
			continue
		}
		if name, spec := planchanges.SpecOfRun(r); spec != nil {
			d.add(schemas.PlanChangeKind, name, spec)
		}
	}
}

// answers adds the DAG in which an architect answers a plan change.
func (d *deriver) answers(e *state.Entry) {
	if e.Brief().Phase != schemas.PlanPending {
		return
	}
	if name, dag := planchanges.AnswerDAG(d.tree, e); dag != nil {
		d.add(schemas.DAGKind, name, dag)
	}
}

// Edit is a change of the nodes of a DAG, which its file has to get.
type Edit struct {
	By     schemas.Ref     // the plan change
	Object *schemas.Object // the DAG as it is to be
	Before *schemas.Object // as it is now
	Items  []planchanges.Item
}

// Edits lists the changes of files that accepted plan changes call for, in the order of their names: one for each file.
func Edits(t *state.Tree) []Edit {
	var out []Edit
	edited := map[schemas.Ref]bool{}
	for _, e := range t.Active(schemas.PlanChangeKind.Name) {
		if e.Brief().Phase != schemas.PlanAccepted || e.Object == nil {
			continue
		}
		dag, next, err := planchanges.Pending(t, e, planchanges.Status(e))
		if err != nil || edited[dag.Ref] || dag.Object.Declared().Digest == next.Object.Digest {
			continue // the next decision says what to do
		}
		edited[dag.Ref] = true
		out = append(out, Edit{By: e.Ref, Object: next.Object, Before: dag.Object.Declared(), Items: next.Items})
	}
	return out
}
