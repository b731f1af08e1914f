package graph

import (
	"iter"
	"slices"
	"strings"
)

// Find looks up the Ref of a node in the graph by its id.
func (g *Graph) Find(id string) (Ref, bool) {
	u, ok := g.place(id)
	return Ref(u), ok && g.has(Ref(u))
}

// place returns the place of an id, also of a removed node.
func (g *Graph) place(id string) (uint32, bool) {
	if g.over != nil {
		if u, ok := g.over.ids[id]; ok {
			return u, true
		}
	}
	return g.base.find(HashID(id), id)
}

// FindHash looks up the Ref of a node in the graph by the hash of its id, see [HashID].
func (g *Graph) FindHash(hash uint64) (Ref, bool) {
	if g.over != nil {
		if u, ok := g.over.hashes[hash]; ok && g.has(Ref(u)) {
			return Ref(u), true
		}
	}
	u, ok := g.base.find(hash, "")
	return Ref(u), ok && g.has(Ref(u))
}

// All yields the nodes of the graph in the order of their ids, also those that were added since it was built.
func (g *Graph) All() iter.Seq[Ref] {
	return func(yield func(Ref) bool) {
		var added []uint32
		if g.over != nil {
			added = g.over.sorted(g)
		}
		for u := range g.nodes {
			for len(added) > 0 && g.before(added[0], u) {
				if !yield(Ref(added[0])) {
					return
				}
				added = added[1:]
			}
			if g.has(Ref(u)) && !yield(Ref(u)) {
				return
			}
		}
		for _, u := range added {
			if !yield(Ref(u)) {
				return
			}
		}
	}
}

// ByPath finds the nodes of the graph with a path by binary search, and returns them in the order of their ids. They
// are those of one file.
func (g *Graph) ByPath(path string) []Ref {
	if path == "" {
		return nil
	}
	from, _ := slices.BinarySearchFunc(g.byPath, path, func(u uint32, p string) int {
		return strings.Compare(string(g.field(u, rowPath)), p)
	})
	to := from
	for to < len(g.byPath) && string(g.field(g.byPath[to], rowPath)) == path {
		to++
	}
	var out []Ref
	for _, u := range g.byPath[from:to] {
		if g.has(Ref(u)) && g.changed(u) == nil {
			out = append(out, Ref(u))
		}
	}
	if g.over == nil {
		return out
	}
	for u, n := range g.over.nodes {
		if g.has(Ref(u)) && n.Path == path {
			out = append(out, Ref(u))
		}
	}
	slices.SortFunc(out, func(a, b Ref) int { return g.byID(uint32(a), uint32(b)) })
	return out
}

// Between returns the edges of the arcs between two nodes of the graph that lead from the first to the second, sorted
// by type.
func (g *Graph) Between(from, to Ref) []Edge {
	var out []Edge
	for _, a := range g.arcs(from) {
		if a.to == uint32(to) {
			out = append(out, g.edge(a))
		}
	}
	return out
}
