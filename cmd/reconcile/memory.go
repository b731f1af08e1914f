package main

import (
	"github.com/spf13/cobra"
)

const memoryLong = `Keep what agents learn, find it again, and see what a next agent is told of it.

What an agent learned is captured when its work ends, as an Observation in specs/, and kept in state/memory/. Ids begin
with obs- and are completed by the shell. list and search show a line of each observation, and what it costs to read all
of it; get prints the whole.`

func newMemoryCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Keep what agents learn: capture, search, recall, verify and compact it",
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
