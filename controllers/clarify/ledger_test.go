package clarify

import (
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func minute(m float64) schemas.Time {
	return schemas.NewTime(start.Add(time.Duration(m * float64(time.Minute))))
}

// ledger makes the ledger say what the status says.
func (s *story) ledger() *schemas.Clarification {
	c := Record(s.m.Name, s.m.Spec, s.v.Status)
	s.m.Ledger = &c
	return &c
}

// other is an entry of another program.
func other(round int, typ, from, body string, at float64) schemas.ClarificationTurn {
	return schemas.ClarificationTurn{Round: round, Type: typ, From: from, Body: body, Timestamp: minute(at)}
}

// TestForeignEntries: what another program writes into the ledger is taken in order, and moves the state as far as the
// picture allows.
func TestForeignEntries(t *testing.T) {
	s := newStory(t).human().decide()
	c := s.ledger()
	c.Thread = append(c.Thread, other(1, "answer", "architect", "Migrate.", 2),
		other(2, "question", "engineer", "With which tool exactly?", 3), other(2, "answer", "architect", "Goose.", 4),
		other(3, "resolution", "engineer", "Clear.", 5))
	c.Status, c.Round, c.ResolvedAt = "resolved", 3, minute(5)
	s.at(9).decide().want("resolved", 3)
	if got := s.path(); got != "pending answered pending answered resolved" {
		t.Errorf("path %s", got)
	}
	if st := s.v.Status; !st.ResolvedAt.Equal(minute(5).Time) || st.Thread[3].Source != SourceLedger {
		t.Errorf("status %s", encoded(t, st))
	}
}

// TestForeignNonsense: entries that make no sense are kept and move nothing.
func TestForeignNonsense(t *testing.T) {
	s := newStory(t).human().decide()
	c := s.ledger()
	c.Thread = append(c.Thread, other(1, "resolution", "engineer", "Clear.", 2),
		other(0, "praise", "maria", "Well done", 1), other(9, "question", "engineer", "Once more?", 3))
	s.at(5).decide().want("pending", 1)
	if len(s.v.Status.Thread) != 4 {
		t.Errorf("thread %s", encoded(t, s.v.Status.Thread))
	}
	s.ledger()
	s.reply("answer", "maria", "Migrate.").want("answered", 1)
}

func TestForeignQuestionAfterTheLimit(t *testing.T) {
	s := newStory(t)
	s.m.Limits.Rounds = 1
	s.decide().run(succeeded, "Migrate.").decide()
	c := s.ledger()
	c.Thread = append(c.Thread, other(2, "question", "engineer", "With which tool exactly?", 3))
	c.Status, c.Round = "pending", 2
	s.at(5).decide().want("escalated", 1).wantReason(schemas.EscalatedMaxRounds)
	if len(s.v.Status.Thread) != 4 { // the foreign question is kept
		t.Errorf("thread %s", encoded(t, s.v.Status.Thread))
	}
}

// TestForeignStatus: a status without an entry is followed where the picture has an edge.
func TestForeignStatus(t *testing.T) {
	for _, c := range []struct{ state, theirs, want string }{
		{"pending", "abandoned", "abandoned"}, {"pending", "stale", "stale"}, {"pending", "escalated", "escalated"},
		{"pending", "resolved", "pending"}, {"pending", "answered", "pending"}, {"pending", "weird", "pending"},
		{"answered", "resolved", "resolved"}, {"answered", "escalated", "escalated"}, {"answered", "abandoned", "answered"},
		{"answered", "pending", "answered"}, {"answered", "stale", "answered"}, {"stale", "pending", "stale"},
		{"stale", "escalated", "escalated"}, {"stale", "abandoned", "stale"}, {"escalated", "resolved", "resolved"},
		{"escalated", "pending", "escalated"}, {"resolved", "pending", "resolved"}, {"abandoned", "pending", "abandoned"},
		{"resolved", "abandoned", "resolved"},
	} {
		s := states[c.state](t)
		s.ledger().Status = c.theirs
		if s.decide(); s.v.Status.Phase != c.want {
			t.Errorf("%s, and the ledger says %s: %s, want %s", c.state, c.theirs, s.v.Status.Phase, c.want)
		}
		if c.want == "resolved" && s.v.Status.ResolvedAt.IsZero() {
			t.Errorf("%s: no time of resolution", c.state)
		}
	}
}

// TestImport takes over a record that another program wrote.
func TestImport(t *testing.T) {
	s := newStory(t).human()
	s.m.Spec.Imported = "CLR-42-007"
	s.m.ID = "CLR-42-007"
	s.m.Ledger = &schemas.Clarification{ID: "CLR-42-007", From: "engineer", To: "architect", Topic: s.m.Spec.Topic,
		Blocking: true, Status: "pending", Round: 1, MaxRounds: 3, Created: minute(-60), StaleAfter: minute(20),
		Thread: []schemas.ClarificationTurn{other(1, "question", "engineer", question, -59)}}
	s.decide().want("pending", 1)
	st := s.v.Status
	if !st.Created.Equal(minute(-60).Time) || !st.StaleAfter.Equal(minute(20).Time) || st.MaxRounds != 3 ||
		!st.Thread[0].Timestamp.Equal(minute(-59).Time) || st.Thread[0].Source != SourceRequest {
		t.Errorf("status %s", encoded(t, st))
	}
}

// TestStatusLost rebuilds a status from the ledger and the objects, after every step of a story.
func TestStatusLost(t *testing.T) {
	steps := []func(*story){
		func(s *story) { s.decide() },
		func(s *story) { s.at(2).run(succeeded, "Repository pattern with adapter.").decide() },
		func(s *story) { s.at(3).reply("question", "engineer", "Who pools connections?") },
		func(s *story) { s.at(40).decide() },
		func(s *story) { s.at(41).run(succeeded, "Config-driven settings for each host.").decide() },
		func(s *story) { s.at(42).reply("escalation", "engineer", "We disagree.") },
		func(s *story) { s.at(43).reply("resolution", "maria", "Config it is.") },
	}
	s := newStory(t)
	for i, step := range steps {
		step(s)
		was := encoded(t, s.v.Status)
		lost := &story{t: t, m: &Input{}}
		*lost.m = *s.m
		lost.m.Old = nil
		lost.ledgerOf(s)
		if lost.decide(); encoded(t, lost.v.Status) != was {
			t.Errorf("step %d: rebuilt\n%s\nfrom\n%s", i, encoded(t, lost.v.Status), was)
		}
	}
	s.want("resolved", 3)
}

func (s *story) ledgerOf(o *story) {
	c := Record(o.m.Name, o.m.Spec, o.v.Status)
	s.m.Ledger = &c
}

// TestCrashBetweenLedgerAndStatus: the ledger is written first. A turn that dies before it writes the status is decided
// again, later, and comes to the same.
func TestCrashBetweenLedgerAndStatus(t *testing.T) {
	s := newStory(t).human().decide()
	old := s.m.Old
	s.at(3).reply("answer", "architect", "Migrate.").want("answered", 1)
	was := encoded(t, s.v.Status)
	s.ledger()
	s.m.Old = old
	if s.at(8).decide(); encoded(t, s.v.Status) != was {
		t.Errorf("decided again\n%s\nfirst\n%s", encoded(t, s.v.Status), was)
	}
}
