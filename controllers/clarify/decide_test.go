package clarify

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

const (
	succeeded = schemas.OutcomeSucceeded
	failedRun = schemas.OutcomeFailed
)

// TestScenario_FullFlow is the requirements document's own story: two rounds and a resolution in the third.
func TestScenario_FullFlow(t *testing.T) {
	s := newStory(t).decide().want("pending", 1).wantAsk("round_1", 1)
	s.at(2).run(succeeded, "Use repository pattern with adapter. SQLite for dev, PostgreSQL for prod.").decide()
	s.want("answered", 1).wantNoAsk()
	s.at(3).reply("question", "engineer", "Should the adapter handle connection pooling or leave that to config?")
	s.want("pending", 2).wantAsk("round_2", 1)
	if got := s.v.Status.StaleAfter.Time; !got.Equal(start.Add(33 * time.Minute)) {
		t.Errorf("the second round is stale after %s", got)
	}
	s.at(4).run(succeeded, "Config-driven. Pool settings in appsettings.json per environment.").decide().
		want("answered", 2)
	s.at(5).reply("resolution", "engineer", "Clear. Repository pattern + config-driven pooling. Proceeding.").
		want("resolved", 3)
	st := s.v.Status
	if !st.ResolvedAt.Equal(start.Add(5*time.Minute)) || !st.Created.Equal(start) || len(st.Thread) != 5 {
		t.Errorf("resolved at %s, created %s, %d entries", st.ResolvedAt, st.Created, len(st.Thread))
	}
	want := `On "Database abstraction layer approach" architect told engineer: Config-driven. Pool settings in ` +
		`appsettings.json per environment. Resolved: Clear. Repository pattern + config-driven pooling. Proceeding.`
	if st.Summary != want {
		t.Errorf("summary %q", st.Summary)
	}
	if got := s.path(); got != "pending answered pending answered resolved" {
		t.Errorf("path %s", got)
	}
}

// A status with a phase that there is not, as an editor leaves it, has the phase that its thread led to.
func TestUnknownPhase(t *testing.T) {
	s := newStory(t).decide()
	spoilt := func(phase string, round int) {
		t.Helper()
		s.v.Status.Phase = "S" + phase
		s.decide().want(phase, round)
	}
	spoilt("pending", 1)
	s.at(2).run(succeeded, "Use the repository pattern.").decide()
	spoilt("answered", 1)
	s.at(3).reply("question", "engineer", "Should the adapter pool connections?")
	spoilt("pending", 2)
	s.at(4).run(succeeded, "By the settings.").decide()
	s.at(5).reply("resolution", "engineer", "Clear.")
	spoilt("resolved", 3)
}

// TestScenario_RoundLimitEnforcement: the question after the last round is not asked; it escalates.
func TestScenario_RoundLimitEnforcement(t *testing.T) {
	answers := []string{"repository pattern everywhere please", "pool size ten for each host",
		"migrations with goose scripts", "read replicas come later on", "no transactions across both stores"}
	questions := []string{"Who pools connections?", "Which migration tool?", "Are replicas read from?",
		"Do transactions span databases?", "What about sharding tenants?"}
	for _, rounds := range []int{1, 2, 5} {
		s := newStory(t)
		s.m.Limits.Rounds = rounds
		s.decide()
		for n := 1; n <= rounds; n++ {
			s.at(float64(n)).run(succeeded, answers[n-1]).decide().want("answered", n)
			s.reply("question", "engineer", questions[n-1])
		}
		s.want("escalated", rounds).wantReason(schemas.EscalatedMaxRounds).wantNoAsk()
		e := s.v.Status.Escalation
		if e.Positions[0].Body != questions[rounds-1] || e.Positions[1].Body != answers[rounds-1] {
			t.Errorf("positions %+v", e.Positions)
		}
		if e.Action != `Decide, then run: reconcile clarify resolve CLR-42-001 "what was decided"` || len(e.Options) < 2 {
			t.Errorf("escalation %+v", e)
		}
		s.at(60).reply("question", "engineer", "And now?").want("escalated", rounds)
		s.reply("resolution", "maria", "Migrate everything.").want("resolved", rounds+1)
		if !strings.Contains(s.v.Status.Summary, "after an escalation: Migrate everything.") {
			t.Errorf("summary %q", s.v.Status.Summary)
		}
	}
}

