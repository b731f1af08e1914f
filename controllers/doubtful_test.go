package controllers

import (
	"slices"
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestDoubtful: what a tree that was settled and then changed says is known once what changed is decided, what is not ready, since it may
// depend on git, say, and what declares tools; of sessions, all depend on files.
func TestDoubtful(t *testing.T) {
	t.Parallel()
	entry := func(kind schemas.Kind, name, spec string, status schemas.Status, ready schemas.ConditionStatus) *state.Entry {
		e := &state.Entry{Ref: kind.Ref(name), Object: schemas.NewObject(kind, schemas.Metadata{Name: name}, "specs/"+name+".yaml", name, []byte(spec), nil)}
		status.Base().Conditions = []schemas.Condition{{Type: schemas.Ready, Status: ready}}
		e.SetStatus(status)
		return e
	}
	dag, session := schemas.DAGKind, schemas.SessionKind
	tree := state.NewTree(Schemas(), nil, nil,
		entry(dag, "done", `{"session":"s"}`, &schemas.DAGStatus{}, schemas.True),
		entry(dag, "held", `{"session":"s"}`, &schemas.DAGStatus{}, schemas.False),
		entry(dag, "tools", `{"session":"s","tools":["go"]}`, &schemas.DAGStatus{}, schemas.True),
		entry(session, "s", `{}`, &schemas.SessionStatus{}, schemas.False))
	got := settle.Doubtful(tree, []schemas.Ref{session.Ref("changed")})
	slices.SortFunc(got, schemas.Ref.Compare)
	if want := []schemas.Ref{dag.Ref("held"), dag.Ref("tools"), session.Ref("changed")}; !slices.Equal(got, want) {
		t.Errorf("doubtful are %v, want %v", got, want)
	}
	if got := settle.Doubtful(tree, []schemas.Ref{}); got == nil {
		t.Error("where nothing changed, everything is doubtful")
	}
	if got := settle.Doubtful(tree, nil); got != nil {
		t.Errorf("where it is not known what changed, only %v are doubtful", got)
	}
}
