package loop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// flat is a DAG of n nodes that need nothing.
func flat(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "    - {name: n%d, run: [x]}\n", i)
	}
	return b.String()
}

// wroteFor counts the statuses that a run of n nodes, one after the other, writes.
func wroteFor(t *testing.T, n int) (wrote int) {
	synctest.Test(t, func(t *testing.T) {
		var step atomic.Int64
		a := newActor(func(string, int) (time.Duration, string) {
			return time.Duration(step.Add(1)) * 300 * time.Millisecond, schemas.OutcomeSucceeded
		})
		r, err := newLoop(t, tree(t, flat(n)), a).Once(t.Context())
		if err != nil || r.Ran != n {
			t.Fatalf("ran %d of %d: %v", r.Ran, n, err)
		}
		wrote = r.Wrote
	})
	return wrote
}

func TestStatusesAreWrittenSeldom(t *testing.T) {
	few, many := wroteFor(t, 40), wroteFor(t, 160)
	if most := few + 2; many > most { // the number of nodes doubled twice
		t.Errorf("a run of 40 nodes wrote %d files, one of 160 wrote %d; want at most %d", few, many, most)
	}
}

// statusFile is what stands in the file of dag/job.
func statusFile(t *testing.T, dir string) *schemas.DAGStatus {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "state/dags/job.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, st, err := state.DecodeStatus(controllers.Schemas(), data)
	if err != nil {
		t.Fatal(err)
	}
	return st.(*schemas.DAGStatus)
}

// whileSlowRuns calls look while the node slow runs and all others have ended.
func whileSlowRuns(t *testing.T, nodes string, look func(t *testing.T, dir string)) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, nodes+"    - {name: slow, run: [x]}\n")
		put(t, dir, "specs/agents/lead.yaml", fmt.Sprintf(envelope, "Agent", "lead", "  role: lead\n  runner: {human: {}}"))
		a := newActor(func(node string, _ int) (time.Duration, string) {
			if node == "slow" {
				return 5 * time.Minute, schemas.OutcomeSucceeded
			}
			return time.Second, schemas.OutcomeSucceeded
		})
		over := make(chan error)
		l := newLoop(t, dir, a)
		go func() {
			_, err := l.Once(t.Context())
			over <- err
		}()
		time.Sleep(time.Minute)
		look(t, dir)
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

func TestWaitForAPersonIsWrittenAtOnce(t *testing.T) {
	whileSlowRuns(t, "    - {name: quick, run: [x]}\n    - {name: sign, agent: lead, prompt: Sign it., needs: [quick]}\n",
		func(t *testing.T, dir string) {
			st := statusFile(t, dir)
			if st.Phase != schemas.DAGRunning || st.Nodes.Of("sign").State != schemas.NodeBlocked {
				t.Errorf("while slow runs, the file says %s, and of sign %s", st.Phase, st.Nodes.Of("sign").State)
			}
		})
}

func TestWordOfAPersonIsWrittenAfterAStatusWaited(t *testing.T) {
	whileSlowRuns(t, "    - {name: one, run: [x]}\n    - {name: two, run: [x], needs: [one]}\n", func(t *testing.T, dir string) {
		if st := statusFile(t, dir); st.Nodes.Of("two").State == schemas.NodeSucceeded {
			t.Fatal("the status was written although nothing asked for it: this test shows nothing")
		}
		put(t, dir, "specs/actions/hold.yaml", fmt.Sprintf(envelope, "Action", "hold", "  target: dag/job\n  node: slow\n  verb: hold"))
		time.Sleep(time.Minute)
		if st := statusFile(t, dir); len(st.Actions) != 1 {
			t.Errorf("after a minute the file has the actions %v", st.Actions)
		}
	})
}

func TestOthersSeeWhatTheJournalHas(t *testing.T) {
	whileSlowRuns(t, "    - {name: one, run: [x]}\n    - {name: two, run: [x], needs: [one]}\n", func(t *testing.T, dir string) {
		if st := statusFile(t, dir); st.Nodes.Of("two").State == schemas.NodeSucceeded {
			t.Fatal("the status was written although nothing asked for it: this test shows nothing")
		}
		s, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, NoCache: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		loaded, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		now := job(t, controllers.Current(loaded, time.Now(), s.Journaled()))
		if now.Nodes.Of("two").State != schemas.NodeSucceeded || now.Nodes.Of("slow").State != schemas.NodeRunning || now.Progress.Done != 2 {
			t.Errorf("two is %s, slow is %s, %d done", now.Nodes.Of("two").State, now.Nodes.Of("slow").State, now.Progress.Done)
		}
	})
}
