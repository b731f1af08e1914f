package vectors

import (
	"errors"
	"slices"
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
)

// assembly is the content of several inputs.
type assembly struct {
	inputs     []*Input     // sorted by name
	items      []graph.Item // sorted by id
	owner      map[string]int
	alias      map[string][]string // ids by their names without the file, sorted
	edges      []graph.Edge        // with ends that are there
	unresolved []unresolvedEdge
	facts      []facts // of those inputs that have any, in their order
}

// unresolvedEdge is an edge as its input states it, with an end that does not exist or that is named without its
// file: changes of other inputs can change the node that it means.
type unresolvedEdge struct {
	graph.Edge
	input int
}

// facts are what an input states of nodes.
type facts struct {
	input       int
	provenances []graph.Provenance
	conflicts   []graph.Conflict
}

// assemble joins inputs. Of several items with one id, the one of the input whose name is first is used: these are
// third-party packages, which many import.
func assemble(inputs []Input, warn func(error)) *assembly {
	a := &assembly{inputs: byName(inputs), owner: map[string]int{}, alias: map[string][]string{}}
	for n, in := range a.inputs {
		for i := range in.Items {
			if _, taken := a.owner[in.Items[i].ID]; !taken {
				a.owner[in.Items[i].ID] = n
				a.items = append(a.items, in.Items[i])
			}
		}
	}
	slices.SortFunc(a.items, func(a, b graph.Item) int { return strings.Compare(a.ID, b.ID) })
	for i := range a.items {
		if alias := aliasOf(&a.items[i].Node); alias != "" {
			a.alias[alias] = append(a.alias[alias], a.items[i].ID)
		}
	}
	for n, in := range a.inputs {
		a.relate(n, in, warn)
		if f := in.facts(); len(f.provenances)+len(f.conflicts) > 0 {
			f.input = n
			a.facts = append(a.facts, f)
		}
	}
	return a
}

// relate resolves the ends of the edges of input n.
func (a *assembly) relate(n int, in *Input, warn func(error)) {
	for _, e := range in.Edges {
		from, to := a.resolve(e.From), a.resolve(e.To)
		if from != e.From || to != e.To {
			a.unresolved = append(a.unresolved, unresolvedEdge{e, n})
		}
		if from == "" || to == "" {
			in.warnMissing(&e, from, warn)
			continue
		}
		owner := a.owner[from]
		a.edges = append(a.edges, in.edge(e, from, to, owner == n))
	}
}

// resolve returns the id of the node that an end of an edge means; "" if it does not exist.
func (a *assembly) resolve(id string) string {
	if _, ok := a.owner[id]; ok {
		return id
	}
	if ids := a.alias[id]; len(ids) > 0 {
		return ids[0]
	}
	return ""
}

// nodes are the items that a graph can have, in its order: item i is node i.
func (a *assembly) nodes() []*graph.Item {
	out := make([]*graph.Item, 0, len(a.items))
	for i := range a.items {
		if graph.CheckNode(&a.items[i].Node) == nil {
			out = append(out, &a.items[i])
		}
	}
	return out
}

// relations adds the graph and its sections. It skips facts that break the graph's rules, and returns the reasons.
func (a *assembly) relations(c *parts) (refused []error, err error) {
	g, refused := a.graph()
	if g == nil {
		return nil, errors.Join(refused...)
	}
	c.add(sectionGraph, g.AppendTo(nil))
	addContributions(g, a, c)
	c.add(sectionAliases, encodeAliases(g, a))
	loose, names := encodeUnresolved(a)
	c.add(sectionUnresolved, loose)
	c.add(sectionUnresolvedNames, names)
	c.add(sectionFacts, encodeFacts(a.facts))
	return refused, nil
}

// graph builds the graph, and returns the facts that break its rules. It is nil if the format has no room for it.
func (a *assembly) graph() (*graph.Graph, []error) {
	parts := graph.Parts{Nodes: make([]graph.Node, len(a.items)), Edges: a.edges}
	for i := range a.items {
		parts.Nodes[i] = a.items[i].Node
	}
	for _, f := range a.facts {
		parts.Provenances = append(parts.Provenances, f.provenances...)
		parts.Conflicts = append(parts.Conflicts, f.conflicts...)
	}
	return graph.Build(parts)
}
