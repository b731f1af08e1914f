package clarify

import (
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// nodeRun is a run of the asking node that began and ended at a minute.
func nodeRun(seq int, began, ended float64, outcome string) *schemas.Run {
	at := func(m float64) schemas.Time {
		return schemas.NewTime(start.Add(time.Duration(m * float64(time.Minute))))
	}
	return &schemas.Run{Key: taskKey(seq), Seq: seq, Outcome: outcome, StartedAt: at(began), FinishedAt: at(ended)}
}

func taskKey(seq int) string {
	return "dags/checks/implement-0123456789abcdef-" + string(rune('0'+seq))
}

// asking is a matter whose asker is the first run of a node.
func asking(t *testing.T) *story {
	s := newStory(t)
	s.m.Task = &Task{Key: taskKey(1), Runs: []*schemas.Run{nodeRun(1, -1, 0, schemas.OutcomeAsked)}}
	s.m.Task.Runs[0].Asks = &schemas.Ask{To: "architect", Question: question, Blocking: true}
	return s.decide().want("pending", 1).at(1).run(succeeded, "Repository pattern with adapter.").decide().
		want("answered", 1)
}

func (s *story) node(r *schemas.Run) *story {
	s.m.Task.Runs = append(s.m.Task.Runs, r)
	return s.decide()
}

func TestNodeResolvesBySuccess(t *testing.T) {
	s := asking(t).at(3)
	r := nodeRun(2, 2, 3, succeeded)
	r.Resolution = "Clear, going on."
	s.node(r).want("resolved", 2)
	e := s.v.Status.Thread[2]
	if e.Body != "Clear, going on." || e.From != "engineer" || e.Source != "run/"+taskKey(2) ||
		!e.Timestamp.Equal(start.Add(3*time.Minute)) {
		t.Errorf("entry %+v", e)
	}
	s = asking(t).at(3).node(nodeRun(2, 2, 3, succeeded)).want("resolved", 2)
	if s.v.Status.Thread[2].Body == "" {
		t.Error("a resolution without words")
	}
}

func TestNodeAsksAgain(t *testing.T) {
	s := asking(t).at(3)
	r := nodeRun(2, 2, 3, schemas.OutcomeAsked)
	r.Asks = &schemas.Ask{To: "architect", Topic: "pooling", Question: "Who pools connections?"}
	s.node(r).want("pending", 2).wantAsk("round_2", 1)
	if e := s.v.Status.Thread[2]; e.Type != "question" || e.Body != "Who pools connections?" || e.Round != 2 {
		t.Errorf("entry %+v", e)
	}
	s.at(4).run(succeeded, "Config-driven settings.").decide().want("answered", 2)
	s.at(6).node(nodeRun(3, 5, 6, succeeded)).want("resolved", 3)
}

// TestNodeWithoutTheAnswer: a run that did not have the answer, another question, and a failure settle nothing.
func TestNodeWithoutTheAnswer(t *testing.T) {
	s := asking(t).at(9)
	s.node(nodeRun(2, 0.5, 3, succeeded)).want("answered", 1)
	other := nodeRun(3, 3, 4, schemas.OutcomeAsked)
	other.Asks = &schemas.Ask{To: "product-manager", Question: "Who needs this at all?"}
	s.node(other).want("answered", 1)
	s.node(nodeRun(4, 4, 5, failedRun)).want("answered", 1)
	s.node(nodeRun(5, 5, 6, succeeded)).want("resolved", 2)
}

func TestNodeAsksBeyondTheRounds(t *testing.T) {
	s := asking(t)
	s.m.Old.MaxRounds = 1
	r := nodeRun(2, 2, 3, schemas.OutcomeAsked)
	r.Asks = &schemas.Ask{To: "architect", Question: "Who pools connections?"}
	s.at(3).node(r).want("escalated", 1).wantReason(schemas.EscalatedMaxRounds)
	if p := s.v.Status.Escalation.Positions[0]; p.Body != "Who pools connections?" {
		t.Errorf("position %+v", p)
	}
}

// TestNodeWhoseRunsWerePruned: without the record of the run that asked, later runs still count, earlier ones do not.
func TestNodeWhoseRunsWerePruned(t *testing.T) {
	s := asking(t)
	s.m.Task.Runs = []*schemas.Run{nodeRun(7, -9, -8, schemas.OutcomeAsked)}
	s.m.Task.Runs[0].Asks = &schemas.Ask{To: "architect", Question: "An old one?"}
	s.at(3).node(nodeRun(2, 2, 3, succeeded)).want("resolved", 2)
}
