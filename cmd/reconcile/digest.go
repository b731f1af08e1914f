package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

// Output formats of digest in addition to those of all commands; text is its name for the table.
const (
	digestText     = "text"
	digestMarkdown = "markdown"
)

// digestOptions are the flags of digest.
type digestOptions struct {
	since string
}

// newDigestCmd returns the command under one of two names: the one of the AgentX seed, and the one below clarify.
func newDigestCmd(a *app, name string) *cobra.Command {
	o := &digestOptions{}
	cmd := &cobra.Command{
		Use:   name,
		Short: "Summarize the clarifications of a period: counts, results, topics, and who asks",
		Long: `Summarize the clarifications that were created in a period, from the ledgers: their number and states, how many were
resolved without a human, the number of rounds, the topics, and the agents that ask and are asked most. Resolved without
a human means never escalated, and neither answered nor resolved by a person, as a share of all that were resolved or
are escalated.`,
		Example: "  reconcile clarify stats\n" +
			"  reconcile clarify stats --since 24h -o markdown\n" +
			"  reconcile clarify stats --since 2026-02-01 -o json",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.digest(cmd.Context(), *o) },
	}
	cmd.Flags().StringVar(&o.since, "since", "7d", "start of the period, a `TIME`: 7d, 2w, 24h, 2026-02-01, an RFC 3339 time, or all")
	a.outputFlag(cmd, cmd.Flags(), formatTable, digestText, digestMarkdown, formatJSON, formatYAML)
	return cmd
}

func (a *app) digest(ctx context.Context, o digestOptions) error {
	since, err := parseSince(o.since, a.now())
	if err != nil {
		return err
	}
	d, err := ops.Digest(ctx, a.env(), ops.DigestRequest{Since: since})
	if err != nil {
		return err
	}
	switch a.global.output {
	case formatJSON, formatYAML:
		return a.print(d)
	case digestMarkdown:
		return render.DigestMarkdown(a.stdout, d)
	}
	return render.DigestText(a.stdout, a.palette(), d)
}

// parseSince parses the start of a period: an age (7d, 2w, 1d12h, 90m), a day in UTC (2026-02-01), an RFC 3339 time, or
// all, which is the zero time.
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "all" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, s); err == nil {
			return at, nil
		}
	}
	ago, ok := parseLong(s)
	if !ok {
		return time.Time{}, badUsage("--since %q: write a time like 7d, 2w, 24h or 1d12h, a day like 2026-02-01, or all", s)
	}
	return now.Add(-ago), nil
}

// longest bounds durations, to prevent overflow.
const longest = 100 * 365 * 24 * time.Hour

// parseLong parses a positive duration with optional weeks and days before Go's units: 2w, 7d, 1w2d12h30m.
func parseLong(s string) (time.Duration, bool) {
	var sum time.Duration
	for _, unit := range []struct {
		name string
		is   time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		number, rest, ok := strings.Cut(s, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil || n > uint64(longest/unit.is) {
			return 0, false
		}
		sum, s = sum+time.Duration(n)*unit.is, rest
	}
	if s == "" {
		return sum, sum > 0 && sum <= longest
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > longest {
		return 0, false
	}
	return sum + d, sum+d > 0 && sum+d <= longest
}

// parseDigestTime parses a time like digest; "" is the zero time.
func parseDigestTime(flag, word string, now time.Time) (time.Time, error) {
	if word == "" {
		return time.Time{}, nil
	}
	at, err := parseSince(word, now)
	if err != nil || word == "all" {
		return at, badUsage("%s %q: write how long ago, like 30d or 24h, a day like 2026-02-27, or an RFC 3339 time",
			flag, word)
	}
	return at, nil
}
