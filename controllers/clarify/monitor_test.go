package clarify

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func precedence(agent string) int { return schemas.DefaultPrecedence(agent) }

func record0(id, from, to, topic, status string, created float64) schemas.Clarification {
	return schemas.Clarification{ID: id, From: from, To: to, Topic: topic, Status: status, Blocking: true, Round: 1,
		Created: minute(created), StaleAfter: minute(created + 30), Thread: []schemas.ClarificationTurn{
			other(1, "question", from, "What of "+topic+" for "+id+"?", created)}}
}

func ids(records []schemas.Clarification) []string {
	var out []string
	for _, c := range records {
		out = append(out, c.ID)
	}
	return out
}

func TestMonitor(t *testing.T) {
	records := []schemas.Clarification{
		record0("CLR-1-001", "engineer", "architect", "stores", "pending", 0), // over its time, and in a ring
		record0("CLR-2-001", "architect", "engineer", "caches", "pending", 50),
		record0("CLR-3-001", "tester", "reviewer", "coverage goals", "escalated", 40),
		record0("CLR-3-002", "reviewer", "tester", "Coverage goals!", "answered", 50), // turns the one before round
		record0("CLR-4-001", "engineer", "designer", "old", "resolved", 0),
		record0("CLR-5-001", "designer", "guide", "late", "stale", 59),
		record0("CLR-6-001", "guide", "librarian", "circle", "answered", 50),
		record0("CLR-7-001", "guide", "academic", "done", "abandoned", 0),
	}
	circle := &records[6]
	circle.Thread = append(circle.Thread, other(1, "answer", "librarian", "see the shelf", 51),
		other(2, "question", "guide", "What of circle for CLR-6-001, again?", 52))
	got := Monitor(records, precedence, start.Add(time.Hour))
	if !slices.Equal(ids(got.Stale), []string{"CLR-1-001", "CLR-5-001"}) ||
		!slices.Equal(ids(got.Stuck), []string{"CLR-3-002", "CLR-6-001"}) ||
		!slices.Equal(ids(got.Deadlocked), []string{"CLR-1-001"}) {
		t.Errorf("stale %v, stuck %v, deadlocked %v", ids(got.Stale), ids(got.Stuck), ids(got.Deadlocked))
	}
	records[1].Blocking = false
	if got := Monitor(records, precedence, start); len(got.Deadlocked) != 0 || len(got.Stale) != 1 {
		t.Errorf("a question that does not block: %v; at the start: %v", ids(got.Deadlocked), ids(got.Stale))
	}
}

func TestOrdersOfFlips(t *testing.T) {
	orders := Orders([]schemas.Clarification{b0(), a0()}, precedence)
	if len(orders) != 1 || orders["CLR-1-002"] == nil || orders["CLR-1-002"].Reason != schemas.EscalatedStuck {
		t.Errorf("orders %v", orders)
	}
	for name, pairOf := range map[string][2]schemas.Clarification{
		"another issue": {a0(), with(b0(), func(c *schemas.Clarification) { c.ID = "CLR-2-001" })},
		"another topic": {a0(), with(b0(), func(c *schemas.Clarification) {
			c.Topic, c.Thread[0].Body = "cache size", "How large is it to be?"
		})},
		"settled before": {with(a0(), func(c *schemas.Clarification) { c.Status = "resolved" }), b0()},
		"same direction": {a0(), with(b0(), func(c *schemas.Clarification) { c.From, c.To = c.To, c.From })},
	} {
		if orders := Orders(pairOf[:], precedence); len(orders) != 0 {
			t.Errorf("%s: %+v", name, orders)
		}
	}
}

