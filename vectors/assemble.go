package vectors

import (
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/source"
)

// assembly is all that some inputs come to.
type assembly struct {
	inputs []*Input     // sorted by name
	items  []graph.Item // sorted by id
	owner  map[string]int
	alias  map[string][]string // ids by what they are called without their file, sorted
	edges  []graph.Edge        // with ends that are there
	loose  []looseEdge
	facts  []facts // of those inputs that have any, in their order
}

// looseEdge is an edge as its input has it, of which an end is not there, or is named without its file: to where it
// leads may be another matter when other inputs change.
type looseEdge struct {
	graph.Edge
	input int
}

// facts are what an input states of nodes.
type facts struct {
	input       int
	provenances []graph.Provenance
	conflicts   []graph.Conflict
}

// assemble puts inputs together. Of several items with one id, that of the input whose name comes first is taken: they
// are packages of others, which many import.
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

// aliasOf is what a symbol is called without its file; "" for other nodes.
func aliasOf(n *graph.Node) string {
	if n.Type.Domain() != graph.Code {
		return ""
	}
	alias, _ := source.Alias(n.ID)
	return alias
}

// facts are the facts of an input, with what states them.
func (in *Input) facts() facts {
	f := facts{provenances: slices.Clone(in.Provenances), conflicts: slices.Clone(in.Conflicts)}
	for i := range f.provenances {
		f.provenances[i].Source = in.source()
	}
	for i := range f.conflicts {
		f.conflicts[i].Source = in.source()
	}
	return f
}

// relate finds the ends of the edges of input n.
func (a *assembly) relate(n int, in *Input, warn func(error)) {
	for _, e := range in.Edges {
		from, to := a.find(e.From), a.find(e.To)
		if from != e.From || to != e.To {
			a.loose = append(a.loose, looseEdge{e, n})
		}
		if from == "" || to == "" {
			in.warnMissing(&e, from, warn)
			continue
		}
		owner := a.owner[from]
		a.edges = append(a.edges, in.edge(e, from, to, owner == n))
	}
}

// warnMissing tells of an edge that somebody wrote down and that leads nowhere. Of derived ones that is nothing new.
func (in *Input) warnMissing(e *graph.Edge, from string, warn func(error)) {
	if e.Source == "" {
		return
	}
	missing := e.To
	if from == "" {
		missing = e.From
	}
	warn(fmt.Errorf("%s: edge %s from %q to %q: there is no node %q (yet)", in.source(), e.Type, e.From, e.To, missing))
}

// edge is an edge between nodes that are there. One from a node that is not the input's own is stated by the input.
func (in *Input) edge(e graph.Edge, from, to string, own bool) graph.Edge {
	e.From, e.To = from, to
	if e.Source != "" || !own {
		e.Source = in.source()
	}
	return e
}

// find is the id of the node that an end of an edge means; "" if there is none.
func (a *assembly) find(id string) string {
	if _, ok := a.owner[id]; ok {
		return id
	}
	if ids := a.alias[id]; len(ids) > 0 {
		return ids[0]
	}
	return ""
}
