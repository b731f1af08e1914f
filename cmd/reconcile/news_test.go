package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
)

// notes keeps what progress shows.
type notes struct {
	render.Silent
	lines []string
}

func (n *notes) Note(text string) { n.lines = append(n.lines, text) }

func newTestNews(t *testing.T) (*news, *notes) {
	t.Helper()
	shown := &notes{}
	a := &app{stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }, now: time.Now}
	a.global.dir = t.TempDir()
	store, err := a.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	w := &wiring{app: a, store: store, options: loopOptions{progress: shown, talk: true}}
	return w.newNews(), shown
}

func answered(n int, body string) controllers.Event {
	turn := &schemas.ThreadEntry{ClarificationTurn: schemas.ClarificationTurn{Round: 1, From: "architect",
		Type: schemas.TurnAnswer, Body: body, Timestamp: asked}}
	c := &controllers.Clarified{Type: controllers.ClarificationAnswered, ClarificationID: fmt.Sprintf("CLR-42-%03d", n),
		FromAgent: "engineer", ToAgent: "architect", Round: 1, Turn: turn}
	ref := schemas.Ref{Kind: schemas.ClarificationRequestKind.Name, Name: fmt.Sprint("r", n)}
	return controllers.Event{Time: asked, Ref: ref, Reason: "Answered", Clarified: c}
}

// What is decided is in the log at once, and shown only when the turn is over: a slow terminal holds up no lock.
func TestNewsIsShownAfterTheTurn(t *testing.T) {
	n, shown := newTestNews(t)
	n.record([]controllers.Event{answered(1, "Both."), {Ref: schemas.Ref{Kind: "DAG", Name: "x"}, Reason: "Started"}})
	logged, err := events.Read(n.store.Root(), events.Filter{})
	if err != nil || len(logged) != 2 || len(shown.lines) != 0 {
		t.Errorf("in the turn: %d events in the log, %v; shown %q", len(logged), err, shown.lines)
	}
	n.observe([]controllers.Report{{}}, nil) // a report, not the end of a turn
	if len(shown.lines) != 0 {
		t.Errorf("shown too soon: %q", shown.lines)
	}
	n.observe(nil, nil)
	if want := []string{"[Architect] Both."}; !slices.Equal(shown.lines, want) {
		t.Errorf("shown %q, want %q", shown.lines, want)
	}
}

// What was said in one turn and has no room is counted, and told; the log has it.
func TestNewsTellsWhatItDoesNotShow(t *testing.T) {
	const said = talkBuffer + 7
	n, shown := newTestNews(t)
	var list []controllers.Event
	for i := range said {
		list = append(list, answered(i, "Yes."))
	}
	n.record(list)
	n.show()
	n.record(list[:1])
	n.record(list)
	n.close()
	told := slices.DeleteFunc(slices.Clone(shown.lines), func(s string) bool { return s == "[Architect] Yes." })
	if want := []string{
		`7 more events about questions; "reconcile events" lists them`,
		`8 more events about questions; "reconcile events" lists them`,
	}; !slices.Equal(told, want) || len(shown.lines) != 2*talkBuffer+2 {
		t.Errorf("of %d lines, these tell of others: %q, want %q", len(shown.lines), told, want)
	}
	if logged, err := events.Read(n.store.Root(), events.Filter{}); err != nil || len(logged) != 2*said+1 {
		t.Errorf("%d events in the log, want %d; %v", len(logged), 2*said+1, err)
	}
}

func TestTalkLines(t *testing.T) {
	question := answered(1, "").Clarified
	question.Turn.Type, question.Turn.From, question.Turn.Body = schemas.TurnQuestion, "engineer", "Is T<S> fine?"
	long := answered(2, strings.Repeat("A line.\n", 10)).Clarified
	late := answered(3, "").Clarified
	late.Turn = nil
	escalated := answered(4, "").Clarified
	escalated.Topic, escalated.Escalation = "Cache", &schemas.Escalation{Reason: schemas.EscalatedTarget, Action: "Decide: reconcile clarify resolve CLR-42-004 TEXT"}
	for _, c := range []struct {
		event *controllers.Clarified
		want  []string
	}{
		{question, []string{"[Engineer -> Architect] Clarification needed (CLR-42-001):", "  Is T<S> fine?"}},
		{long, []string{"[Architect] A line.", "  A line.", "  A line.", "  A line.", "  A line.", "  …"}},
		{late, []string{"[Architect] CLR-42-003: no answer in time"}},
		{escalated, []string{"[ESCALATED] CLR-42-004: Cache", "  Why: the agent that was asked is not there any more (TargetGone)", "  Decide: reconcile clarify resolve CLR-42-004 TEXT"}},
	} {
		if got := talkLines(c.event); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
