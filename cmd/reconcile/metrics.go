package main

import (
	"context"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

const formatPrometheus = "prometheus"

func newMetricsCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "metrics",
		Short: "Show how work waits, how long it runs and what it uses",
		Long: `Show, by lane, by session and by agent, how many nodes wait for a place and run, how long runs waited and took, and what agents used. The
figures come from the statuses and the records of runs that are kept (runs.keep); records of earlier versions do not say how long
a run waited. -o prometheus prints them for a collector of text files.`,
		Example: "  reconcile metrics\n  reconcile metrics -o json\n  reconcile metrics -o prometheus > /var/lib/node_exporter/reconcile.prom",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.metrics(cmd.Context()) },
	}
	a.outputFlag(cmd, cmd.Flags(), formatTable, formatJSON, formatYAML, formatPrometheus)
	return cmd
}

func (a *app) metrics(ctx context.Context) error {
	m, err := ops.Metrics(ctx, a.env())
	if err == nil && a.global.output == formatPrometheus {
		return render.MetricsPrometheus(a.stdout, m)
	}
	return a.result(m, err, func() error { return render.MetricsText(a.stdout, a.palette(), m) })
}
