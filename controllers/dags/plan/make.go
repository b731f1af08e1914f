package plan

import (
	"cmp"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/condition"
	"reconcile.dev/reconcile/schemas/topology"
)

// Of returns the plan of a DAG's object.
func Of(o *schemas.Object) *Plan {
	return o.Derived(func(o *schemas.Object) any { return newPlan(o.Name, o.Spec().(*schemas.DAGSpec)) }).(*Plan)
}

func newPlan(name string, spec *schemas.DAGSpec) *Plan {
	n := len(spec.Nodes)
	p := &Plan{Name: name, Spec: spec, Index: make(map[string]int32, n), Needs: make([][]int32, n),
		defs: make([][]byte, n), agentDefs: make([][]byte, n), When: make([]*condition.Program, n), ByName: make([]int32, n), Retries: make([]schemas.Retry, n)}
	for i := range spec.Nodes {
		p.Index[spec.Nodes[i].Name] = int32(i)
		p.ByName[i] = int32(i)
	}
	slices.SortFunc(p.ByName, func(a, b int32) int {
		return cmp.Or(strings.Compare(spec.Nodes[a].Name, spec.Nodes[b].Name), cmp.Compare(a, b))
	})
	p.Names = make([]string, n)
	for k, i := range p.ByName {
		p.Names[k] = spec.Nodes[i].Name
	}
	if spec.Expansion != nil && spec.Expansion.Fault != "" {
		p.fail("%s", spec.Expansion.Fault)
	}
	p.wire()
	var arena []byte
	for i := range spec.Nodes {
		arena = p.add(int32(i), arena)
	}
	p.Agents = slices.Compact(slices.Sorted(slices.Values(p.Agents)))
	if len(p.Index) != n {
		p.fail("two nodes have one name")
	}
	p.layer()
	p.loop()
	p.time()
	return p
}

// time finds the calls with a time limit.
func (p *Plan) time() {
	at := map[*schemas.Call]int{}
	for i := range p.Spec.Nodes {
		for _, c := range p.Spec.CallsOf(p.Spec.Nodes[i].Name) {
			if c.Timeout == nil {
				continue
			}
			k, known := at[c]
			if !known {
				k, at[c] = len(p.Timed), len(p.Timed)
				p.Timed = append(p.Timed, Call{Call: c, Join: p.Index[c.Node]})
			}
			p.Timed[k].Nodes = append(p.Timed[k].Nodes, int32(i))
			if p.TimedOf == nil {
				p.TimedOf = map[int32][]int{}
			}
			p.TimedOf[int32(i)] = append(p.TimedOf[int32(i)], k)
		}
	}
}

// wire turns the names of needs into positions. All lists share one array.
func (p *Plan) wire() {
	total := 0
	for i := range p.Spec.Nodes {
		total += len(p.Spec.Nodes[i].Needs)
	}
	all := make([]int32, 0, total)
	for i := range p.Spec.Nodes {
		n := &p.Spec.Nodes[i]
		start := len(all)
		for _, need := range n.Needs {
			to, ok := p.Index[need]
			if !ok {
				p.fail("node %s needs %s, which does not exist", n.Name, need)
				continue
			}
			all = append(all, to)
		}
		p.Needs[i] = all[start:len(all):len(all)]
	}
}

// add adds one node. Definitions share one array, the arena.
func (p *Plan) add(i int32, arena []byte) []byte {
	n := &p.Spec.Nodes[i]
	if n.Agent != "" {
		p.Agents = append(p.Agents, n.Agent)
	}
	if n.When != "" {
		prog, err := condition.CompileIn(n.When, n.Scope())
		if err != nil {
			p.fail("node %s: when: %v", n.Name, err)
		}
		p.When[i] = prog
		if prog != nil && prog.ReadsState && !n.RunsFinally() {
			p.Cleanup = append(p.Cleanup, i)
		}
	}
	if n.RunsFinally() || n.Joins() {
		p.Cleanup = append(p.Cleanup, i)
	}
	if n.Made != nil || p.Spec.Workflow != nil {
		p.addTexts(i)
	}
	p.Retries[i] = n.RetryOr(p.Spec.Policy)
	given := []byte(nil)
	if n.Made != nil {
		given, p.hasFormer = n.Made.Key, p.hasFormer || n.Made.Former != nil
	}
	start := len(arena)
	arena = appendDefinition(arena, n, "", given)
	p.defs[i] = arena[start:len(arena):len(arena)]
	if p.agentDefs[i] = p.defs[i]; n.Agent != "" {
		start = len(arena)
		arena = appendDefinition(arena, n, n.Agent, given)
		p.agentDefs[i] = arena[start:len(arena):len(arena)]
	}
	return arena
}

func (p *Plan) layer() {
	o, ok := topology.Sort(p.Needs)
	if !ok {
		p.fail("nodes need each other in a circle")
		return
	}
	p.Order = o.Tasks
	for _, layer := range o.Layers {
		names := make([]string, len(layer))
		for i, at := range layer {
			names[i] = p.Spec.Nodes[at].Name
		}
		p.Layers = append(p.Layers, names)
	}
}
