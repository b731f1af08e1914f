package nodes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

var noon = time.Date(2026, 2, 27, 12, 0, 0, 0, time.UTC)

// TestAttempts: what ran last is not what counts where an edit was reverted.
func TestAttempts(t *testing.T) {
	run := func(key string, seq, end int) *schemas.Run {
		r := &schemas.Run{Key: fmt.Sprint(key, seq), Node: "build", NodeKey: key, Seq: seq}
		if end > 0 {
			r.Outcome, r.FinishedAt = schemas.OutcomeFailed, schemas.NewTime(noon.Add(time.Duration(end)*time.Second))
		}
		return r
	}
	runs := []*schemas.Run{run("a", 1, 10), run("a", 2, 20), run("b", 1, 30), run("b", 2, 5),
		{Key: "other", Node: "test", NodeKey: "a", Seq: 9}}
	for _, c := range []struct {
		present string
		claim   *schemas.Run
		want    string
		fits    int
	}{
		{"a", nil, "b2 b1 a1 a2", 2},
		{"b", nil, "a1 a2 b1 b2", 2},
		{"c", nil, "b2 a1 a2 b1", 0},
		{"c", run("c", 1, 0), "b2 a1 a2 b1 c1", 1},
		{"a", run("c", 1, 0), "b2 b1 c1 a1 a2", 2}, // it is being ended
		{"", nil, "b2 a1 a2 b1", 0},
	} {
		e := &state.Entry{}
		e.SetRuns(runs)
		if c.present != "" {
			e.SetStatus(&schemas.DAGStatus{Nodes: schemas.NodeStatusesOf(map[string]schemas.NodeStatus{"build": {Key: c.present}})})
		}
		if c.claim != nil {
			e.Claims = []state.Claim{{Run: *c.claim}}
		}
		list, fits := Attempts(e, "build")
		var keys []string
		for _, r := range list {
			keys = append(keys, r.Key)
		}
		if got := strings.Join(keys, " "); got != c.want || fits != c.fits {
			t.Errorf("key %q: %s, %d fit; want %s, %d", c.present, got, fits, c.want, c.fits)
		}
	}
}

// TestInterrupted: a node that has ended in a process that goes on, which has not written the status yet, was not left by any.
func TestInterrupted(t *testing.T) {
	at := func(s int) schemas.Time { return schemas.NewTime(noon.Add(time.Duration(s) * time.Second)) }
	status := &schemas.DAGStatus{Common: schemas.Common{Phase: schemas.DAGRunning}, Running: 1, Nodes: schemas.NodeStatusesOf(map[string]schemas.NodeStatus{
		"a": {State: schemas.NodeRunning, StartedAt: at(10)}, "b": {State: schemas.NodeQueued, Reason: settle.ReasonWaitsForPlace}})}
	before, now := &schemas.Run{Key: "a1", Node: "a", StartedAt: at(5)}, &schemas.Run{Key: "a2", Node: "a", StartedAt: at(10)}
	for _, c := range []struct {
		name     string
		attended bool
		claimed  bool
		runs     []*schemas.Run
		want     string
	}{
		{"it was killed", false, false, []*schemas.Run{before}, "[a b]"},
		{"it was killed after the record", false, false, []*schemas.Run{before, now}, "[a b]"},
		{"it was killed, and another process is at work", true, false, []*schemas.Run{before}, "[a]"},
		{"it runs", true, true, []*schemas.Run{before}, "[]"},
		{"it has ended, and the process goes on", true, false, []*schemas.Run{before, now}, "[]"},
	} {
		e := &state.Entry{}
		e.SetStatus(status)
		e.SetRuns(c.runs)
		if c.claimed {
			e.Claims = []state.Claim{{Run: *now}}
		}
		if got := fmt.Sprint(Interrupted(e, c.attended)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
