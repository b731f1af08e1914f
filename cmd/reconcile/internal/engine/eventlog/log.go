package eventlog

import (
	"context"
	"log/slog"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// logEvents writes a list of events to a slog.Logger: messages of clarifications with the fields of agentx-spec 12.3, and all
// others at debug level, warnings excepted.
func logEvents(log *slog.Logger, list []events.Event) {
	for _, e := range list {
		level, msg, attrs := eventAttrs(&e)
		log.LogAttrs(context.Background(), level, msg, attrs...)
	}
}

func eventAttrs(e *events.Event) (slog.Level, string, []slog.Attr) {
	if e.Clarification != nil {
		return clarificationAttrs(e.Clarification)
	}
	if e.Memory != nil {
		return memoryAttrs(e.Memory)
	}
	attrs := []slog.Attr{slog.String("ref", e.Ref), slog.String("reason", e.Reason), slog.String("message", e.Message)}
	if e.Node != "" {
		attrs = append(attrs, slog.String("node", e.Node))
	}
	switch {
	case e.Reason == settle.ReasonScopeViolation:
		return slog.LevelWarn, "scope-violation", attrs
	case e.Type == events.Warning:
		return slog.LevelWarn, "event", attrs
	}
	return slog.LevelDebug, "event", attrs
}

func clarificationAttrs(c *settle.Clarified) (slog.Level, string, []slog.Attr) {
	attrs := []slog.Attr{
		slog.String("clarificationId", c.ClarificationID), slog.Int("issueNumber", c.IssueNumber),
		slog.String("fromAgent", c.FromAgent), slog.String("toAgent", c.ToAgent), slog.Int("round", c.Round),
		slog.String("status", c.Status), slog.String("topic", c.Topic), slog.Bool("blocking", c.Blocking),
	}
	if c.Escalation != nil {
		attrs = append(attrs, slog.Any("escalation", c.Escalation))
	}
	level := slog.LevelInfo
	if c.Type == settle.ClarificationStale || c.Type == settle.ClarificationEscalated {
		level = slog.LevelWarn
	}
	return level, c.Type, attrs
}

func memoryAttrs(m *settle.Remembered) (slog.Level, string, []slog.Attr) {
	return slog.LevelInfo, m.Type, []slog.Attr{
		slog.String("agent", m.Agent), slog.Int("issueNumber", m.IssueNumber), slog.Int("count", m.Count),
		slog.Int("totalTokens", m.TotalTokens), slog.Any("observationIds", m.ObservationIDs),
	}
}

// monitorFindings are the findings of the monitor in a turn. The monitor acts on every finding in the same turn, so the
// turn's events report them all.
type monitorFindings struct {
	stale             map[string]bool // by id
	stuck, deadlocked int
}

func (f *monitorFindings) add(list []events.Event) {
	for i := range list {
		c := list[i].Clarification
		switch {
		case c == nil:
		case c.Type == settle.ClarificationStale:
			if f.stale == nil {
				f.stale = map[string]bool{}
			}
			f.stale[c.ClarificationID] = true
		case c.Escalation != nil && c.Escalation.Reason == schemas.EscalatedStuck:
			f.stuck++
		case c.Escalation != nil && c.Escalation.Reason == schemas.EscalatedDeadlock:
			f.deadlocked++
		}
	}
}

// log logs the findings of the turn that led to the tree: stale questions, new and old, endless exchanges, and cycles.
// Without an open question nothing is logged; without a finding the line has debug level.
func (f *monitorFindings) log(log *slog.Logger, t *state.Tree) {
	stale, open := len(f.stale), len(f.stale)+f.stuck+f.deadlocked
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		st, ok := e.Status().(*schemas.ClarificationRequestStatus)
		if !ok || st.ID == "" || !schemas.ClarificationOpen(st.Phase) {
			continue
		}
		if open++; st.Phase == schemas.ClarificationStale && !f.stale[st.ID] {
			stale++
		}
	}
	level := slog.LevelDebug
	if stale+f.stuck+f.deadlocked > 0 {
		level = slog.LevelInfo
	}
	if open > 0 {
		log.LogAttrs(context.Background(), level, "monitor", slog.Int("staleCount", stale), slog.Int("stuckCount", f.stuck),
			slog.Int("deadlockedCount", f.deadlocked))
	}
	*f = monitorFindings{}
}
