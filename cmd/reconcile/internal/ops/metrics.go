package ops

import (
	"context"

	"reconcile.dev/reconcile/controllers/metrics"
)

// Metrics returns how work waits for places, how long it runs and what it uses, by lane and by session, from the records of the tree.
func Metrics(ctx context.Context, env Env) (m metrics.Metrics, err error) {
	store, t, err := env.load(ctx)
	if err != nil {
		return m, typed(err)
	}
	defer store.Close()
	return metrics.Of(t, env.Tree.Now()), nil
}
