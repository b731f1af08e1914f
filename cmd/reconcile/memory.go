package main

import (
	"github.com/spf13/cobra"
)

const memoryLong = `Capture what agents learn, search it, and show what the next agent recalls.

What an agent learned is captured when its work ends, as an Observation in specs/, and stored in state/memory/. Ids begin
with obs-, and the shell completes them. list and search print one line for each observation, with the tokens of its full
text; get prints the full text.`

func newMemoryCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Capture what agents learn; search, recall, verify and compact it",
		Long:  memoryLong,
		Example: "  reconcile memory capture --agent engineer --issue 29 session.jsonl\n" +
			"  reconcile memory search database adapter\n" +
			"  reconcile memory recall --agent reviewer --issue 30",
		RunE: noSubcommand,
	}
	cmd.AddCommand(
		newCaptureCmd(a), newMemoryGetCmd(a), newMemoryListCmd(a), newMemorySearchCmd(a), newRecallCmd(a),
		newMemoryVerifyCmd(a), newMemoryRemoveCmd(a), newMemoryStatsCmd(a), newMemoryRebuildCmd(a), newCompactCmd(a),
		newMemoryScanCmd(a), newMemoryEvalCmd(a), newMemoryAuditCmd(a),
	)
	return cmd
}
