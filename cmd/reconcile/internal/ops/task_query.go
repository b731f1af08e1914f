package ops

import (
	"context"
	"fmt"

	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/preview"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// QueryTask says how the task of a node is, and what its agent has changed so far, by records and the workspace as they are now. It
// neither interrupts the agent nor asks a model. name is as in a [TaskRequest], or the only one that is like it.
func QueryTask(ctx context.Context, env Env, name string) (v dags.TaskView, err error) {
	defer func() { err = typed(err) }()
	s, t, err := env.load(ctx)
	if err != nil {
		return v, err
	}
	defer s.Close()
	dag, node, err := findTask(t, name, true)
	if err != nil {
		return v, err
	}
	e := t.Entry(schemas.DAGKind.Ref(dag))
	v, ok := env.taskOf(t, e, node)
	if !ok {
		return v, fmt.Errorf("%s cannot be decided: reconcile describe %[1]s says why", e.Ref)
	}
	if changes := env.changesNow(ctx, t, e, node); changes != nil {
		v.Engineer.FilesChanged = changes
	}
	return v, nil
}

// taskOf is the task of a node of a DAG as it is now.
func (e Env) taskOf(t *state.Tree, dag *state.Entry, node string) (dags.TaskView, bool) {
	now := e.Tree.Now()
	return dags.Task(settle.In{Entry: dag, Tree: t, World: settle.NewWorld(t, now, nil), Now: now}, node)
}

// changesNow are the files that differ in the workspace of a node now; nil where there is none, or it cannot be read.
func (e Env) changesNow(ctx context.Context, t *state.Tree, dag *state.Entry, node string) []schemas.FileChange {
	m, err := e.workspacesOf(t)
	key := schemas.NodesIn(dag.Status()).Of(node).Key
	if err != nil || key == "" {
		return nil
	}
	diff, err := m.DiffOf(ctx, keys.OfRuns(dag.Name, node, key))
	if err != nil || len(diff) == 0 {
		return nil
	}
	return preview.Changes(string(diff))
}
