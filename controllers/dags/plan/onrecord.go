package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/schemas"
)

// bindKeys makes the keys of all nodes: those of their tasks, and those of the tasks with the agents. Without agents they are
// the same.
func (b *Binding) bindKeys(p *Plan) {
	if len(b.agents) > 0 {
		b.runners = make(map[string]string, len(b.agents))
	}
	for i, o := range b.agents {
		b.runners[p.Agents[i]] = agents.RunnerDigest(o.Spec().(*schemas.AgentSpec))
	}
	b.tasks, b.withAgents = b.bothKeys(p, p.defs, p.agentDefs)
	if b.former = nil; p.hasFormer {
		b.former = new(formerKeys)
	}
	if b.primary = b.tasks; p.Spec.Policy.RerunOnAgentChange {
		b.primary = b.withAgents
	}
	b.Keys = b.primary
}

// bothKeys makes the keys of the tasks, and those with the agents, from definitions.
func (b *Binding) bothKeys(p *Plan, defs, agentDefs [][]byte) (tasks, withAgents []string) {
	b.bindLoops(p, defs)
	tasks = p.keys(b, defs, nil)
	if len(b.agents) == 0 {
		return tasks, tasks
	}
	return tasks, p.keys(b, agentDefs, b.runners)
}

// keys makes the key of each node from definitions, and the digests of runners by agent.
func (p *Plan) keys(b *Binding, defs [][]byte, runners map[string]string) []string {
	out := make([]string, len(p.Order))
	of := func(i int32) string { return out[i] }
	var buf []byte
	for _, i := range p.Order {
		out[i], buf = p.nodeKey(buf, b, i, defs[i], of, runners[p.Spec.Nodes[i].Agent], b.roundOf(i))
	}
	return out
}

// nodeKey digests what decides about node i, given its definition, the keys of its needs and its round.
func (p *Plan) nodeKey(buf []byte, b *Binding, i int32, def []byte, of func(int32) string, runner string, round loopRound) (string, []byte) {
	o := keys.Begin(buf[:0])
	o.Raw("definition", def)
	o.Int("generation", b.gens[i])
	o.Text("inputs", b.Inputs[i])
	if needs := p.Needs[i]; len(needs) > 0 {
		o.Open("needs")
		for _, to := range p.sorted(needs) {
			o.Text(p.Spec.Nodes[to].Name, of(to))
		}
		o.Close()
	}
	round.append(&o)
	o.Text("runner", runner)
	o.Texts("tools", b.tools[i])
	buf = o.End()
	return keys.Digest(buf), buf
}

// unchanged reports whether the key of node i, in a status about the present spec, can differ only by the agents: an earlier
// version made it, and an agent changed since.
func (b *Binding) unchanged(p *Plan, i int32, was []*schemas.NodeStatus) bool {
	s := was[i]
	return !p.Spec.Policy.RerunOnAgentChange && !p.MadeOfResults() && s.Key != "" && s.Task == "" && s.Generation == b.gens[i] && s.Inputs == b.Inputs[i] && maps.Equal(s.Tools, b.tools[i]) &&
		max(s.Round, 1) == max(b.Round(i), 1) &&
		!slices.ContainsFunc(p.Needs[i], func(to int32) bool { return b.Keys[to] != was[to].Key })
}

// onRecord is the key under which node i is on record, or has to be.
func (b *Binding) onRecord(p *Plan, i int32, was *schemas.NodeStatus, runs func() []*schemas.Run) string {
	key := b.primary[i]
	if made := cmp.Or(was.Task, was.Key); was.Key != "" && (made == b.tasks[i] || b.counts(p, i, made)) {
		return was.Key
	}
	name, all := p.Spec.Nodes[i].Name, runs()
	at, _ := slices.BinarySearchFunc(all, name, func(r *schemas.Run, name string) int { return strings.Compare(r.Node, name) })
	found := key
	for ; at < len(all) && all[at].Node == name; at++ {
		switch on := all[at].NodeKey; {
		case on == key:
			return key
		case b.counts(p, i, on):
			found = on
		}
	}
	return found
}

// counts reports whether a record of node i under a key is about the present definition with its agent, also as earlier versions made
// it.
func (b *Binding) counts(p *Plan, i int32, key string) bool {
	if key == b.primary[i] || key == b.withAgents[i] {
		return true
	}
	f := b.formerKeys(p)
	return f != nil && (key == f.withAgents[i] || key == f.tasks[i] && !p.Spec.Policy.RerunOnAgentChange)
}

// TaskOf is the digest of the task of node i where its key differs from it; else "".
func (b *Binding) TaskOf(i int32) string {
	if b.Keys[i] == b.primary[i] {
		return ""
	}
	return b.primary[i]
}

// BeforeRetry is the key that node i had before it was last retried; "" if it was not.
func (b *Binding) BeforeRetry(p *Plan, i int32) string {
	if b.gens[i] == 0 {
		return ""
	}
	defs, runner := p.defs, ""
	if p.Spec.Policy.RerunOnAgentChange {
		defs, runner = p.agentDefs, b.runners[p.Spec.Nodes[i].Agent]
	}
	was := *b
	was.gens = slices.Clone(b.gens)
	was.gens[i]--
	key, _ := p.nodeKey(nil, &was, i, defs[i], func(need int32) string { return b.primary[need] }, runner, b.roundOf(i))
	return key
}

// sorted returns the nodes in the order of their names.
func (p *Plan) sorted(nodes []int32) []int32 {
	byName := func(a, b int32) int { return strings.Compare(p.Spec.Nodes[a].Name, p.Spec.Nodes[b].Name) }
	if slices.IsSortedFunc(nodes, byName) {
		return nodes
	}
	return slices.SortedFunc(slices.Values(nodes), byName)
}

// formerKeys returns the keys of the tasks and those with the agents, as an earlier version made them; nil where they cannot differ.
func (b *Binding) formerKeys(p *Plan) *former {
	if b.former == nil {
		return nil
	}
	if made := b.former.made.Load(); made != nil {
		return made
	}
	f := &former{defs: make([][]byte, len(p.defs)), agentDefs: make([][]byte, len(p.defs))}
	for i := range p.Spec.Nodes {
		n := &p.Spec.Nodes[i]
		if f.defs[i], f.agentDefs[i] = p.defs[i], p.agentDefs[i]; n.Made != nil && n.Made.Former != nil {
			f.defs[i] = appendDefinition(nil, n, "", n.Made.Former)
			f.agentDefs[i] = f.defs[i] // it is a command
		}
	}
	then := *b
	f.tasks, f.withAgents = then.bothKeys(p, f.defs, f.agentDefs)
	b.former.made.Store(f)
	return f
}
