package ops

import (
	"context"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/outputs"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/settle"
)

// DescribeNode describes a node of the DAG that q names. Outputs are compared with the files only for the
// present tree.
func DescribeNode(ctx context.Context, env Env, q DescribeRequest, node string) (v dags.NodeView, err error) {
	_, t, done, err := env.loadAt(ctx, q.At)
	if err != nil {
		return v, typed(err)
	}
	defer done()
	e, err := find(t, q.Object)
	if err == nil {
		err = findNode(e, node)
	}
	if err != nil {
		return v, typed(err)
	}
	now := env.Tree.Now()
	v = dags.View(settle.In{Entry: e, Tree: t, World: settle.NewWorld(t, now, nil), Now: now}, node)
	if q.At == "" {
		missing, changed, failed := outputs.Compare(ctx, env.Tree.Dir, e)
		v.Missing, v.Changed, err = missing[node], changed[node], failed
	}
	return v, typed(err)
}
