package digest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// turns makes a thread of types, each a minute after the one before; a question begins a round.
func turns(start time.Time, types ...string) []schemas.ClarificationTurn {
	var out []schemas.ClarificationTurn
	round := 0
	for i, typ := range types {
		if typ == schemas.TurnQuestion || typ == schemas.TurnResolution {
			round++
		}
		at := schemas.NewTime(start.Add(time.Duration(i) * time.Minute))
		out = append(out, schemas.ClarificationTurn{Round: round, From: "engineer", Type: typ, Body: "…", Timestamp: at})
	}
	return out
}

// ledger makes the ledger of an issue; records without an id are numbered, and get what every record has.
func ledger(t testing.TB, issue int, records ...schemas.Clarification) *state.Ledger {
	t.Helper()
	for i := range records {
		if records[i].ID == "" {
			records[i].ID = fmt.Sprintf("CLR-%d-%03d", issue, i+1)
		}
	}
	data, err := json.Marshal(schemas.Ledger{IssueNumber: issue, Clarifications: records})
	if err != nil {
		t.Fatal(err)
	}
	l, err := state.ParseLedger(fmt.Sprintf("state/clarifications/issue-%d.json", issue), data)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func digestTree(t *testing.T, now time.Time) *state.Tree {
	const q, a, r, e = schemas.TurnQuestion, schemas.TurnAnswer, schemas.TurnResolution, schemas.TurnEscalation
	record := func(from, to, topic, status string, days int, types ...string) schemas.Clarification {
		at := now.AddDate(0, 0, -days)
		return schemas.Clarification{From: from, To: to, Topic: topic, Status: status, Round: 1, MaxRounds: 5,
			Created: schemas.NewTime(at), Thread: turns(at, types...)}
	}
	blocking := record("engineer", "architect", "Database layer", schemas.ClarificationResolved, 1, q, a, q, a, r)
	blocking.Blocking = true
	undated := record("tester", "engineer", "?", "paused", 0)
	undated.Created = schemas.Time{}
	engineer := schemas.NewObject(schemas.AgentKind, schemas.Metadata{Name: "engineer"}, "specs/agents/engineer.yaml", "sha256:1",
		[]byte(`{"runner":{"command":{"argv":["true"]}}}`), nil)
	return state.NewTree(nil, nil, nil, &state.Entry{Ref: engineer.Ref, Object: engineer}).WithLedgers(
		ledger(t, 42, blocking,
			record("engineer", "architect", "database layer!", schemas.ClarificationResolved, 2, q, e, r),
			record("reviewer", "engineer", "Naming", schemas.ClarificationPending, 3, q),
			record("engineer", "architect", "DATABASE  layer", schemas.ClarificationEscalated, 20, q, e)),
		ledger(t, 43,
			record("engineer", "product-manager", "Scope", schemas.ClarificationAbandoned, 4, q),
			record("engineer", "architect", "database layer!", schemas.ClarificationStale, 4, q),
			undated))
}

func TestDigest(t *testing.T) {
	now := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	tree := digestTree(t, now)
	d := New(tree, now.AddDate(0, 0, -7), now)
	if d.Total != 5 || d.Resolved != 2 || d.Pending != 1 || d.Abandoned != 1 || d.Stale != 1 || d.Escalated != 0 ||
		d.EverEscalated != 1 || d.Blocking != 1 {
		t.Errorf("counts: %+v", d)
	}
	if d.Alone != 1 || d.AloneRate == nil || *d.AloneRate != 0.5 {
		t.Errorf("resolved without a human: %d, rate %v; want 1 of 2", d.Alone, d.AloneRate)
	}
	if d.AverageRounds == nil || *d.AverageRounds != 6.0/5 {
		t.Errorf("average rounds %v, want 2+1+1+1+1 in 5", d.AverageRounds)
	}
	if d.Answers != 2 || d.MedianAnswer == nil || *d.MedianAnswer != 60 {
		t.Errorf("%d answers, median %v s; want 2 after a minute each", d.Answers, d.MedianAnswer)
	}
	wantTopics := []Tally{{"database layer!", 3}, {"Naming", 1}, {"Scope", 1}}
	if !slices.Equal(d.Topics, wantTopics) {
		t.Errorf("topics %v, want %v", d.Topics, wantTopics)
	}
	wantAskers := []Tally{{"engineer", 4}, {"reviewer", 1}}
	wantAsked := []Tally{{"architect", 3}, {"engineer", 1}, {"product-manager", 1}}
	if !slices.Equal(d.Askers, wantAskers) || !slices.Equal(d.Asked, wantAsked) {
		t.Errorf("askers %v, asked %v", d.Askers, d.Asked)
	}
}

// TestDigestOfHelp: what a person answered or resolved was not resolved without a human; who asked makes no difference.
func TestDigestOfHelp(t *testing.T) {
	const q, a, r = schemas.TurnQuestion, schemas.TurnAnswer, schemas.TurnResolution
	now := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	open := schemas.Clarification{From: "engineer", To: "ada", Status: schemas.ClarificationPending, Thread: turns(now, q)}
	for turn, want := range []int{1, 0, 0} {
		c := schemas.Clarification{From: "engineer", To: "engineer", Topic: "T", Status: schemas.ClarificationResolved,
			Round: 2, MaxRounds: 5, Created: schemas.NewTime(now), Thread: turns(now, q, a, r)}
		c.Thread[turn].From = "ada"
		d := New(digestTree(t, now).WithLedgers(ledger(t, 42, open), ledger(t, 43, c)), time.Time{}, now)
		if d.Alone != want || d.Resolved != 1 || *d.AloneRate != float64(want) {
			t.Errorf("ada wrote turn %d: %d of %d, want %d", turn, d.Alone, d.Resolved, want)
		}
	}
}

// TestDigestOfAllTime takes also records that do not say when they were made, and counts states that nobody knows.
func TestDigestOfAllTime(t *testing.T) {
	now := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	d := New(digestTree(t, now), time.Time{}, now)
	if d.Total != 7 || d.Escalated != 1 || d.EverEscalated != 2 || *d.AloneRate != 1.0/3 {
		t.Errorf("of all time: %+v", d)
	}
	if got := d.Topics[len(d.Topics)-1]; got != (Tally{"Scope", 1}) || !slices.Contains(d.Topics, Tally{"?", 1}) {
		t.Errorf("topics %v", d.Topics)
	}
}

// TestDigestOfNothing has no rates, and lists that are empty, not null.
func TestDigestOfNothing(t *testing.T) {
	d := New(state.NewTree(nil, nil, nil), time.Time{}, time.Unix(0, 0))
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"since":null,"until":"1970-01-01T00:00:00Z","total":0,"pending":0,"answered":0,"stale":0,"escalated":0,` +
		`"resolved":0,"abandoned":0,"blocking":0,"everEscalated":0,"resolvedWithoutHuman":0,` +
		`"resolvedWithoutHumanRate":null,"averageRounds":null,"answers":0,"medianAnswerSeconds":null,` +
		`"topics":[],"askers":[],"asked":[]}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		times []time.Duration
		want  float64
	}{
		{[]time.Duration{3 * time.Second}, 3},
		{[]time.Duration{4 * time.Second, time.Second}, 2.5},
		{[]time.Duration{9 * time.Second, time.Second, 2 * time.Second}, 2},
	} {
		if got := median(c.times); got == nil || *got != c.want {
			t.Errorf("median of %v: %v, want %v", c.times, got, c.want)
		}
	}
}

// TestAnswerTimes pairs answers with questions of their round; a clock that went back makes no negative time.
func TestAnswerTimes(t *testing.T) {
	const q, a = schemas.TurnQuestion, schemas.TurnAnswer
	start := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	if got := appendWaits(nil, turns(start, a, q, q, a, a)); !slices.Equal(got, []time.Duration{time.Minute}) {
		t.Errorf("waits %v, want the one from the second question to its first answer", got)
	}
	back := turns(start, q, a)
	back[1].Timestamp = schemas.NewTime(start.Add(-time.Hour))
	if got := appendWaits(nil, back); !slices.Equal(got, []time.Duration{0}) {
		t.Errorf("waits %v under a clock that went back", got)
	}
}
