package doctor

import (
	"context"
	"slices"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/limits"
	"reconcile.dev/reconcile/schemas"
)

// checkLimits tries out what can bound the runs of nodes with limits, and warns where nodes ask for more.
func checkLimits(_ context.Context, e *Patient) []Finding {
	by, why := limits.Describe()
	detail := "runs are limited by: " + by
	if why != "" {
		detail += "; " + why
	}
	if by != schemas.LimitsByGroup && e.tree != nil && asksForLimits(e) {
		return []Finding{{Level: Warn, Detail: detail, Fix: "run reconcile where control groups are delegated, as in a user session of systemd"}}
	}
	return ok(detail)
}

// asksForLimits reports whether a node of the tree has limits.
func asksForLimits(e *Patient) bool {
	for _, entry := range e.tree.Entries(schemas.DAGKind.Name) {
		if spec := schemas.SpecAs[*schemas.DAGSpec](entry.Object); spec != nil && slices.ContainsFunc(spec.Nodes, func(n schemas.Node) bool { return n.Limits != nil }) {
			return true
		}
	}
	return false
}
