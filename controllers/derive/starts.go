package derive

import (
	"maps"
	"slices"

	"reconcile.dev/reconcile/controllers/workflows"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// starts adds the session and the DAG of the run that an action starts, unless they exist.
func (d *deriver) starts(e *state.Entry) {
	if !startsWorkflow(e) || e.Brief().Phase == schemas.ActionApplied {
		return
	}
	d.start(e, state.SpecOf[*schemas.ActionSpec](e))
}

// Issue is what an issue on GitHub says.
type Issue struct {
	Text     string // in Markdown, its title as the first heading
	Comments []schemas.IssueComment
}

// Starts lists the sessions and DAGs of the runs that actions start whose issues were read on GitHub. Those whose run exists, or cannot
// start, have none.
func Starts(t *state.Tree, read map[schemas.Ref]Issue) []Spec {
	d := &deriver{tree: t}
	for _, ref := range slices.SortedFunc(maps.Keys(read), schemas.Ref.Compare) {
		e := t.Entry(ref)
		spec := state.SpecOf[*schemas.ActionSpec](e)
		if spec == nil || !startsWorkflow(e) || e.Brief().Phase == schemas.ActionApplied {
			continue
		}
		told := *spec
		told.Text, told.Comments = read[ref].Text, read[ref].Comments
		d.start(e, &told)
	}
	return d.out
}

func (d *deriver) start(e *state.Entry, spec *schemas.ActionSpec) {
	if st, _ := e.Status().(*schemas.ActionStatus); st.Distrusted(e.Object.Digest) != "" {
		return
	}
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
