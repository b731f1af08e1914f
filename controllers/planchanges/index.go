// Package planchanges decides PlanChanges: requests to change the nodes of a DAG, and blockers of nodes. An architect answers them in a
// DAG that package derive makes, or a person by an Action. An accepted edit is applied to the file of the DAG.
package planchanges

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Status returns the status in the tree; never nil. Callers must not change it.
func Status(e *state.Entry) *schemas.PlanChangeStatus {
	return state.StatusOf[schemas.PlanChangeStatus](e)
}

// Spec returns the usable spec of a plan change, or nil.
func Spec(e *state.Entry) *schemas.PlanChangeSpec { return state.SpecOf[*schemas.PlanChangeSpec](e) }

// Escalation is a blocker of a node of a DAG.
type Escalation struct {
	Entry *state.Entry
	Spec  *schemas.PlanChangeSpec
}

// byDAG are the escalations of a tree, by DAG; nil without any.
type byDAG struct{ of map[string][]Escalation }

// EscalationsOf lists the blockers of nodes of a DAG, by name.
func EscalationsOf(w *settle.World, dag string) []Escalation {
	return settle.Shared(w.OfTree, func() *byDAG { return indexOf(w.Tree) }).of[dag]
}

func indexOf(t *state.Tree) *byDAG {
	x := &byDAG{}
	for _, e := range t.Entries(schemas.PlanChangeKind.Name) {
		spec := Spec(e)
		if spec == nil || spec.Node == "" {
			continue
		}
		if to, err := spec.TargetRef(); err == nil && to.Kind == schemas.DAGKind.Name {
			if x.of == nil {
				x.of = map[string][]Escalation{}
			}
			x.of[to.Name] = append(x.of[to.Name], Escalation{e, spec})
		}
	}
	return x
}

// Escalates reports whether the plan change is about a blocker: one for a hand-off is not.
func (x *Escalation) Escalates() bool { return x.Spec.Change != schemas.ChangeHandoff }

// Holds reports whether the blocker keeps the node with a key from going on. One of a run is about the key of that run.
func (x *Escalation) Holds(w *settle.World, dag, key string) bool {
	if x.Spec.Run != "" && !strings.HasPrefix(x.Spec.Run, keys.OfRuns(dag, x.Spec.Node, key)) {
		return false
	}
	st := settle.StatusAs[schemas.PlanChangeStatus](w, x.Entry)
	c := st.Condition(schemas.Ready)
	return st.Open() || st.Phase == "" && (c == nil || c.Reason != settle.ReasonRefused)
}

// SpecOfRun is the plan change that a run asks for, and its name; nil for none.
func SpecOfRun(run *schemas.Run) (name string, spec *schemas.PlanChangeSpec) {
	dag, node, ok := schemas.SplitRunKey(run.Key)
	if len(run.PlanChange) == 0 || !ok {
		return "", nil
	}
	s := new(schemas.PlanChangeSpec)
	if json.Unmarshal(run.PlanChange, s) != nil {
		return "", nil
	}
	s.Target, s.Run, s.By, s.At, s.Node = schemas.DAGKind.Ref(dag).String(), run.Key, run.Agent, run.FinishedAt, ""
	if run.Outcome == schemas.OutcomeAsked {
		s.Node = node
	}
	return clarifications.NameFor(dag+"-"+s.Change, run.Key), s
}

// dagOf finds the DAG that an edit changes. The error says which name is missing.
func dagOf(t *state.Tree, spec *schemas.PlanChangeSpec, e *schemas.PlanEdit) (*state.Entry, error) {
	to, err := spec.TargetRef()
	if err != nil {
		return nil, err
	}
	if to.Kind == schemas.DAGKind.Name && (e.DAG == "" || e.DAG == to.Name) {
		return t.Entry(to), nil
	}
	if to.Kind == schemas.DAGKind.Name {
		return nil, fmt.Errorf("edit.dag: %q is not the target, %s", e.DAG, to)
	}
	all := dagsIn(t, to)
	names := make([]string, len(all))
	for i := range all {
		if names[i] = all[i].Name; names[i] == e.DAG || e.DAG == "" && len(all) == 1 {
			return all[i], nil
		}
	}
	return nil, fmt.Errorf("edit.dag: name the DAG of %s to change: %s", to, schemas.Shorten(names, 10))
}

// dagsIn lists the DAGs of a session, without those that answer plan changes.
func dagsIn(t *state.Tree, session schemas.Ref) []*state.Entry {
	var out []*state.Entry
	for _, ref := range t.ReferrersOf(session, schemas.DAGKind.Name) {
		e := t.Entry(ref)
		if spec := state.SpecOf[*schemas.DAGSpec](e); spec != nil && spec.Answers == "" {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *state.Entry) int { return strings.Compare(a.Name, b.Name) })
	return out
}
