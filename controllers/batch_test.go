package controllers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// TestBatchingLeavesEqualBytes runs random DAGs to their end with a decision after every single event, and then hands
// the same records to a second tree all at once: both must end in the same bytes, so that it does not matter whether a
// watcher followed the work or one run found it done (decision 3).
func TestBatchingLeavesEqualBytes(t *testing.T) {
	for seed := range uint64(mutants.Size(15, 60, 60)) {
		r := rand.New(rand.NewPCG(seed, 4))
		specs := batchSpecs(r)
		one, many := newSim(t), newSim(t)
		for _, s := range []*sim{one, many} {
			for path, text := range specs {
				s.put(path, text)
			}
			s.settle()
		}
		runAll(many, r)
		one.now = many.now
		e := one.entry(schemas.DAGKind.Ref("d"))
		e.SetRuns(slices.Clone(many.entries[schemas.DAGKind.Ref("d")].Runs()))
		one.settle()
		for ref, e := range many.entries {
			if a, b := one.text(ref, one.entries[ref].Status()), many.text(ref, e.Status()); a != b {
				t.Errorf("seed %d: %s differs; at once:\n%s\nstep by step:\n%s", seed, ref, a, b)
			}
		}
	}
}

func batchSpecs(r *rand.Rand) map[string]string {
	var b strings.Builder
	fmt.Fprintf(&b, "%sspec:\n  session: s\n  policy: {failFast: %v, retry: {limit: %d, backoff: 1s}}\n  nodes:\n", head("DAG", "d"),
		r.IntN(2) == 0, r.IntN(3))
	for i := range 2 + r.IntN(6) {
		fmt.Fprintf(&b, "    - name: n%d\n      agent: engineer\n      prompt: work\n", i)
		if i > 0 && r.IntN(2) == 0 {
			fmt.Fprintf(&b, "      needs: [n%d]\n", r.IntN(i))
		}
	}
	return map[string]string{
		"specs/sessions/s.yaml":      head("Session", "s") + "spec: {}\n",
		"specs/agents/engineer.yaml": head("Agent", "engineer") + "spec: {runner: {command: {argv: [engineer]}}}\n",
		"specs/dags/d.yaml":          b.String(),
	}
}

// runAll runs what is wanted, one event at a time, until nothing is.
func runAll(s *sim, r *rand.Rand) {
	for range 500 {
		s.settle()
		if s.cancelUnwanted(); len(s.dirty) > 0 {
			continue
		}
		effects := s.effects()
		again := s.last.Outs[schemas.DAGKind.Ref("d")].Again
		switch {
		case len(effects) > 0:
			e := pick(r, effects...)
			if c := settle.ClaimOf(s.entries[e.Owner], e.Key); c == nil || c.StartedAt.IsZero() {
				s.start(e)
				break
			}
			s.now = s.now.Add(time.Duration(1+r.IntN(1500)) * time.Millisecond)
			s.finish("d", e.Node, pick(r, schemas.OutcomeSucceeded, schemas.OutcomeSucceeded, schemas.OutcomeFailed), nil)
		case !again.IsZero():
			s.now = again
		default:
			return
		}
		s.entry(schemas.DAGKind.Ref("d"))
	}
	s.t.Fatal("the DAG never ended")
}
