package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

func answered(n int, body string) *settle.Clarified {
	turn := &schemas.ThreadEntry{ClarificationTurn: schemas.ClarificationTurn{Round: 1, From: "architect",
		Type: schemas.TurnAnswer, Body: body, Timestamp: schemas.NewTime(time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC))}}
	return &settle.Clarified{Type: settle.ClarificationAnswered, ClarificationID: fmt.Sprintf("CLR-42-%03d", n),
		FromAgent: "engineer", ToAgent: "architect", Round: 1, Turn: turn}
}

func TestTalkLines(t *testing.T) {
	question := answered(1, "")
	question.Turn.Type, question.Turn.From, question.Turn.Body = schemas.TurnQuestion, "engineer", "Is T<S> fine?"
	long := answered(2, strings.Repeat("A line.\n", 10))
	late := answered(3, "")
	late.Turn = nil
	escalated := answered(4, "")
	escalated.Topic, escalated.Escalation = "Cache", &schemas.Escalation{Reason: schemas.EscalatedTarget, Action: "Decide: reconcile clarify resolve CLR-42-004 TEXT"}
	for _, c := range []struct {
		event *settle.Clarified
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
