package doctor

import (
	"context"
	"fmt"

	"reconcile.dev/reconcile/state/outputs"
)

// checkOutputs compares the entries of the cache of outputs with their names.
func checkOutputs(ctx context.Context, e *Env) []Finding {
	if e.root == nil {
		return skipped("the tree cannot be read")
	}
	stats, err := outputs.Verify(ctx, e.root)
	if err != nil {
		return []Finding{warn(err.Error(), "check the permissions of "+outputs.Dir)}
	}
	if len(stats.Wrong) == 0 {
		return ok(fmt.Sprintf("%s of nodes in the cache, %d MiB", counted(stats.Entries, "output"), stats.Bytes>>20))
	}
	drop := func(context.Context) error { return outputs.Drop(e.root, stats.Wrong) }
	return []Finding{warn(outputs.Dir+" has entries that are not what their names say: "+some(stats.Wrong),
		"doctor --fix removes them; a run does so, too, before it would use one").by(drop)}
}
