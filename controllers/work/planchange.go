package work

import (
	"cmp"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// forPerson reports whether a plan change waits for a person.
func forPerson(e *state.Entry) bool {
	c := readiness.ConditionOf(e, schemas.Ready)
	return e.Object != nil && c != nil && c.Reason == settle.ReasonWaitsForPerson && planchanges.Status(e).Phase == schemas.PlanPending
}

// planChange adds a plan change that waits for a person.
func (b *board) planChange(e *state.Entry) {
	spec := planchanges.Spec(e)
	if spec == nil || !forPerson(e) {
		return
	}
	it := Item{Name: e.Ref.String(), Kind: ItemPlanChange, State: ItemReady, Priority: schemas.High, Agent: personFor(b.tree, e),
		Task: "decide: " + spec.Said(), Reason: settle.ReasonWaitsForPerson, Message: readiness.ConditionOf(e, schemas.Ready).Message}
	it.Session = planchanges.Session(b.tree, spec)
	if s := state.SpecOf[*schemas.SessionSpec](b.tree.Entry(schemas.SessionKind.Ref(it.Session))); s != nil {
		it.Issue = s.Issue
	}
	b.items = append(b.items, it)
}

// personFor is the architect who is a person; "" for anyone.
func personFor(t *state.Tree, e *state.Entry) string {
	if who := planchanges.Status(e).Architect; agents.IsPerson(t, who) {
		return who
	}
	return ""
}

// planWaits lists the plan changes that wait for people.
func planWaits(t *state.Tree, in func(schemas.Ref, string) bool) (out []Wait) {
	for _, e := range t.Active(schemas.PlanChangeKind.Name) {
		spec := planchanges.Spec(e)
		if spec == nil || !forPerson(e) || !in(e.Ref, "") {
			continue
		}
		w := Wait{What: e.Ref.String(), Who: personFor(t, e), Task: spec.Said(), Command: planchanges.Command(e.Ref)}
		if w.Who != "" {
			w.Who = cmp.Or(agents.Contact(t, w.Who), w.Who)
		}
		out = append(out, w)
	}
	return out
}
