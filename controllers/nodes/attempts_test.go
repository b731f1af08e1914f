package nodes

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
