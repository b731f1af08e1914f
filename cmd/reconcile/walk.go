package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

// bindWalk binds the flags that say over which edges and nodes related and path go.
func bindWalk(cmd *cobra.Command, w *ops.Walk) {
	f := cmd.Flags()
	namesFlag(cmd, f, &w.Edges, "edge", "only over edges of `TYPE`: calls, imports, contains, references…; may be repeated", ops.EdgeNames())
	namesFlag(cmd, f, &w.Domains, "domain", "only through `DOMAIN`: code, history or academic; may be repeated", ops.DomainNames())
	namesFlag(cmd, f, &w.Kinds, "kind", "only through nodes of `KIND`: function, method, type, file, doc, task…; may be repeated",
		ops.KindNames())
	all := append(append(ops.EdgeNames(), ops.KindNames()...), ops.DomainNames()...)
	namesFlag(cmd, f, &w.Avoid, "avoid", "not over edges, kinds or domains of `NAME`; may be repeated", all)
	w.Direction = ops.Directions[0]
	choiceFlag(cmd, f, &w.Direction, "direction", "go over edges `WAY`: "+strings.Join(ops.Directions, ", "), ops.Directions)
}

// namesFlag is a flag for some of the given names, which the shell completes.
func namesFlag(cmd *cobra.Command, f *pflag.FlagSet, to *[]string, name, usage string, names []string) {
	f.StringSliceVar(to, name, nil, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// choiceFlag is a flag for one of the given names, which the shell completes.
func choiceFlag(cmd *cobra.Command, f *pflag.FlagSet, to *string, name, usage string, names []string) {
	f.Var(&choice{value: to, allowed: names}, name, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// hideDefaults keeps the defaults of numbers out of the help, where they mean that no number is given.
func hideDefaults(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f.Lookup(name).DefValue = "0"
	}
}

// changed are those of the flags that were given.
func changed(cmd *cobra.Command, names ...string) []string {
	var out []string
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			out = append(out, "--"+name)
		}
	}
	return out
}
