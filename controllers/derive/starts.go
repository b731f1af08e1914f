package derive

import (
	"reconcile.dev/reconcile/controllers/workflows"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// starts adds the session and the DAG of the run that an action starts, unless they exist.
func (d *deriver) starts(e *state.Entry) {
	if !startsWorkflow(e) || e.Brief().Phase == schemas.ActionApplied {
		return
	}
	spec := state.SpecOf[*schemas.ActionSpec](e)
	run, name := workflows.RunOf(d.tree, e.Name, spec, workflows.Ended)
	if run != nil || !d.lacks(schemas.DAGKind.Ref(name)) {
		return
	}
	session, dag, err := workflows.Make(d.tree, name, e.Name, spec)
	if err != nil {
		return // the action says so
	}
	d.add(schemas.SessionKind, name, session)
	d.add(schemas.DAGKind, name, dag)
}

// startsWorkflow reports whether an action refers to a workflow. It decodes nothing: a tree may have tens of thousands of actions.
func startsWorkflow(e *state.Entry) bool {
	return e.Object != nil && len(e.Object.Refs) > 0 && e.Object.Refs[0].To.Kind == schemas.WorkflowKind.Name
}
