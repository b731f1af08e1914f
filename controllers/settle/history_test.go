package settle

import (
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// TestHistoryOfVerdicts: a verification that ends has not succeeded in words. A history of before keeps its line, and gets no other.
func TestHistoryOfVerdicts(t *testing.T) {
	at := schemas.NewTime(time.Unix(60, 0))
	verdict := &schemas.Run{Node: "add", Outcome: schemas.OutcomeSucceeded, Verifies: "dags/d/add-0123456789abcdef-1", Message: "inspect failed: 1 finding",
		StartedAt: schemas.NewTime(time.Unix(58, 0)), FinishedAt: at}
	cut := *verdict
	cut.Outcome, cut.Message = schemas.OutcomeTimedOut, ""
	work := cut
	work.Verifies, work.Outcome = "", schemas.OutcomeSucceeded
	var h History
	for _, r := range []*schemas.Run{verdict, &cut, &work} {
		h.AddRun("dag/d: ", r)
	}
	want := []schemas.HistoryEntry{{At: at, Reason: "Succeeded", Message: "dag/d: add ended after 2s: inspect failed: 1 finding"},
		{At: at, Reason: "Succeeded", Message: "dag/d: add succeeded after 2s"}, {At: at, Reason: "TimedOut", Message: "dag/d: add timed out after 2s"}}
	if got := h.Entries(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	before := History{Old: []schemas.HistoryEntry{{At: at, Reason: "Succeeded", Message: "dag/d: add succeeded after 2s: inspect failed: 1 finding"}}}
	before.AddRun("dag/d: ", verdict)
	if got := before.Entries(); !slices.Equal(got, before.Old) {
		t.Errorf("a history of before becomes %v", got)
	}
}
