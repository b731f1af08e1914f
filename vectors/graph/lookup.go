package graph

import (
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Find looks up the Ref of a node in the graph by its id.
func (g *Graph) Find(id string) (Ref, bool) {
	u, ok := g.place(id)
	return Ref(u), ok && g.has(Ref(u))
}

// FindHash looks up the Ref of a node in the graph by the hash of its id, see [HashID].
func (g *Graph) FindHash(hash uint64) (Ref, bool) {
	if g.over != nil {
		if u, ok := g.over.hashes[hash]; ok && g.has(Ref(u)) {
			return Ref(u), true
		}
	}
	u, ok := g.flatGraph.find(hash, "")
	return Ref(u), ok && g.has(Ref(u))
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

// ID returns the id of a Ref's node in the graph, as a string; it is empty if the graph does not have the node.
func (g *Graph) ID(r Ref) string {
	if !g.has(r) {
		return ""
	}
	return string(g.idOf(uint32(r)))
}

// Type returns the type of a node; 0 if the node does not exist.
func (g *Graph) Type(r Ref) NodeType {
	if !g.has(r) {
		return 0
	}
	return g.typeOf(uint32(r))
}

// NameAndDigest returns the name of a node of the graph and the digest of its text; "" and 0 for a node that the graph
// does not have.
func (g *Graph) NameAndDigest(r Ref) (name string, digest uint64) {
	if !g.has(r) {
		return "", 0
	}
	if n := g.changed(uint32(r)); n != nil {
		return n.Name, n.Digest
	}
	return string(g.field(uint32(r), rowName)), g.number(uint32(r), rowDigest)
}

// Node returns a copy of a node of the graph with all fields, and the zero node if the graph does not have it. It
// shares no memory with the graph.
func (g *Graph) Node(r Ref) Node {
	if !g.has(r) {
		return Node{}
	}
	if n := g.changed(uint32(r)); n != nil {
		out := *n
		out.Labels = slices.Clone(n.Labels)
		return out
	}
	return g.flatGraph.node(uint32(r))
}

// Provenance are the provenances of a node in the order of their ids.
func (g *Graph) Provenance(r Ref) []Provenance {
	switch {
	case !g.has(r):
		return nil
	case g.over == nil || !g.over.stated:
		if uint32(r) < g.nodes {
			return g.flatGraph.provenancesOf(uint32(r))
		}
		return nil
	}
	all, id := g.over.provenances, g.ID(r)
	from, _ := slices.BinarySearchFunc(all, id, func(p Provenance, id string) int { return strings.Compare(p.Node, id) })
	to := from
	for to < len(all) && all[to].Node == id {
		to++
	}
	return slices.Clone(all[from:to])
}

// Conflicts returns the conflicts of the graph with the node as A or as B, in the order of their ids.
func (g *Graph) Conflicts(r Ref) []Conflict {
	var out []Conflict
	for _, c := range g.allConflicts() {
		if id := g.ID(r); id != "" && (c.A == id || c.B == id) {
			out = append(out, c)
		}
	}
	return out
}

// HashID is what other indexes know a node by: the xxhash64 of its id.
func HashID(id string) uint64 { return xxhash.Sum64String(id) }