// TestScenario_StaleDetection: past its time a question is stale; an answer of the retry leads back through pending, a
// failure of the retry to a human.
func TestScenario_StaleDetection(t *testing.T) {
	s := newStory(t).decide()
	s.at(29.99).decide().want("pending", 1)
	s.at(30).decide().want("stale", 1).wantAsk("round_1_again", 1)
	if !s.v.Status.StaleSince.Equal(start.Add(30 * time.Minute)) {
		t.Errorf("stale since %s", s.v.Status.StaleSince)
	}
	s.at(10).decide().want("stale", 1) // the clock goes back
	s.at(31)
	answered, failed := *s, *s
	answered.run(succeeded, "Dual layer.").decide().want("answered", 1)
	if answered.path() != "pending stale pending answered" {
		t.Errorf("path %s", answered.path())
	}
	failed.m = &Input{}
	*failed.m = *s.m
	failed.m.Runs, failed.m.Old = nil, decoded(t, s.v.Status)
	failed.run(failedRun, "exit status 3").decide().want("escalated", 1).wantReason(schemas.EscalatedStale)
}

// TestStaleKeepsRun: what is under way when the time is over goes on, and its answer counts.
func TestStaleKeepsRun(t *testing.T) {
	s := newStory(t).decide()
	s.m.Running = []*schemas.Run{hubRun(*s.v.Ask, start, "", "")}
	s.at(45).decide().want("stale", 1).wantAsk("round_1", 1)
	s.m.Running = nil
	s.at(46).decide().wantAsk("round_1_again", 1) // it was interrupted: nothing is known of it
	s.m.Runs = append(s.m.Runs, hubRun(Ask{Round: 1, Node: "round_1", NodeKey: s.v.Ask.NodeKey, Seq: 1}, s.m.Now, schemas.OutcomeCancelled, ""))
	s.decide().want("stale", 1).wantAsk("round_1_again", 1)
	s.run(succeeded, "Migrate.").decide().want("answered", 1)
}

func TestHumanTarget(t *testing.T) {
	s := newStory(t).human().decide().want("pending", 1).wantNoAsk()
	if !s.v.Again.Equal(start.Add(30*time.Minute)) || s.v.Await {
		t.Errorf("again %s, await %t", s.v.Again, s.v.Await)
	}
	s.at(40).decide().want("stale", 1).wantNoAsk()
	if !s.v.Again.Equal(start.Add(60 * time.Minute)) {
		t.Errorf("again %s", s.v.Again)
	}
	s.at(70).decide().want("escalated", 1).wantReason(schemas.EscalatedStale)
	if at := s.moves[len(s.moves)-1].At; !at.Equal(start.Add(60 * time.Minute)) {
		t.Errorf("escalated at %s", at)
	}
	late := newStory(t).human().decide().at(300).decide().want("escalated", 1)
	if late.path() != "pending stale escalated" || encoded(t, late.v.Status) != encoded(t, s.v.Status) {
		t.Errorf("who looks late sees something else: %s\n%s\n%s", late.path(), encoded(t, late.v.Status),
			encoded(t, s.v.Status))
	}
}

func TestNoTimeAtAll(t *testing.T) {
	person := newStory(t).human()
	person.m.Limits.SLA = 0
	if person.decide().want("escalated", 1); person.path() != "pending stale escalated" {
		t.Errorf("path %s", person.path())
	}
	agent := newStory(t)
	agent.m.Limits.SLA = 0
	agent.decide().want("stale", 1).wantAsk("round_1_again", 1)
	agent.at(5).decide().want("stale", 1).run(succeeded, "Migrate.").decide().want("answered", 1)
	agent.reply("question", "engineer", "With which tool exactly?").want("stale", 2).wantAsk("round_2_again", 1)
	agent.run(failedRun, "boom").decide().want("escalated", 2).wantReason(schemas.EscalatedStale)
}

