package main

import (
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

// bindWalk binds the flags that limit the edges and nodes of related and path.
func bindWalk(cmd *cobra.Command, w *ops.Walk) {
	f := cmd.Flags()
	namesFlag(cmd, f, &w.Edges, "edge", "only edges of `TYPE`: calls, imports, contains, references…; may be repeated", ops.EdgeNames())
	namesFlag(cmd, f, &w.Domains, "domain", "only nodes of `DOMAIN`: code, history or academic; may be repeated", ops.DomainNames())
	namesFlag(cmd, f, &w.Kinds, "kind", "only nodes of `KIND`: function, method, type, file, doc, task…; may be repeated",
		ops.KindNames())
	all := append(append(ops.EdgeNames(), ops.KindNames()...), ops.DomainNames()...)
	namesFlag(cmd, f, &w.Avoid, "avoid", "exclude edges, kinds or domains of `NAME`; may be repeated", all)
	w.Direction = ops.Directions[0]
	choiceFlag(cmd, f, &w.Direction, "direction", "follow edges in the direction `WAY`: "+strings.Join(ops.Directions, ", "), ops.Directions)
}
