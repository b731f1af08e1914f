package dags

import (
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/condition"
)

// expressionEnv is what the expressions of node i see.
func (f *fold) expressionEnv(i int32) condition.Env {
	session := f.b.SessionSpec()
	env := condition.Env{Needs: map[string]condition.Need{}, Session: f.p.Spec.Session, DAG: f.p.Name, Issue: f.p.Issue(session),
		Round: max(f.b.Round(i), 1)}
	n := &f.p.Spec.Nodes[i]
	if n.Made != nil {
		env.Params, env.Matrix = n.Made.Params, n.Made.Matrix
	}
	names := n.NeedNames()
	for k, to := range f.p.Needs[i] {
		s := f.next[to]
		need := condition.Need{State: s.State, Result: resultOf(s)}
		if s.ExitCode != nil {
			need.ExitCode = *s.ExitCode
		}
		if s.State == schemas.NodeSucceeded {
			need.Files = f.p.Spec.Nodes[to].Outputs.Files
		}
		env.Needs[names[k]] = need
	}
	return env
}

// resultOf is a node's recorded result as expressions see it.
func resultOf(s *schemas.NodeStatus) any { return condition.Result(s.Result) }

// whenHolds evaluates the node's condition; if it does not hold, it has set the state.
func (f *fold) whenHolds(i int32) bool {
	if f.p.When[i] == nil {
		return true
	}
	holds, err := f.p.When[i].Holds(f.expressionEnv(i))
	switch {
	case err != nil:
		f.set(i, schemas.NodeFailed, settle.ReasonWhenFailed, "when cannot be evaluated: "+err.Error())
	case !holds:
		f.set(i, schemas.NodeSkipped, settle.ReasonWhenFalse, "when is false")
	}
	return holds
}
