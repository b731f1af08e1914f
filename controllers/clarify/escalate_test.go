package clarify

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

const goldenEscalation = `Escalated (AgentFailed): Database abstraction layer approach
architect failed twice; the last time: exit status 3.
engineer: ADR-42 says PostgreSQL but codebase uses SQLite. Dual-layer or migrate?
architect: (no answer)
1. answer in place of architect
2. repair the runner of architect and ask again
3. let engineer go on with an assumption
Decide, then run: reconcile clarify resolve CLR-42-001 "what was decided"`

func TestEscalationText(t *testing.T) {
	s := newStory(t).decide().run(failedRun, "exit status 3").decide().at(1).decide().run(failedRun, "exit status 3").
		decide()
	e := s.want("escalated", 1).v.Status.Thread[1]
	if e.Body != goldenEscalation || e.From != Hub || e.Source != SourceMonitor || e.Type != "escalation" {
		t.Errorf("%+v", e)
	}
}

// TestEscalationTextIsBounded: at the limits of every field, for every reason, the text fits and has what to do in it.
func TestEscalationTextIsBounded(t *testing.T) {
	long := func(n int) string { return strings.Repeat("ü", n) }
	for reason, opts := range options {
		s := newStory(t)
		s.m.Spec.From, s.m.Spec.To, s.m.Spec.Topic, s.m.Spec.Question = "f"+long(62), "t"+long(62), long(200), long(2000)
		s.decide()
		s.m.Order = &Order{reason, long(1000)}
		e := s.decide().want("escalated", 1).v.Status.Thread[1]
		if !strings.HasSuffix(e.Body, action("CLR-42-001")) || reasonIn(e.Body) != reason || len(opts) < 2 {
			t.Errorf("%s: %s", reason, e.Body)
		}
	}
}

func TestSummaryOfWhatWasNeverAnswered(t *testing.T) {
	s := newStory(t).human().decide().at(90).decide().reply("resolution", "maria", "Migrate\n everything! ")
	want := `On "Database abstraction layer approach" engineer got no answer of architect. Decided: Migrate everything.`
	if got := s.want("resolved", 2).v.Status.Summary; got != want {
		t.Errorf("summary %q", got)
	}
}

// TestReasonOfForeignEscalation: who else escalates gives no reason that we know.
func TestReasonOfForeignEscalation(t *testing.T) {
	for body, want := range map[string]string{"We disagree (badly).": "Requested", "Escalated (Odd): x": "Requested",
		"Escalated (Deadlock): x": schemas.EscalatedDeadlock, "": "Requested"} {
		if got := reasonIn(body); got != want {
			t.Errorf("%q: %s", body, got)
		}
	}
}
