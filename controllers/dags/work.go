package dags

import (
	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// results are the results of its needs in the form for the node.
func (f *fold) results(i int32) map[string]settle.Need {
	if len(f.p.Needs[i]) == 0 && f.b.Round(i) < 2 {
		return nil
	}
	out := make(map[string]settle.Need, len(f.p.Needs[i]))
	f.addFormerRound(i, out)
	names := f.p.Spec.Nodes[i].NeedNames()
	for k, to := range f.p.Needs[i] {
		s, n := f.next[to], &f.p.Spec.Nodes[to]
		need := settle.Need{State: s.State, ExitCode: s.ExitCode}
		if len(s.Result) > 0 {
			need.Result = s.Result
		}
		switch {
		case s.State == schemas.NodeSucceeded && n.Joins():
			for _, from := range f.sources(to) {
				if f.next[from].State == schemas.NodeSucceeded {
					need.Files = append(need.Files, f.p.Spec.Nodes[from].Outputs.Files...)
				}
			}
		case s.State == schemas.NodeSucceeded:
			need.Files = n.Outputs.Files
		}
		out[names[k]] = need
	}
	return out
}

// workFor is the task of an agent that works on node i, or reviews its change.
func (f *fold) workFor(i int32, name string, agent *schemas.AgentSpec, needs map[string]settle.Need, attempt int) *agentio.Work {
	n, session := &f.p.Spec.Nodes[i], f.b.SessionSpec()
	return &agentio.Work{Session: f.p.Spec.Session, DAG: f.p.Name, Node: n.Name, Agent: name, Role: agents.Role(name, agent),
		Issue: f.p.Issue(session), Attempt: attempt, Model: agent.Model, Prompt: f.prompt(i), Acceptance: f.acceptance(i),
		About: agentio.Issue{Title: session.Title, Text: session.Description}, Needs: needs, Inputs: n.Inputs,
		Constraints: f.constraints(n, agent)}
}

// constraints are the rules of the work that its agent cannot know.
func (f *fold) constraints(n *schemas.Node, agent *schemas.AgentSpec) []string {
	out := []string{"Change nothing in " + f.Tree.Settings().Folders.State + "/ and .reconcile/: only reconcile writes there.",
		"Approving, skipping and answering for people are refused to agents."}
	limit := agent.Runner.AsCommand().Timeout
	if n.Timeout != nil {
		limit = n.Timeout
	}
	if limit != nil {
		out = append(out, "You are ended after "+limit.String()+".")
	}
	return out
}
