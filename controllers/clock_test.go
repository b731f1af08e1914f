package controllers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

const clockDAG = `spec:
  session: s
  policy: {timeout: 1h, failFast: false, retry: {limit: 1, backoff: 5s}}
  nodes:
    - {name: a, run: [a]}
    - {name: b, agent: boss, prompt: look, needs: [a]}
    - {name: c, run: [c], needs: [b]}
    - {name: d, run: [d]}
    - {name: e, agent: boss, prompt: look, needs: [d]}
    - {name: f, run: [f], needs: [e, c]}
`

func newClockSim(t *testing.T) *sim {
	s := newSim(t)
	s.checks = false // TestRandomHistories sees to that
	s.put("specs/agents/boss.yaml", head("Agent", "boss")+"spec: {runner: {human: {}}}\n")
	s.put("specs/sessions/s.yaml", head("Session", "s")+"spec: {title: s}\n")
	s.put("specs/dags/d.yaml", head("DAG", "d")+clockDAG)
	s.settle()
	return s
}

// TestAgeingAfterAWrongClock: what began to wait under a clock that was a day ahead waits from when that is seen, and ages.
func TestAgeingAfterAWrongClock(t *testing.T) {
	t.Parallel()
	s := newClockSim(t)
	right := s.now
	s.now = right.Add(24 * time.Hour)
	s.put("specs/dags/late.yaml", head("DAG", "late")+"spec: {session: s, nodes: [{name: a, run: [a], priority: background}]}\n")
	s.settle()
	for _, passed := range []time.Duration{time.Minute, 2 * time.Minute, time.Hour} {
		s.now = right.Add(passed)
		s.dirty[schemas.DAGKind.Ref("late")] = true
		s.settle()
		if e, ok := s.find("late", "a"); !ok || !e.QueuedAt.Equal(right.Add(time.Minute)) {
			t.Fatalf("after %s it waits since %s", passed, e.QueuedAt)
		}
	}
}

// TestClockInAnyNumberOfTurns lets one tree be decided after every event and another after some of them, as one-shot runs
// and watchers do: both count the same time for the limit, it never shrinks, and what they decide is the same.
func TestClockInAnyNumberOfTurns(t *testing.T) {
	for seed := range uint64(mutants.Size(8, 16, 100)) {
		r := rand.New(rand.NewPCG(seed, 3))
		often, seldom := newClockSim(t), newClockSim(t)
		var log []string
		var spent time.Duration
		for n := range 40 {
			wait := time.Duration(r.IntN(30)) * time.Second
			often.now = often.now.Add(wait)
			seldom.now = often.now
			often.entry(schemas.DAGKind.Ref("d"))
			often.settle()
			log = append(log, often.now.Format("15:04:05 ")+clockEvent(r, n, often, seldom))
			often.settle()
			st := often.dag("d")
			now := spentIn(st.Active, often.now)
			if !isOver(st) && now < spent {
				t.Fatalf("seed %d: the time spent shrank from %s to %s\n%q", seed, spent, now, log)
			}
			spent = now
			if n%7 != 6 && r.IntN(3) > 0 {
				continue
			}
			seldom.entry(schemas.DAGKind.Ref("d"))
			seldom.settle()
			if other := seldom.dag("d"); !slices.Equal(st.Active, other.Active) || st.FinishedAt != other.FinishedAt {
				t.Fatalf("seed %d: after every event\n%v\nafter some\n%v\n%s\n%q", seed, st.Active, other.Active,
					often.states("d")+seldom.states("d"), log)
			}
		}
	}
}

// clockEvent makes one thing happen in both trees: a run starts or ends, or an action comes.
func clockEvent(r *rand.Rand, n int, often, seldom *sim) string {
	effects := often.effects()
	claims := often.entries[schemas.DAGKind.Ref("d")].Claims
	switch k := r.IntN(10); {
	case k < 3 && len(effects) > len(claims):
		for _, e := range effects {
			if settle.ClaimOf(often.entries[e.Owner], e.Key) == nil {
				often.start(e)
				seldom.start(e)
				return "start " + e.Key
			}
		}
		return "-"
	case k < 6 && len(claims) > 0:
		c := claims[r.IntN(len(claims))]
		outcome := pick(r, schemas.OutcomeSucceeded, schemas.OutcomeSucceeded, schemas.OutcomeFailed)
		for _, s := range []*sim{often, seldom} {
			s.end(schemas.DAGKind.Ref("d"), c.Key, func(r *schemas.Run) { r.Outcome = outcome })
		}
		return "end " + c.Key + " " + outcome
	case k < 7:
		return "-"
	}
	verb := pick(r, "pause", "resume", "resume", "hold", "approve", "approve", "approve")
	target := ""
	if verb == "hold" || verb == "approve" {
		target = ", node: " + pick(r, "b", "c", "e")
	}
	text := head("Action", fmt.Sprintf("a%02d", n)) + fmt.Sprintf("spec: {target: dag/d, verb: %s, at: %q%s}\n", verb,
		often.now.Format(time.RFC3339Nano), target)
	for _, s := range []*sim{often, seldom} {
		s.put(fmt.Sprintf("specs/actions/a%02d.yaml", n), text)
	}
	return verb + target
}