// TestOrdersOfOpposites: of two blocking questions in opposite directions that of the more downstream agent is escalated,
// whoever asked first, and the other one is not touched afterwards.
func TestOrdersOfOpposites(t *testing.T) {
	for name, at := range map[string][2]float64{"downstream first": {0, 1}, "upstream first": {1, 0}, "at once": {0, 0}} {
		down := record0("CLR-1-001", "engineer", "architect", "store layout", "pending", at[0])
		up := record0("CLR-1-002", "architect", "engineer", "store layout", "stale", at[1])
		orders := Orders([]schemas.Clarification{down, up}, precedence)
		if len(orders) != 1 || orders[down.ID] == nil || orders[down.ID].Reason != schemas.EscalatedDeadlock {
			t.Errorf("%s: orders %v", name, orders)
		}
		down.Status = schemas.ClarificationEscalated
		down.Thread = append(down.Thread, other(1, "escalation", Hub, "Escalated ("+schemas.EscalatedDeadlock+"): store layout\nwhy.\nwho", 2))
		for _, status := range []string{"pending", "answered"} {
			up.Status = status
			if orders := Orders([]schemas.Clarification{down, up}, precedence); len(orders) != 0 {
				t.Errorf("%s, the other %s: orders %v", name, status, orders)
			}
		}
	}
}

func a0() schemas.Clarification {
	return record0("CLR-1-001", "engineer", "architect", "store layout", "answered", 0)
}

func b0() schemas.Clarification {
	return record0("CLR-1-002", "architect", "engineer", "store layout", "pending", 0)
}

func with(c schemas.Clarification, change func(*schemas.Clarification)) schemas.Clarification {
	change(&c)
	return c
}

// manyRecords is n records of n/5 issues; every second one is open, in a thread of two rounds.
func manyRecords(n int) []schemas.Clarification {
	agents := []string{"product-manager", "architect", "engineer", "reviewer", "tester"}
	out := make([]schemas.Clarification, n)
	for i := range out {
		from, to := agents[i%5], agents[(i+1+i/5%4)%5]
		status := []string{"pending", "resolved", "answered", "resolved"}[i%4]
		out[i] = record0(FormatID(i/5, i%5+1), from, to, fmt.Sprint("topic ", i), status, float64(i%90))
		out[i].Thread = append(out[i].Thread, other(1, "answer", to, fmt.Sprint("answer number one of ", i), 1),
			other(2, "question", from, fmt.Sprint("further thing about ", i), 2),
			other(2, "answer", to, fmt.Sprint("entirely different words ", i), 3))
	}
	return out
}

func BenchmarkMonitor(b *testing.B) {
	records := manyRecords(50000)
	for b.Loop() {
		if f := Monitor(records, precedence, start.Add(time.Hour)); len(f.Stale) == 0 {
			b.Fatal("nothing found")
		}
	}
}

func BenchmarkFold(b *testing.B) {
	for _, n := range []int{1, 10, 1000} {
		records := manyRecords(n)
		for i := range records {
			records[i].ID, records[i].Request = FormatID(42, i+1), fmt.Sprint("q", i)
		}
		old, err := Fold(nil, 42, records)
		if err != nil {
			b.Fatal(err)
		}
		changed := slices.Clone(records)
		changed[0].MaxRounds = 3
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Fold(old, 42, changed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	for name, m := range map[string]*Input{"new": newStory(nil).m, "resolved": resolvedMatter()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if m.Decide().Status.Phase == "" {
					b.Fatal("no phase")
				}
			}
		})
	}
}

// resolvedMatter is one of two rounds, with its ledger and replies.
func resolvedMatter() *Input {
	m := newStory(nil).human().m
	for i, typ := range []string{"answer", "question", "answer", "resolution"} {
		m.Replies = append(m.Replies, Reply{Name: fmt.Sprint("r", i), Digest: "d", Spec: &schemas.ReplySpec{Type: typ,
			From: "maria", Body: texts[i+2*(i%2)]}})
	}
	v := m.Decide()
	c := Record(m.Name, m.Spec, v.Status)
	m.Old, m.Ledger = v.Status, &c
	return m
}
