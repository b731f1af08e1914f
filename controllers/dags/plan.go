package dags

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/condition"
	"reconcile.dev/reconcile/schemas/topology"
)

// plan is what the spec of a DAG determines by itself. It is made once for each object and shared by all decisions;
// nodes are known by their position in the spec.
type plan struct {
	name   string
	spec   *schemas.DAGSpec
	index  map[string]int32 // position by name
	needs  [][]int32
	order  []int32 // every node after what it needs
	layers [][]string
	byName []int32 // positions in the order of names, as runs and claims are sorted
	defs   [][]byte
	when   []*condition.Program // nil where a node has no condition
	agents []string             // that nodes name, sorted
	// cleanup are the nodes, by position, whose condition reads the state of a need: it is evaluated when the needs have
	// ended in whatever state.
	cleanup []int32

	retries []schemas.Retry
	// fault is why the DAG can never run; empty when it can.
	fault string
	// last is the newest binding. It saves work and never changes what comes out: a binding is used only where
	// everything that it was made of is the same.
	last atomic.Pointer[binding]
	// made is the newest status that came out, with its nodes in the order of the spec, to save looking them up again.
	made atomic.Pointer[madeStatus]
}

// madeStatus is a status with its nodes by position.
type madeStatus struct {
	status *schemas.DAGStatus
	nodes  []schemas.NodeStatus
}

// nodesOf returns the nodes of a status by position in the spec; an unknown one is empty. Callers must not change them.
func (p *plan) nodesOf(st *schemas.DAGStatus) []*schemas.NodeStatus {
	nodes := make([]*schemas.NodeStatus, len(p.spec.Nodes))
	known := []schemas.NodeStatus(nil)
	switch m := p.made.Load(); {
	case m != nil && m.status == st:
		known = m.nodes
	case len(st.Nodes) > 0:
		known = make([]schemas.NodeStatus, len(nodes))
		for i := range known {
			known[i] = st.Nodes[p.spec.Nodes[i].Name]
		}
	}
	none := new(schemas.NodeStatus)
	for i := range nodes {
		if nodes[i] = none; known != nil {
			nodes[i] = &known[i]
		}
	}
	return nodes
}

// planOf returns the plan of a DAG's object.
func planOf(o *schemas.Object) *plan {
	return o.Derived(func(o *schemas.Object) any { return newPlan(o.Name, o.Spec().(*schemas.DAGSpec)) }).(*plan)
}

func newPlan(name string, spec *schemas.DAGSpec) *plan {
	n := len(spec.Nodes)
	p := &plan{name: name, spec: spec, index: make(map[string]int32, n), needs: make([][]int32, n),
		defs: make([][]byte, n), when: make([]*condition.Program, n), byName: make([]int32, n), retries: make([]schemas.Retry, n)}
	for i := range spec.Nodes {
		p.index[spec.Nodes[i].Name] = int32(i)
		p.byName[i] = int32(i)
	}
	slices.SortFunc(p.byName, func(a, b int32) int {
		return cmp.Or(strings.Compare(spec.Nodes[a].Name, spec.Nodes[b].Name), cmp.Compare(a, b))
	})
	p.wire()
	var arena []byte
	for i := range spec.Nodes {
		arena = p.add(int32(i), arena)
	}
	p.agents = slices.Compact(slices.Sorted(slices.Values(p.agents)))
	if len(p.index) != n {
		p.fail("two nodes have one name")
	}
	p.layer()
	return p
}

func (p *plan) fail(format string, args ...any) {
	if p.fault == "" {
		p.fault = fmt.Sprintf(format, args...)
	}
}

// wire turns the names of needs into positions. All lists share one array.
func (p *plan) wire() {
	total := 0
	for i := range p.spec.Nodes {
		total += len(p.spec.Nodes[i].Needs)
	}
	all := make([]int32, 0, total)
	for i := range p.spec.Nodes {
		n := &p.spec.Nodes[i]
		start := len(all)
		for _, need := range n.Needs {
			to, ok := p.index[need]
			if !ok {
				p.fail("node %s needs %s, which does not exist", n.Name, need)
				continue
			}
			all = append(all, to)
		}
		p.needs[i] = all[start:len(all):len(all)]
	}
}

// add takes in one node. Definitions share one array, the arena.
func (p *plan) add(i int32, arena []byte) []byte {
	n := &p.spec.Nodes[i]
	if n.Agent != "" {
		p.agents = append(p.agents, n.Agent)
	}
	if n.When != "" {
		prog, err := condition.Compile(n.When, n.Needs)
		if err != nil {
			p.fail("node %s: when: %v", n.Name, err)
		}
		p.when[i] = prog
		if prog != nil && prog.ReadsState {
			p.cleanup = append(p.cleanup, i)
		}
	}
	p.retries[i] = n.RetryOr(p.spec.Policy)
	start := len(arena)
	arena = appendDefinition(arena, n)
	p.defs[i] = arena[start:len(arena):len(arena)]
	return arena
}

func (p *plan) layer() {
	o, ok := topology.Sort(p.needs)
	if !ok {
		p.fail("nodes need each other in a circle")
		return
	}
	p.order = o.Tasks
	for _, layer := range o.Layers {
		names := make([]string, len(layer))
		for i, at := range layer {
			names[i] = p.spec.Nodes[at].Name
		}
		p.layers = append(p.layers, names)
	}
}