func TestAgentFailsTwice(t *testing.T) {
	s := newStory(t).decide().at(1).run(failedRun, "exit status 1").decide().want("pending", 1).wantNoAsk()
	if !s.v.Await || !s.v.Again.Equal(start.Add(90*time.Second)) {
		t.Errorf("again %s, await %t", s.v.Again, s.v.Await)
	}
	s.at(1.5).decide().wantAsk("round_1", 2).run(schemas.OutcomeTimedOut, "").decide().want("escalated", 1).
		wantReason(schemas.EscalatedAgent)
}

func TestWhatIsNoAttempt(t *testing.T) {
	s := newStory(t).decide()
	for range 5 {
		s.run(schemas.OutcomeCancelled, "").decide().want("pending", 1)
	}
	s.wantAsk("round_1", 6).run(failedRun, "x").decide().at(5).decide().wantAsk("round_1", 7)
	s.m.Target.Key = "repaired" // the runner was changed: what failed before was another one
	s.decide().wantAsk("round_1", 1).run(failedRun, "x").decide().want("pending", 1)
}

func TestEvasiveAnswerIsFailure(t *testing.T) {
	for _, answer := range []string{"", "  \n", question,
		"Dual-layer or migrate? ADR-42 says PostgreSQL, codebase SQLite?"} {
		s := newStory(t).decide().run(succeeded, answer).decide().want("pending", 1)
		s.at(1).decide().run(succeeded, answer).decide().want("escalated", 1).wantReason(schemas.EscalatedAgent)
	}
	s := newStory(t).decide().run(schemas.OutcomeAsked, "").decide().want("pending", 1)
	s.at(1).decide().run(succeeded, "Migrate.").decide().want("answered", 1)
}

func TestStructuredAndLongAnswers(t *testing.T) {
	s := newStory(t).decide().run(succeeded, strings.Repeat("ü", 5000)).decide().want("answered", 1)
	if body := s.v.Status.Thread[1].Body; len([]rune(body)) != maxBody || !strings.HasSuffix(body, "…") {
		t.Errorf("%d characters, ends in %q", len([]rune(body)), body[len(body)-5:])
	}
	s = newStory(t).decide().run(succeeded, "x")
	s.m.Runs[0].Result = json.RawMessage(`{"layer":"dual"}`)
	if s.decide().want("answered", 1); s.v.Status.Thread[1].Body != `{"layer":"dual"}` {
		t.Errorf("answer %q", s.v.Status.Thread[1].Body)
	}
}

// TestScenario_StuckDetection: two rounds that say the same are escalated; short answers to different questions are
// not.
func TestScenario_StuckDetection(t *testing.T) {
	s := newStory(t).decide().run(succeeded, "See ADR-42 section three.").decide()
	s.reply("question", "engineer", "ADR-42 says PostgreSQL, but the codebase uses SQLite: dual-layer or migrate?").
		want("escalated", 2).wantReason(schemas.EscalatedStuck)

	s = newStory(t).decide().run(succeeded, "Read the decision record first.").decide()
	s.reply("question", "engineer", "Which section of it?").run(succeeded, "Read the decision record, first!").decide().
		want("escalated", 2).wantReason(schemas.EscalatedStuck)

	s = newStory(t).decide().run(succeeded, "Yes.").decide()
	s.reply("question", "engineer", "Which section of it?").run(succeeded, "Yes.").decide().want("answered", 2)
}

func TestAbandoned(t *testing.T) {
	s := newStory(t).human().decide()
	s.m.Left = "it started work on issue 43"
	s.at(3).decide().want("abandoned", 1).wantNoAsk()
	if len(s.v.Status.Thread) != 1 {
		t.Errorf("an abandonment added a turn: %+v", s.v.Status.Thread)
	}
	s.reply("answer", "architect", "Too late.").want("abandoned", 1)
	if len(s.v.Status.Refused) != 1 {
		t.Errorf("refused %+v", s.v.Status.Refused)
	}
	s = newStory(t).human().decide().reply("abandonment", "engineer", "never mind").want("abandoned", 1)
	if st, _ := StandingOf(s.v.Status, s.m.Replies[0]); st != Accepted {
		t.Errorf("standing %d", st)
	}
	s = newStory(t).human().decide().at(31).decide().want("stale", 1)
	s.m.Left = "it went on"
	s.decide().want("stale", 1) // the picture leads from pending only
}

