package dags

import (
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/condition"
)

// whenHolds evaluates the node's condition; if it does not hold, it has set the state.
func (f *fold) whenHolds(i int32) bool {
	session := f.b.SessionSpec()
	env := condition.Env{Needs: map[string]condition.Need{}, Session: f.p.Spec.Session, DAG: f.p.Name, Issue: f.p.Issue(session)}
	for _, to := range f.p.Needs[i] {
		s := &f.next[to]
		need := condition.Need{State: s.State, Result: condition.Result(s.Result)}
		if s.ExitCode != nil {
			need.ExitCode = *s.ExitCode
		}
		env.Needs[f.p.Spec.Nodes[to].Name] = need
	}
	holds, err := f.p.When[i].Holds(env)
	switch {
	case err != nil:
		f.set(i, schemas.NodeFailed, settle.ReasonWhenFailed, "when cannot be evaluated: "+err.Error())
	case !holds:
		f.set(i, schemas.NodeSkipped, settle.ReasonWhenFalse, "when is false")
	}
	return holds
}
