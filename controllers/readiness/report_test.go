package readiness_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestReport: of many objects a report has the first, and the first that failed, and it is the same after JSON.
func TestReport(t *testing.T) {
	broken := schemas.Problem{Place: schemas.Place{Path: "specs/b.yaml", Line: 4, Column: 8}, Severity: schemas.Error, Code: "unknown-field",
		Ref: schemas.SessionKind.Ref("b"), Field: "spec.titel", Message: "there is no field", Suggestion: `did you mean "title"?`, Source: "spec: {titel: x}"}
	entries := []*state.Entry{{Ref: broken.Ref, Problems: []schemas.Problem{broken}}}
	const waiting = 3 * readiness.MostRows
	for i := range waiting { // before the broken session, in order
		entries = append(entries, &state.Entry{Ref: schemas.DAGKind.Ref(fmt.Sprintf("d%03d", i)), Object: &schemas.Object{}})
	}
	for problems, whole := range map[int]bool{1: true, readiness.MostRows: true, readiness.MostRows + 1: false} {
		tree := state.NewTree(controllers.Schemas(), nil, slices.Repeat([]schemas.Problem{broken}, problems), entries...)
		r := readiness.ReportOf(tree)
		if (r != nil) != whole {
			t.Fatalf("%d problems: %v", problems, r)
		}
		if r == nil {
			continue
		}
		if r.Count.Waiting != waiting || r.Count.Invalid != 1 || r.Whole() || len(r.Rows) != readiness.MostRows+1 ||
			r.Rows[0].Ref.Name != "d000" || !r.Rows[0].Waits || r.Rows[readiness.MostRows].Ref != broken.Ref {
			t.Errorf("%+v", r)
		}
		var again readiness.Report
		if data, err := json.Marshal(r); err != nil || json.Unmarshal(data, &again) != nil || !slices.Equal(r.Rows, again.Rows) ||
			r.Count != again.Count || len(again.Problems) != problems {
			t.Fatalf("after JSON: %+v, %v", again, err)
		}
		if p := again.Problems[0].Whole(); !reflect.DeepEqual(p, broken) {
			t.Errorf("%+v, want %+v", p, broken)
		}
	}
	if all := readiness.NotReady(slices.Values(entries), len(entries)); len(all) != waiting+1 {
		t.Errorf("%d of all", len(all))
	}
}