func TestTargetGone(t *testing.T) {
	s := newStory(t).decide()
	s.m.Target.Gone = true
	s.decide().want("escalated", 1).wantReason(schemas.EscalatedTarget).wantNoAsk()
	answered := newStory(t).decide().run(succeeded, "Migrate.").decide()
	answered.m.Target.Gone = true
	answered.decide().want("answered", 1)
	answered.reply("question", "engineer", "With which tool exactly?").want("escalated", 2).
		wantReason(schemas.EscalatedTarget)
}

func TestOrders(t *testing.T) {
	s := newStory(t).decide()
	s.m.Order = &Order{schemas.EscalatedDeadlock, "a ring"}
	s.decide().want("escalated", 1).wantReason(schemas.EscalatedDeadlock)
	s = newStory(t).decide().run(succeeded, "Migrate.")
	s.m.Order = &Order{schemas.EscalatedDeadlock, "a ring"}
	s.decide().want("answered", 1) // the answer came before the order
	s.m.Order = &Order{schemas.EscalatedStuck, "turned round"}
	s.decide().want("escalated", 1).wantReason(schemas.EscalatedStuck)
}

// tooLong records that the run that was wanted answered at too great a length.
func (s *story) tooLong() *story {
	s.t.Helper()
	s.run(failedRun, "the answer has 2001 characters, at most 2000 are taken")
	s.m.Runs[len(s.m.Runs)-1].Result, _ = json.Marshal(strings.Repeat("x", maxBody+1))
	return s
}

// TestTooLongIsAskedAgain: an answer that is too long is no failure the first time; a shorter one is asked for at once.
func TestTooLongIsAskedAgain(t *testing.T) {
	s := newStory(t).decide().at(1).tooLong().decide().want("pending", 1).wantAsk("round_1", 2)
	if s.v.Ask.After != s.m.Runs[0] || !TooLong(s.v.Ask.After) {
		t.Errorf("the run makes up for %+v", s.v.Ask.After)
	}
	s.run(succeeded, "Migrate.").decide().want("answered", 1)

	newStory(t).decide().at(1).tooLong().decide().tooLong().decide().want("escalated", 1).wantReason(schemas.EscalatedAgent)

	s = newStory(t).decide().run(failedRun, "exit code 1").at(1).decide().wantAsk("round_1", 2)
	if s.v.Ask.After != s.m.Runs[0] || TooLong(s.v.Ask.After) || Failure(s.v.Ask.After) != "exit code 1" {
		t.Errorf("the run makes up for %+v", s.v.Ask.After)
	}
	s.tooLong().decide().want("pending", 1).wantAsk("round_1", 3)
	s.run(failedRun, "exit code 1").decide().want("escalated", 1).wantReason(schemas.EscalatedAgent)

	s = newStory(t).decide().at(1).tooLong().decide().run(failedRun, "exit code 1").decide().want("pending", 1).wantNoAsk()
	s.at(2).decide().wantAsk("round_1", 3)
	s.run(failedRun, "exit code 1").decide().want("escalated", 1)

	// Of a run of an earlier version nothing is kept: then it is a failure like others.
	newStory(t).decide().run(failedRun, "the answer has 2001 characters").decide().want("pending", 1).wantNoAsk()
}

// TestTooLongAfterTime: who answers too late is asked for a shorter answer, too.
func TestTooLongAfterTime(t *testing.T) {
	s := newStory(t).decide().at(31).decide().want("stale", 1).wantAsk("round_1_again", 1)
	s.tooLong().decide().want("stale", 1).wantAsk("round_1_again", 2)
	s.tooLong().decide().want("escalated", 1).wantReason(schemas.EscalatedAgent)
}
