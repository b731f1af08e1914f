package controllers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func moment(n int) schemas.Time { return schemas.NewTime(benchNow.Add(time.Duration(n) * time.Second)) }

// randomSpans are spans within a minute, some of them empty or the wrong way round, at most one of them open.
func randomSpans(r *rand.Rand) []schemas.Span {
	var out []schemas.Span
	for range r.IntN(8) {
		out = append(out, schemas.Span{From: moment(r.IntN(60)), To: moment(r.IntN(60))})
	}
	if r.IntN(3) == 0 {
		out = append(out, schemas.Span{From: moment(r.IntN(60))})
	}
	return out
}

// covers reports whether the second that begins at n is in a set, taken naively.
func covers(set []schemas.Span, n int) bool {
	return slices.ContainsFunc(set, func(s schemas.Span) bool {
		return !s.From.After(moment(n).Time) && (s.To.IsZero() || s.To.After(moment(n).Time))
	})
}

// TestSpans compares the arithmetic of spans with sets of seconds.
func TestSpans(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 7))
		a, b := randomSpans(r), randomSpans(r)
		both := unite(slices.Concat(a, b))
		left := without(unite(a), unite(b))
		seconds := 0
		for n := range 90 {
			if got, want := covers(both, n), covers(a, n) || covers(b, n); got != want {
				t.Fatalf("seed %d: second %d in the union: %v, want %v", seed, n, got, want)
			}
			if got, want := covers(left, n), covers(a, n) && !covers(b, n); got != want {
				t.Fatalf("seed %d: second %d in the difference: %v, want %v", seed, n, got, want)
			}
			if sum := time.Duration(seconds) * time.Second; lasted(both, moment(n).Time) != sum {
				t.Fatalf("seed %d: lasted %s until %d, want %s", seed, lasted(both, moment(n).Time), n, sum)
			}
			if covers(both, n) {
				seconds++
				if at := reached(both, time.Duration(seconds)*time.Second); !at.Equal(moment(n + 1).Time) {
					t.Fatalf("seed %d: %d s are reached at %s, want second %d", seed, seconds, at, n+1)
				}
			}
		}
		mixed := slices.Concat(b, both, a)
		r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if !slices.Equal(unite(mixed), both) || !slices.Equal(unite(both), both) {
			t.Fatalf("seed %d: the union depends on the order: %v and %v", seed, unite(mixed), both)
		}
		for _, g := range gaps(both) {
			if g.To.IsZero() || !g.To.After(g.From.Time) {
				t.Fatalf("seed %d: gap %v", seed, g)
			}
		}
	}
}

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

// TestClockInAnyNumberOfTurns lets one tree be decided after every event and another after some of them, as one-shot runs
// and watchers do: both count the same time for the limit, it never shrinks, and what they decide is the same.
func TestClockInAnyNumberOfTurns(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 3))
		often, seldom := newClockSim(t), newClockSim(t)
		var log []string
		var spent time.Duration
		for n := range 40 {
			wait := time.Duration(r.IntN(30)) * time.Second
			often.now = often.now.Add(wait)
			seldom.now = often.now
			often.entry(dagRef("d"))
			often.settle()
			log = append(log, often.now.Format("15:04:05 ")+clockEvent(r, n, often, seldom))
			often.settle()
			st := often.dag("d")
			now := lasted(st.Active, often.now)
			if !over(st) && now < spent {
				t.Fatalf("seed %d: the time spent shrank from %s to %s\n%q", seed, spent, now, log)
			}
			spent = now
			if n%7 != 6 && r.IntN(3) > 0 {
				continue
			}
			seldom.entry(dagRef("d"))
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
	claims := often.entries[dagRef("d")].Claims
	switch k := r.IntN(10); {
	case k < 3 && len(effects) > len(claims):
		for _, e := range effects {
			if claimOf(often.entries[e.Owner], e.Key) == nil {
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
			s.end(dagRef("d"), c.Key, func(r *schemas.Run) { r.Outcome = outcome })
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
