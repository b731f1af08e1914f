package clarify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// story is one matter over time: engineer asks architect about issue 42.
type story struct {
	t *testing.T
	m *Input
	v Decision
	// moves are all moves so far.
	moves []Move
}

var start = time.Date(2026, 2, 26, 10, 0, 0, 0, time.UTC)

const question = "ADR-42 says PostgreSQL but codebase uses SQLite. Dual-layer or migrate?"

func newStory(t *testing.T) *story {
	return &story{t: t, m: &Input{Name: "db-layer", Digest: "sha256:1", ID: "CLR-42-001", Now: start,
		Spec: &schemas.ClarificationRequestSpec{Issue: 42, From: "engineer", To: "architect",
			Topic: "Database abstraction layer approach", Question: question, Blocking: true},
		Limits: Limits{Rounds: 5, SLA: 30 * time.Minute, RetryAfter: 30 * time.Second},
		Target: Target{Key: "runner"}}}
}

func (s *story) human() *story { s.m.Target.Human = true; return s }

// at sets the clock, in minutes after the start.
func (s *story) at(minutes float64) *story {
	s.m.Now = start.Add(time.Duration(minutes * float64(time.Minute)))
	return s
}

// decide decides, and checks what every decision must hold.
func (s *story) decide() *story {
	s.t.Helper()
	before := s.m.Old
	frozen := encoded(s.t, before)
	s.v = s.m.Decide()
	if encoded(s.t, before) != frozen {
		s.t.Fatalf("the decision changed the old status:\n%s\n%s", frozen, encoded(s.t, before))
	}
	checkVerdict(s.t, s.m, s.v)
	s.moves = append(s.moves, s.v.Moves...)
	s.m.Old = decoded(s.t, s.v.Status)
	if again := s.m.Decide(); len(again.Moves) > 0 || encoded(s.t, again.Status) != encoded(s.t, s.v.Status) {
		s.t.Fatalf("decided again, the status changed:\n%s\n%s", encoded(s.t, s.v.Status), encoded(s.t, again.Status))
	}
	return s
}

// checkVerdict checks that a verdict keeps to the picture of the states.
func checkVerdict(t testing.TB, m *Input, v Decision) {
	t.Helper()
	phase := ""
	if m.Old != nil {
		phase = m.Old.Phase
	}
	for _, mv := range v.Moves {
		if mv.From != phase || !picture[[2]string{mv.From, mv.To}] {
			t.Fatalf("moved from %q to %q, being %q: %+v", mv.From, mv.To, phase, v.Moves)
		}
		phase = mv.To
	}
	if phase != v.Status.Phase {
		t.Fatalf("the moves lead to %q, the status is %q", phase, v.Status.Phase)
	}
	if v.Ask != nil && !slices.Contains([]string{"pending", "stale"}, phase) {
		t.Fatalf("the target is to be run though the matter is %s", phase)
	}
	for _, e := range v.Status.Thread {
		if n := len([]rune(e.Body)); n > maxBody || n == 0 {
			t.Fatalf("a turn has %d characters: %q", n, e.Body)
		}
	}
	if (phase == "escalated") && v.Status.Escalation == nil || (phase == "resolved") != (v.Status.Summary != "") {
		t.Fatalf("%s: escalation %v, summary %q", phase, v.Status.Escalation, v.Status.Summary)
	}
}

// picture is agentx-architecture 6.1, edge by edge; the package's own table is checked against it.
var picture = map[[2]string]bool{
	{"", "pending"}: true, {"pending", "answered"}: true, {"answered", "pending"}: true, {"answered", "resolved"}: true,
	{"pending", "stale"}: true, {"stale", "pending"}: true, {"stale", "escalated"}: true, {"pending", "escalated"}: true,
	{"answered", "escalated"}: true, {"escalated", "resolved"}: true, {"pending", "abandoned"}: true,
}

func encoded(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// decoded takes a status through its encoded form, as if written to disk and read back.
func decoded(t testing.TB, st *schemas.ClarificationRequestStatus) *schemas.ClarificationRequestStatus {
	t.Helper()
	out := new(schemas.ClarificationRequestStatus)
	if err := json.Unmarshal([]byte(encoded(t, st)), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// run records the run that the last decision wanted, as ended now.
func (s *story) run(outcome, answer string) *story {
	s.t.Helper()
	if s.v.Ask == nil {
		s.t.Fatalf("no run was wanted: %s", s.v.Message)
	}
	s.m.Runs = append(s.m.Runs, hubRun(*s.v.Ask, s.m.Now, outcome, answer))
	return s
}

func hubRun(a Ask, at time.Time, outcome, answer string) *schemas.Run {
	r := &schemas.Run{Key: fmt.Sprintf("clarificationrequests/db-layer/%s-%s-%d", a.Node, a.NodeKey[7:23], a.Seq),
		Node: a.Node, NodeKey: a.NodeKey, Seq: a.Seq, Outcome: outcome, StartedAt: schemas.NewTime(at.Add(-time.Second)),
		FinishedAt: schemas.NewTime(at)}
	if outcome == schemas.OutcomeSucceeded {
		r.Result, _ = json.Marshal(answer)
	} else {
		r.Message = answer
	}
	return r
}

// reply adds a reply and decides. Capital first letters of from mean an agent of the tree.
func (s *story) reply(typ, from, body string) *story {
	s.t.Helper()
	name := fmt.Sprintf("r%02d", len(s.m.Replies))
	agent := from == "engineer" || from == "architect" || from == "reviewer"
	s.m.Replies = append(s.m.Replies, Reply{Name: name, Digest: "sha256:" + body, Agent: agent,
		Spec: &schemas.ReplySpec{Clarification: s.m.Name, Type: typ, From: from, Body: body}})
	return s.decide()
}

// want checks the phase and the round.
func (s *story) want(phase string, round int) *story {
	s.t.Helper()
	if s.v.Status.Phase != phase || s.v.Status.Round != round {
		s.t.Fatalf("%s in round %d, want %s in %d: %s\n%s", s.v.Status.Phase, s.v.Status.Round, phase, round, s.v.Message,
			encoded(s.t, s.v.Status))
	}
	return s
}

// path is the way of the states so far.
func (s *story) path() string {
	states := make([]string, len(s.moves))
	for i, m := range s.moves {
		states[i] = m.To
	}
	return strings.Join(states, " ")
}

func (s *story) wantAsk(node string, seq int) *story {
	s.t.Helper()
	if s.v.Ask == nil || s.v.Ask.Node != node || s.v.Ask.Seq != seq {
		s.t.Fatalf("wanted run %+v, want %s %d", s.v.Ask, node, seq)
	}
	return s
}

func (s *story) wantNoAsk() *story {
	s.t.Helper()
	if s.v.Ask != nil {
		s.t.Fatalf("wanted run %+v, want none", s.v.Ask)
	}
	return s
}

func (s *story) wantReason(reason string) *story {
	s.t.Helper()
	if s.v.Status.Escalation == nil || s.v.Status.Escalation.Reason != reason {
		s.t.Fatalf("escalation %+v, want %s", s.v.Status.Escalation, reason)
	}
	return s
}
