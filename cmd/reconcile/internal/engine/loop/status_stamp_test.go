package loop

import (
	"testing"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestStatusThatWaits: while effects run, the file of a status may be behind, but not about what people decide or are asked, nor about a
// conversation that is handed over.
func TestStatusThatWaits(t *testing.T) {
	spec := "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: d}\nspec:\n  session: s\n  nodes:\n    - {name: a, agent: coder, prompt: Do it.}\n    - {name: b, agent: coder, prompt: Do it.}\n"
	object := schemas.NewDecoder(controllers.Schemas(), 0).Decode("specs/d.yaml", []byte(spec)).Object
	handedOver := func(phases ...string) *schemas.Handoffs {
		h := new(schemas.Handoffs)
		for _, phase := range phases {
			h.Chain = append(h.Chain, schemas.Handoff{Phase: phase})
		}
		return h
	}
	stamp := func(change func(st *schemas.DAGStatus, a, b *schemas.NodeStatus)) statusStamp {
		st := &schemas.DAGStatus{}
		st.Phase, st.Conditions = schemas.DAGRunning, []schemas.Condition{{Type: schemas.Ready, Status: schemas.False, Reason: "Working"}}
		a, b := schemas.NodeStatus{State: schemas.NodeRunning}, schemas.NodeStatus{State: schemas.NodeBlocked}
		if change != nil {
			change(st, &a, &b)
		}
		st.Nodes = schemas.NodeStatusesOf(map[string]schemas.NodeStatus{"a": a, "b": b})
		e := &state.Entry{Ref: schemas.DAGKind.Ref("d"), Object: object}
		e.SetStatus(st)
		return stampOf(e, 100)
	}
	type change = func(st *schemas.DAGStatus, a, b *schemas.NodeStatus)
	once := stamp(func(_ *schemas.DAGStatus, a, _ *schemas.NodeStatus) { a.Handoff = handedOver(schemas.HandoffRequested) })
	for _, c := range []struct {
		name  string
		was   statusStamp
		is    change
		waits bool
	}{
		{"nothing", stamp(nil), nil, true},
		{"another state", stamp(nil), func(_ *schemas.DAGStatus, a, _ *schemas.NodeStatus) { a.State = schemas.NodeSucceeded }, true},
		{"no node waits for a person any more", stamp(nil), func(_ *schemas.DAGStatus, _, b *schemas.NodeStatus) { b.State = schemas.NodeRunning }, true},
		{"one more node waits for a person", stamp(nil), func(_ *schemas.DAGStatus, a, _ *schemas.NodeStatus) { a.State = schemas.NodeBlocked }, false},
		{"another phase", stamp(nil), func(st *schemas.DAGStatus, _, _ *schemas.NodeStatus) { st.Phase = schemas.DAGPaused }, false},
		{"ready", stamp(nil), func(st *schemas.DAGStatus, _, _ *schemas.NodeStatus) { st.Conditions[0].Status = schemas.True }, false},
		{"another reason", stamp(nil), func(st *schemas.DAGStatus, _, _ *schemas.NodeStatus) { st.Conditions[0].Reason = "Held" }, false},
		{"an action", stamp(nil), func(st *schemas.DAGStatus, _, _ *schemas.NodeStatus) {
			st.Actions = []schemas.AppliedAction{{Name: "x"}}
		}, false},
		{"a hand-off", stamp(nil), func(_ *schemas.DAGStatus, a, _ *schemas.NodeStatus) { a.Handoff = handedOver(schemas.HandoffRequested) }, false},
		{"the same hand-off", once, func(_ *schemas.DAGStatus, a, _ *schemas.NodeStatus) { a.Handoff = handedOver(schemas.HandoffRequested) }, true},
		{"its end", once, func(_ *schemas.DAGStatus, a, _ *schemas.NodeStatus) { a.Handoff = handedOver(schemas.HandoffCompleted) }, false},
		{"the next one", once, func(_ *schemas.DAGStatus, a, _ *schemas.NodeStatus) {
			a.Handoff = handedOver(schemas.HandoffCompleted, schemas.HandoffRequested)
		}, false},
	} {
		is := stamp(c.is)
		if got := c.was.waits(&is); got != c.waits {
			t.Errorf("%s: %v, want %v", c.name, got, c.waits)
		}
	}
}
