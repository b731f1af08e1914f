package derive_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// claimed is a tree in which an agent works, whose context has reached shares.
func claimed(session string, from time.Time, shares ...int) *state.Tree {
	turn := &schemas.Turn{SessionID: session}
	for i, at := range shares {
		turn.Marks = append(turn.Marks, schemas.ContextMark{Percent: at, At: schemas.NewTime(from.Add(time.Duration(i) * time.Minute)),
			Used: int64(at), Window: 100, Session: session, Tools: []string{"read a.go"}, Said: "Half way."})
	}
	run := schemas.Run{Key: "dags/work/look-0123456789abcdef-1", Owner: "dag/work", Node: "look", NodeKey: "sha256:01", Seq: 1, Agent: "librarian", Turn: turn}
	return state.NewTree(controllers.Schemas(), nil, nil, &state.Entry{Ref: schemas.DAGKind.Ref("work"), Claims: []state.Claim{{Run: run}}})
}

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// derived derives the checkpoints of a tree that has others already.
func derived(t *testing.T, tree *state.Tree, has []*schemas.Checkpoint) derive.Checkpoints {
	t.Helper()
	_, kept := new(derive.Deriver).Derive(tree.WithCheckpoints(has, nil))
	for _, c := range kept.Add {
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", c.Name(), err)
		}
	}
	return kept
}

func TestCheckpointsAreWrittenOnce(t *testing.T) {
	tree := claimed("s1", noon, 25, 50)
	first := derived(t, tree, nil).Add
	if len(first) != 2 || first[0].Name() != "work/librarian-1" || first[1].Name() != "work/librarian-2" {
		t.Fatalf("%v", first)
	}
	if again := derived(t, tree, first).Add; len(again) > 0 {
		t.Errorf("written again: %v", again)
	}
	more := derived(t, claimed("s1", noon, 25, 50, 75), first).Add
	if len(more) != 1 || more[0].CheckpointIndex != 3 || more[0].Threshold != 75 {
		t.Errorf("the next share: %v", more)
	}
	if other := derived(t, claimed("s2", noon.Add(time.Hour), 25), first).Add; len(other) != 1 || other[0].CheckpointIndex != 3 {
		t.Errorf("another session: %v", other)
	}
	a, _ := state.EncodeCheckpoint(first[0])
	b, _ := state.EncodeCheckpoint(derived(t, tree, nil).Add[0])
	if !slices.Equal(a, b) {
		t.Errorf("equal records give\n%s\nand\n%s", a, b)
	}
}

func TestCheckpointsAreBounded(t *testing.T) {
	var has []*schemas.Checkpoint
	for i := range 50 {
		has = append(has, derived(t, claimed(fmt.Sprint("s", i), noon.Add(time.Duration(i)*time.Hour), 50), has).Add...)
	}
	kept := derived(t, claimed("new", noon.Add(100*time.Hour), 50), has)
	if len(kept.Add) != 1 || kept.Add[0].CheckpointIndex != 51 || len(kept.Drop) != 1 || kept.Drop[0].CheckpointIndex != 1 {
		t.Errorf("%+v", kept)
	}
	if old := derived(t, claimed("old", noon.Add(-time.Hour), 50), has); len(old.Add)+len(old.Drop) > 0 {
		t.Errorf("what was dropped comes back: %+v", old)
	}
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: []mutants.Mutant{
		{"a checkpoint is written twice", "checkpoints.go", "if old.SameCause(c) {", "if old.SameCause(c) && false {", "TestCheckpointsAreWrittenOnce"},
		{"dropped checkpoints come back", "checkpoints.go", "return kept >= checkpointsKept && !", "return kept < 0 && !", "TestCheckpointsAreBounded"},
	}}.Run(t)
}
