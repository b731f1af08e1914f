package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/metrics"
)

// MetricsText writes metrics as tables: by lane, by session, and by agent if there is one.
func MetricsText(w io.Writer, p Palette, m metrics.Metrics) error {
	if len(m.Lanes) == 0 {
		_, err := fmt.Fprintln(w, "nothing waits, and no run is on record")
		return err
	}
	for i, part := range []struct {
		head string
		rows []metrics.Figures
	}{{"LANE", m.Lanes}, {"SESSION", m.Sessions}, {"AGENT", m.Agents}} {
		if len(part.rows) == 0 {
			continue
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		heads := []string{part.head, "QUEUED", "OLDEST", "RUNNING", "RUNS", "FAILED", "WAITED P50", "P95", "P99", "TOOK P50", "P95", "P99", "TOKENS", "COST"}
		if part.head == "AGENT" {
			heads = append(heads, "BREAKER", "FAILURES")
		}
		t := NewTable(p, heads...)
		for _, f := range part.rows {
			row := append(append([]string{f.Name, strconv.Itoa(f.Queued), seconds(f.OldestSeconds, f.Queued), strconv.Itoa(f.Running),
				strconv.Itoa(f.Runs), strconv.Itoa(f.Failed())}, append(quantiles(f.Waited), quantiles(f.Worked)...)...),
				cmp.Or(f.Used.Tokens(), none), cmp.Or(f.Used.Cost(), none))
			if part.head == "AGENT" {
				row = append(row, f.Breaker, classes(f.Failures))
			}
			t.Row(row...)
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	return nil
}

// classes shows on one line of the metrics how many runs failed for what.
func classes(failures map[string]int) string {
	var out []string
	for _, class := range slices.Sorted(maps.Keys(failures)) {
		out = append(out, fmt.Sprintf("%s %d", class, failures[class]))
	}
	return cmp.Or(strings.Join(out, ", "), none)
}

func quantiles(q metrics.Quantiles) []string {
	return []string{seconds(q.P50, q.Count), seconds(q.P95, q.Count), seconds(q.P99, q.Count)}
}

// seconds formats a duration of which there are n.
func seconds(s float64, n int) string {
	if n == 0 {
		return "-"
	}
	return Age(time.Duration(s * float64(time.Second)))
}

// MetricsPrometheus writes metrics in Prometheus' text format.
func MetricsPrometheus(w io.Writer, m metrics.Metrics) error {
	b := &prometheus{parts: []labelled{{"lane", m.Lanes}, {"session", m.Sessions}, {"agent", m.Agents}}}
	b.family("reconcile_queued_nodes", "gauge", "Nodes that wait for a place.", func(f *metrics.Figures) float64 { return float64(f.Queued) })
	b.family("reconcile_oldest_queued_seconds", "gauge", "How long the first of them has waited.", func(f *metrics.Figures) float64 { return f.OldestSeconds })
	b.family("reconcile_running_nodes", "gauge", "Nodes that run.", func(f *metrics.Figures) float64 { return float64(f.Running) })
	b.summary("reconcile_wait_seconds", "How long runs waited for a place.", func(f *metrics.Figures) metrics.Quantiles { return f.Waited })
	b.summary("reconcile_run_seconds", "How long runs took.", func(f *metrics.Figures) metrics.Quantiles { return f.Worked })
	b.runs()
	b.failures()
	b.breakers()
	b.family("reconcile_tokens", "gauge", "Tokens that agents used, by the records that are kept.", func(f *metrics.Figures) float64 { return float64(f.Tokens) })
	b.family("reconcile_estimated_tokens", "gauge", "Tokens that are estimated, of turns of which nobody counted them: a lower bound.", func(f *metrics.Figures) float64 { return float64(f.Used.EstimatedTokens) })
	b.family("reconcile_cost_usd", "gauge", "What agents cost, by the records that are kept.", func(f *metrics.Figures) float64 { return f.CostUSD })
	b.family("reconcile_unknown_cost_turns", "gauge", "Turns of agents whose cost is not known.", func(f *metrics.Figures) float64 { return float64(f.Used.UnknownCost) })
	_, err := io.WriteString(w, b.String())
	return err
}

type labelled struct {
	label string
	rows  []metrics.Figures
}

// prometheus writes families of metrics. Each has the figures by lane and by session, under different names, so that a sum over
// labels counts nothing twice.
type prometheus struct {
	strings.Builder
	parts []labelled
}

func (b *prometheus) each(name, kind, help string, write func(name, label string, f *metrics.Figures)) {
	for _, part := range b.parts {
		name := name + "_by_" + part.label
		fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
		for i := range part.rows {
			write(name, fmt.Sprintf("%s=%q", part.label, part.rows[i].Name), &part.rows[i])
		}
	}
}

func (b *prometheus) family(name, kind, help string, value func(*metrics.Figures) float64) {
	b.each(name, kind, help, func(name, label string, f *metrics.Figures) { fmt.Fprintf(b, "%s{%s} %g\n", name, label, value(f)) })
}

func (b *prometheus) summary(name, help string, of func(*metrics.Figures) metrics.Quantiles) {
	b.each(name, "summary", help, func(name, label string, f *metrics.Figures) {
		q := of(f)
		if q.Count > 0 {
			fmt.Fprintf(b, "%s{%s,quantile=\"0.5\"} %g\n%s{%s,quantile=\"0.95\"} %g\n%s{%s,quantile=\"0.99\"} %g\n",
				name, label, q.P50, name, label, q.P95, name, label, q.P99)
		}
		fmt.Fprintf(b, "%s_sum{%s} %g\n%s_count{%s} %d\n", name, label, q.Sum, name, label, q.Count)
	})
}

// failures and breakers are about agents only.
func (b *prometheus) failures() {
	b.ofAgents("reconcile_failures", "Runs of agents on record that failed, by the class of the failure.", func(name, label string, f *metrics.Figures) {
		for _, class := range slices.Sorted(maps.Keys(f.Failures)) {
			fmt.Fprintf(b, "%s{%s,class=%q} %d\n", name, label, class, f.Failures[class])
		}
	})
}

func (b *prometheus) breakers() {
	b.ofAgents("reconcile_breaker", "1 for the state of the breaker.", func(name, label string, f *metrics.Figures) {
		fmt.Fprintf(b, "%s{%s,state=%q} 1\n", name, label, f.Breaker)
	})
}

func (b *prometheus) ofAgents(name, help string, write func(name, label string, f *metrics.Figures)) {
	all := b.parts
	b.parts = all[len(all)-1:]
	b.each(name, "gauge", help, write)
	b.parts = all
}

func (b *prometheus) runs() {
	b.each("reconcile_runs", "gauge", "Runs on record, by outcome.", func(name, label string, f *metrics.Figures) {
		for _, outcome := range slices.Sorted(maps.Keys(f.Outcomes)) {
			fmt.Fprintf(b, "%s{%s,outcome=%q} %d\n", name, label, outcome, f.Outcomes[outcome])
		}
	})
}
