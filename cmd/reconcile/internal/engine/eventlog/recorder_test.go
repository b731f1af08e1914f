package eventlog

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// shown keeps what an observer is told.
type shown struct {
	turns  []string
	missed []int
}

func (*shown) Report(settle.Report)       {}
func (*shown) Tree(*state.Tree)           {}
func (s *shown) Said(c *settle.Clarified) { s.turns = append(s.turns, c.Turn.Body) }
func (s *shown) Missed(n int)             { s.missed = append(s.missed, n) }

func newRecorder(t *testing.T) (*Recorder, *os.Root, *shown) {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	s := &shown{}
	return New(Options{Root: root, Now: time.Now, Observer: s, Warn: func(text string) { t.Error("warned:", text) }}), root, s
}

var asked = schemas.NewTime(time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC))

func answered(n int, body string) settle.Event {
	turn := &schemas.ThreadEntry{ClarificationTurn: schemas.ClarificationTurn{Round: 1, From: "architect",
		Type: schemas.TurnAnswer, Body: body, Timestamp: asked}}
	c := &settle.Clarified{Type: settle.ClarificationAnswered, ClarificationID: fmt.Sprintf("CLR-42-%03d", n),
		FromAgent: "engineer", ToAgent: "architect", Round: 1, Turn: turn}
	ref := schemas.Ref{Kind: schemas.ClarificationRequestKind.Name, Name: fmt.Sprint("r", n)}
	return settle.Event{Time: asked, Ref: ref, Reason: "Answered", Clarified: c}
}

// What is decided is in the log at once, and shown only when the turn is over: a slow terminal holds up no lock.
func TestEventsAreShownAfterTheTurn(t *testing.T) {
	n, root, shown := newRecorder(t)
	n.Record([]settle.Event{answered(1, "Both."), {Ref: schemas.Ref{Kind: "DAG", Name: "x"}, Reason: "Started"}})
	logged, err := events.Read(root, events.Filter{})
	if err != nil || len(logged) != 2 || len(shown.turns) != 0 {
		t.Errorf("in the turn: %d events in the log, %v; shown %q", len(logged), err, shown.turns)
	}
	n.Observe([]settle.Report{{}}, nil) // a report, not the end of a turn
	if len(shown.turns) != 0 {
		t.Errorf("shown too soon: %q", shown.turns)
	}
	n.Observe(nil, nil)
	if want := []string{"Both."}; !slices.Equal(shown.turns, want) {
		t.Errorf("shown %q, want %q", shown.turns, want)
	}
}

// Of many new questions the first ones are shown; an answer among them is shown, too.
func TestManyQuestionsAreCounted(t *testing.T) {
	n, _, shown := newRecorder(t)
	var list []settle.Event
	for i := range mostAsked + 3 {
		question := answered(i, fmt.Sprint("Question ", i))
		question.Clarified.Type = settle.ClarificationRequested
		list = append(list, question)
	}
	list = append(list, answered(99, "Yes."))
	n.Record(list)
	n.Observe(nil, nil)
	if !slices.Equal(shown.missed, []int{3}) || len(shown.turns) != mostAsked+1 || shown.turns[mostAsked] != "Yes." {
		t.Errorf("shown %q, and %d are counted", shown.turns, shown.missed)
	}
	n.Record(list[:1])
	n.Observe(nil, nil)
	if len(shown.missed) != 1 || len(shown.turns) != mostAsked+2 {
		t.Errorf("of the next turn, shown %q, and %d are counted", shown.turns, shown.missed)
	}
}

// What was said in one turn and has no room is counted, and told; the log has it.
func TestEventsThatAreNotShownAreCounted(t *testing.T) {
	const said = backlog + 7
	n, root, shown := newRecorder(t)
	var list []settle.Event
	for i := range said {
		list = append(list, answered(i, "Yes."))
	}
	n.Record(list)
	n.showTalk()
	n.Record(list[:1])
	n.Record(list)
	n.Close()
	if want := []int{7, 8}; !slices.Equal(shown.missed, want) || len(shown.turns) != 2*backlog {
		t.Errorf("of %d turns, these counts tell of others: %d, want %d", len(shown.turns), shown.missed, want)
	}
	if logged, err := events.Read(root, events.Filter{}); err != nil || len(logged) != 2*said+1 {
		t.Errorf("%d events in the log, want %d; %v", len(logged), 2*said+1, err)
	}
}
