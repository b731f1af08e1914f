package main

import (
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
)

// matterArguments is [arguments] for commands whose first one names a clarification. What can be neither an id nor a name
// is a wrong command line, which is told before anything is read or run.
func matterArguments(least, most int, words string) cobra.PositionalArgs {
	number := arguments(least, most, words)
	return func(cmd *cobra.Command, args []string) error {
		for i := range args {
			args[i] = strings.TrimPrefix(args[i], guard)
		}
		if len(args) > most && most > 1 {
			return badUsage("%s takes one text, and here are %d words: put the text in quotes; usage: %s", cmd.CommandPath(),
				len(args)-1, cmd.UseLine())
		}
		if err := number(cmd, args); err != nil {
			return err
		}
		if _, _, ok := clarify.ReadID(args[0]); !ok && schemas.CheckName(args[0]) != nil {
			return ops.NoThreadID(args[0])
		}
		return nil
	}
}

// completeMatters offers the ids of the open clarifications.
func (a *app) completeMatters(
	cmd *cobra.Command, args []string, _ string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	t := a.loadQuietly(cmd)
	if t == nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, m := range controllers.Threads(t, -1, true) {
		out = append(out, cobra.CompletionWithDesc(m.Title(), render.Line(m.Topic)))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
