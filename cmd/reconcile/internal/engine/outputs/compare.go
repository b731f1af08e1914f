package outputs

import (
	"context"
	"slices"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	cache "reconcile.dev/reconcile/state/outputs"
	"reconcile.dev/reconcile/state/regular"
)

// Compare reads the declared outputs of a DAG's nodes that have succeeded, in the tree in dir. missing are those that do not
// exist, changed those that differ from what their runs left; both by node.
func Compare(ctx context.Context, dir string, e *state.Entry) (missing, changed map[string][]string, err error) {
	missing, changed = controllers.NotHere(e), map[string][]string{}
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if spec == nil {
		return missing, changed, nil
	}
	root, err := regular.Root(dir)
	if err != nil {
		return missing, changed, err
	}
	defer root.Close()
	for node, files := range spec.OutputPaths() {
		for _, file := range files {
			was := controllers.Recorded(e, node, file)
			if len(was) == 0 || slices.Contains(missing[node], file) {
				continue
			}
			is, err := cache.Digest(ctx, root, file)
			same := func(o schemas.Output) bool { return o.Digest == is.Digest }
			if err != nil || !slices.ContainsFunc(was, same) {
				changed[node] = append(changed[node], file)
			}
		}
	}
	return missing, changed, ctx.Err()
}
