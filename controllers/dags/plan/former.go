package plan

import "sync/atomic"

// formerKeys are the keys of nodes as an earlier version made them, with all parameters of the DAG in those of each command. They are
// made when they are first asked for: a tree that has no such record never asks.
type formerKeys struct{ made atomic.Pointer[[2][]string] }

// formerKeys returns the keys of the tasks and those with the agents, as an earlier version made them; nil where they cannot differ.
func (b *Binding) formerKeys(p *Plan) (tasks, withAgents []string) {
	if b.former == nil {
		return nil, nil
	}
	if made := b.former.made.Load(); made != nil {
		return made[0], made[1]
	}
	defs, agentDefs := make([][]byte, len(p.defs)), make([][]byte, len(p.defs))
	for i := range p.Spec.Nodes {
		n := &p.Spec.Nodes[i]
		if defs[i], agentDefs[i] = p.defs[i], p.agentDefs[i]; n.Made != nil && n.Made.Former != nil {
			defs[i] = appendDefinition(nil, n, "", n.Made.Former)
			agentDefs[i] = defs[i] // it is a command
		}
	}
	then := *b
	tasks, withAgents = then.bothKeys(p, defs, agentDefs)
	b.former.made.Store(&[2][]string{tasks, withAgents})
	return tasks, withAgents
}

// MadeOfResults reports whether nodes of the DAG are made of what others left: then the same spec may make others.
func (p *Plan) MadeOfResults() bool {
	return p.Spec.Expansion != nil && len(p.Spec.Expansion.Results) > 0
}
