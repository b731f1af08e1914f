package vectors

import (
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/source"
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

// aliasOf returns the name of a symbol without its file; "" for other nodes.
func aliasOf(n *graph.Node) string {
	if n.Type.Domain() != graph.Code {
		return ""
	}
	alias, _ := source.Alias(n.ID)
	return alias
}

// facts returns the facts of an input, with their source set.
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

// warnMissing warns of an edge that a user stated and that has a missing end. It ignores derived edges.
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

// edge returns the edge between existing nodes. One from a node of another input has this input as its source.
func (in *Input) edge(e graph.Edge, from, to string, own bool) graph.Edge {
	e.From, e.To = from, to
	if e.Source != "" || !own {
		e.Source = in.source()
	}
	return e
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
