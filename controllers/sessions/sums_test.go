package sessions

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestSumsFollowTheTree edits random trees and compares the sums that follow them with those that begin anew.
func TestSumsFollowTheTree(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 11))
		tree := state.NewTree(nil, nil, nil)
		var sums dagSums
		for step := range 60 {
			var edits []*state.Entry
			run := r.IntN(2) == 0 // whether many start again
			for range oneOf(r, 1, 3, 100, 300) {
				edits = append(edits, someDAG(r, run))
			}
			if r.IntN(8) == 0 {
				tree = state.NewTree(nil, nil, nil, edits...)
			} else {
				tree = tree.With(edits...)
			}
			sums.follow(tree)
			if r.IntN(3) == 0 {
				e := someDAG(r, true)
				sums.decided(e, e.Brief()) // and not adopted
				sums.follow(tree)
			}
			var anew dagSums
			anew.follow(tree)
			for _, session := range []string{"s0", "s1", "s2"} {
				is, want := told(sums.session(session)), told(anew.session(session))
				if !reflect.DeepEqual(is, want) {
					t.Fatalf("seed %d, step %d: the sum of %s is\n%+v\nwant\n%+v", seed, step, session, is, want)
				}
			}
		}
	}
}

// told is what a session tells of a sum.
func told(s *dagSum) (out struct {
	Counts                  [4]int
	Phases                  string
	Active, Failed, Invalid string
	Past                    []string
}) {
	out.Counts = [4]int{s.dags, s.running, s.progress.Done, s.progress.Total}
	out.Phases, out.Active, out.Failed, out.Invalid = fmt.Sprint(s.phases), fmt.Sprint(s.active), fmt.Sprint(s.failed), fmt.Sprint(s.invalid)
	var all []schemas.HistoryEntry
	for i := range s.ended.list {
		all = append(all, s.ended.list[i].entry())
	}
	if !slices.IsSortedFunc(all, func(a, b schemas.HistoryEntry) int {
		return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	}) {
		out.Past = append(out.Past, "not sorted")
	}
	for _, e := range all[max(0, len(all)-schemas.HistoryLimit):] {
		out.Past = append(out.Past, e.At.String()+e.Reason+e.Message)
	}
	return out
}

// someDAG is one of many DAGs as it may be at some time.
func someDAG(r *rand.Rand, run bool) *state.Entry {
	e := &state.Entry{Ref: schemas.DAGKind.Ref(oneOf(r, "d", "d-", "dd") + fmt.Sprint(r.IntN(200)))}
	text := fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: %s}\n", e.Name) + fmt.Sprintf("spec: {session: s%d, nodes: [{name: n, run: [\"true\"]}]}\n", r.IntN(3))
	switch r.IntN(12) {
	case 0:
		return e // gone
	case 1:
		text += "wrong: true\n"
	}
	d := decoder.Decode("specs/"+e.Name+".yaml", []byte(text))
	if e.Object, e.Refs = d.Object, d.Refs; e.Object == nil {
		e.Problems = d.Problems
	}
	if r.IntN(6) == 0 {
		return e
	}
	st := &schemas.DAGStatus{Running: r.IntN(2), Progress: schemas.Progress{Done: r.IntN(3), Total: 3}}
	st.Phase = oneOf(r, schemas.DAGRunning, schemas.DAGSucceeded, schemas.DAGSucceeded, schemas.DAGFailed, schemas.DAGCancelled)
	if run {
		st.Phase = schemas.DAGRunning
	}
	if st.Phase != schemas.DAGRunning && r.IntN(4) > 0 {
		st.FinishedAt = schemas.NewTime(time.Date(2026, 2, 27, 10, 0, r.IntN(30), 0, time.UTC))
	}
	e.SetStatus(st)
	return e
}

var decoder = schemas.NewDecoder(schemas.Kinds{schemas.DAGKind}, 0)

func oneOf[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }
