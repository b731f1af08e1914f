package dags

import (
	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Prompt returns the task of a DAG's node as its agent would be told it now, and the command that would be told. ok is false
// without a node of that name, for one that no program works on, and for a DAG that cannot be decided.
func Prompt(in settle.In, node string) (work *agentio.Work, command *settle.Command, ok bool) {
	if in.Gone() || in.Broken() {
		return nil, nil, false
	}
	p := plan.Of(in.Object)
	if _, bad := unusable(in, p); bad {
		return nil, nil, false
	}
	i, found := p.Index[node]
	if !found {
		return nil, nil, false
	}
	old, _ := in.Status().(*schemas.DAGStatus)
	if old == nil {
		old = new(schemas.DAGStatus)
	}
	f := newFold(in, p, old)
	f.run()
	agent := f.b.Agent(p, f.agentOf(i))
	if agent == nil || agent.Runner.AsCommand() == nil {
		return nil, nil, false
	}
	c := f.b.Command(p, i, f.agentOf(i))
	c.Recall = f.recall(i)
	c.Workspace = f.workspace(i)
	f.goOn(i, &c)
	return f.work(i, agent, f.results(i), f.recs[i].attempts()+1), &c, true
}
