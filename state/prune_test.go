package state

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// hooks makes records of an agent's hooks, each given as an outcome, an issue and the item that it is about. The clock
// goes back from one to the next.
func hooks(specs ...schemas.Run) *Entry {
	at := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	e := &Entry{Ref: schemas.Ref{Kind: schemas.AgentKind.Name, Name: "lead"}}
	for i, r := range specs {
		r.Node, r.NodeKey, r.Seq = "hook", "sha256:00", i+1
		r.Key = fmt.Sprintf("agents/lead/hook-00-%d", r.Seq)
		r.FinishedAt = schemas.NewTime(at.Add(-time.Duration(i) * time.Hour))
		e.SetRuns(append(e.Runs(), &r))
	}
	return e
}

func begun(issue int, item string) schemas.Run {
	return schemas.Run{Outcome: schemas.OutcomeStarted, Issue: issue, For: item}
}

func ended(issue int, item string) schemas.Run {
	return schemas.Run{Outcome: schemas.OutcomeDone, Issue: issue, For: item}
}

// TestPruneKeepsWhatIsHeld forgets the oldest records of hooks by their numbers, whatever the clock said, but none by
// which an item of work is held, however old.
func TestPruneKeepsWhatIsHeld(t *testing.T) {
	e := hooks(begun(42, "dag/a/review"), begun(42, "dag/a/write"), begun(7, ""), ended(42, "dag/a/write"), begun(8, ""),
		begun(9, ""))
	want := []string{"agents/lead/hook-00-2", "agents/lead/hook-00-3", "agents/lead/hook-00-4"}
	if got := NewTree(nil, nil, nil, e).surplus(2); !slices.Equal(got, want) {
		t.Errorf("beyond two records: %q, want %q", got, want)
	}
	all := append(slices.Clone(e.Runs()), hooks(ended(42, "")).Runs()[0])
	all[6].Seq, all[6].Key = 7, "agents/lead/hook-00-7"
	e.SetRuns(all)
	want = []string{"agents/lead/hook-00-1", "agents/lead/hook-00-2", "agents/lead/hook-00-3", "agents/lead/hook-00-4",
		"agents/lead/hook-00-5"}
	if got := NewTree(nil, nil, nil, e).surplus(2); !slices.Equal(got, want) {
		t.Errorf("once nothing is held: %q, want %q", got, want)
	}
}

// TestUnended pairs ends with what was begun before them, on the same issue or for the same item.
func TestUnended(t *testing.T) {
	runs := hooks(begun(42, ""), begun(42, "a"), begun(42, "b"), begun(7, "c"), ended(42, "a"), ended(8, ""),
		begun(42, "a")).Runs()
	var got []int
	for _, r := range Unended(runs) {
		got = append(got, r.Seq)
	}
	if want := []int{1, 3, 4, 7}; !slices.Equal(got, want) {
		t.Errorf("not ended: %v, want %v", got, want)
	}
	if got := Unended(append(runs, hooks(ended(42, "")).Runs()...)); len(got) != 1 || got[0].Issue != 7 {
		t.Errorf("after the end of an issue: %v", got)
	}
}

// TestPruneKeepsVerdicts keeps what verified and landed a run as long as the run: without it the change would be verified again, and who sent it
// back would begin to count anew.
func TestPruneKeepsVerdicts(t *testing.T) {
	at := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	e := &Entry{Ref: schemas.Ref{Kind: schemas.DAGKind.Name, Name: "d"}}
	for i, r := range []schemas.Run{{Key: "old", NodeKey: "old"}, {Key: "old-verified", Verifies: "old"}, {Key: "now", NodeKey: "now"},
		{Key: "now-inspected", Verifies: "now"}, {Key: "now-tested", Verifies: "now"}, {Key: "now-landed", Lands: "now"}} {
		r.Node, r.FinishedAt = "n", schemas.NewTime(at.Add(-time.Duration(i)*time.Hour))
		e.SetRuns(append(e.Runs(), &r))
	}
	e.SetStatus(&schemas.DAGStatus{Nodes: schemas.NodeStatusesOf(map[string]schemas.NodeStatus{"n": {Key: "now"}})})
	if got, want := NewTree(nil, nil, nil, e).surplus(1), []string{"old-verified"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
