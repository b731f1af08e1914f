package eventlog

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// The monitor's line counts what is stale, be it new or not, and what was escalated in this turn because it went in
// circles or was in a ring. The next turn begins at nothing.
func TestFindings(t *testing.T) {
	clarified := func(id, typ, reason string) events.Event {
		c := &settle.Clarified{Type: typ, ClarificationID: id}
		if reason != "" {
			c.Escalation = &schemas.Escalation{Reason: reason}
		}
		return events.Event{Clarification: c}
	}
	stands := func(name, id, phase string) *state.Entry {
		e := &state.Entry{Ref: schemas.Ref{Kind: schemas.ClarificationRequestKind.Name, Name: name}}
		if id != "" {
			st := &schemas.ClarificationRequestStatus{ID: id}
			st.Phase = phase
			e.SetStatus(st)
		}
		return e
	}
	quiet := state.NewTree(controllers.Schemas(), nil, nil, stands("a", "CLR-42-001", schemas.ClarificationResolved), stands("new", "", ""))
	open := state.NewTree(controllers.Schemas(), nil, nil, stands("a", "CLR-42-001", schemas.ClarificationPending))
	stale := state.NewTree(controllers.Schemas(), nil, nil, stands("a", "CLR-42-001", schemas.ClarificationStale),
		stands("b", "CLR-42-002", schemas.ClarificationStale), stands("c", "CLR-42-003", schemas.ClarificationEscalated))
	for _, c := range []struct {
		name   string
		events []events.Event
		tree   *state.Tree
		want   string // "" for nothing
	}{
		{"nothing open", nil, quiet, ""},
		{"nothing wrong", nil, open, `{"level":"DEBUG","msg":"monitor","staleCount":0,"stuckCount":0,"deadlockedCount":0}`},
		{"stale, one of them since this turn", []events.Event{clarified("CLR-42-002", settle.ClarificationStale, "")}, stale,
			`{"level":"INFO","msg":"monitor","staleCount":2,"stuckCount":0,"deadlockedCount":0}`},
		{"stale and answered in one turn", []events.Event{clarified("CLR-42-001", settle.ClarificationStale, "")}, quiet,
			`{"level":"INFO","msg":"monitor","staleCount":1,"stuckCount":0,"deadlockedCount":0}`},
		{"escalated", []events.Event{
			clarified("CLR-42-004", settle.ClarificationEscalated, schemas.EscalatedStuck),
			clarified("CLR-42-005", settle.ClarificationEscalated, schemas.EscalatedDeadlock),
			clarified("CLR-42-006", settle.ClarificationEscalated, schemas.EscalatedDeadlock),
			clarified("CLR-42-007", settle.ClarificationEscalated, schemas.EscalatedMaxRounds), {Ref: "dag/x"},
		}, quiet, `{"level":"INFO","msg":"monitor","staleCount":0,"stuckCount":1,"deadlockedCount":2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f monitorFindings
			f.add(c.events)
			if got := logged(t, func(log *slog.Logger) { f.log(log, c.tree) }); got != c.want {
				t.Errorf("logged %s, want %s", got, c.want)
			}
			const nothing = `{"level":"DEBUG","msg":"monitor","staleCount":0,"stuckCount":0,"deadlockedCount":0}`
			if got := logged(t, func(log *slog.Logger) { f.log(log, open) }); got != nothing {
				t.Errorf("the next turn logged %s", got)
			}
		})
	}
}

// logged is what is logged at all levels, without the times.
func logged(t *testing.T, do func(*slog.Logger)) string {
	t.Helper()
	var b bytes.Buffer
	do(slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})))
	for line := range bytes.Lines(b.Bytes()) {
		if !json.Valid(line) {
			t.Errorf("not JSON: %s", line)
		}
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

// Every event is logged once, at the level that it deserves; a scope violation is a warning of its own name.
func TestEventLevels(t *testing.T) {
	for _, c := range []struct {
		event events.Event
		level slog.Level
		msg   string
	}{
		{events.Event{Type: events.Normal, Reason: "Succeeded"}, slog.LevelDebug, "event"},
		{events.Event{Type: events.Warning, Reason: "Failed"}, slog.LevelWarn, "event"},
		{events.Event{Type: events.Warning, Reason: settle.ReasonScopeViolation}, slog.LevelWarn, "scope-violation"},
		{events.Event{Clarification: &settle.Clarified{Type: settle.ClarificationAnswered}}, slog.LevelInfo,
			"clarification-answered"},
		{events.Event{Clarification: &settle.Clarified{Type: settle.ClarificationStale}}, slog.LevelWarn,
			"clarification-stale"},
		{events.Event{Clarification: &settle.Clarified{Type: settle.ClarificationEscalated}}, slog.LevelWarn,
			"clarification-escalated"},
	} {
		if level, msg, _ := eventAttrs(&c.event); level != c.level || msg != c.msg {
			t.Errorf("%+v is logged as %s %s, want %s %s", c.event, level, msg, c.level, c.msg)
		}
	}
}
