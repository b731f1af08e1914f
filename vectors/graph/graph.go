// Package graph relates the nodes of the index: code, history and knowledge. A [Graph] is nodes and typed edges in one
// flat slice of bytes, which is used in place, without decoding, and has the same bytes for the same parts on every
// machine, in any order of input.
//
// # Model
//
// A [Node] has a type, and the type belongs to one of three domains. An [Edge] is derived from the source of its node,
// or stated by a file; a table defines which types of edges may lead from which domain to which, see [CheckEdge].
// [Build] skips and reports parts that break the rules or have a missing end. Provenances and conflicts are stored, not
// interpreted.
//
// # Changes
//
// A graph never changes and is safe for concurrent use. [Graph.With] returns another one that shares the unchanged
// parts: a writer replaces the nodes of a file in time proportional to their number, while readers continue with their
// graph. The answers, and the bytes, are those of a graph built from the same parts.
//
// # Walks
//
// [Graph.Walk], [Graph.ShortestPath], [Graph.Paths], [Graph.Cycles] and [Graph.Expand] answer in an order that depends
// on ids only. None recurses, each visits a node once (paths, once per path), and their results are bounded. Scores are
// whole numbers in 1/2^30, so that no processor rounds them differently.
//
// # Format
//
// A file of package sections. Nodes are numbered in the order of their ids, arcs in the order of the node that they leave,
// their type, the node that they lead to, and what states them.
//
//	rows         for each node 64 bytes: id, name, path and labels (begin and size in the text, 4 + 4 bytes each), first
//	             and last line (4 + 4), digest, time and hash of the id (8 each)
//	kinds        for each node its type, 1 byte
//	slots        hash table of ids: number of the node + 1, or 0; 4 bytes each, a power of two of them
//	by path      the numbers of the nodes with a path, in the order of the paths, 4 bytes each
//	out          for each node, and again for the end, its first arc (4 bytes); for each arc the node that it leads
//	             to (4), the bits of its weight (4), its type (1): four sections
//	in           the same from the other end; the arcs of a node in the order of their type and the node that they leave
//	sources      for each stated arc its number and the text of what states it, 12 bytes
//	provenances  56 bytes each, by node and id
//	conflicts    56 bytes each, by id
//	text         the texts, each once; names and paths are often parts of ids
//
// [Open] checks that all numbers are in range, so that no content causes a panic or a read outside the data; a
// malformed file gives [ErrDamaged], and must be rebuilt. Open does not compare the content with its checksums: that is left
// to the file that contains the graph as a section, or to [Graph.Verify].
package graph

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Ref is the place of a node in a graph: in one that was built or opened, its number in the order of the ids, from 0. It
// keeps its node in all graphs derived by [Graph.With], also after the node was removed and added again; in a rebuilt
// graph it may be another node's.
type Ref uint32

// Graph is nodes and the edges between them. It never changes, and is safe for concurrent use.
type Graph struct {
	*flatGraph
	over *overlay // what With changed; nil if nothing
	// live nodes and edges.
	nodeCount, edgeCount int
}

// outOf and inOf return the arcs that leave a node and those that lead to it, the latter from the other end.
func (g *Graph) outOf(u uint32) list {
	if g.over != nil && g.over.touched.has(u) {
		return g.over.links[u].out
	}
	return g.out.of(u)
}

func (g *Graph) inOf(u uint32) list {
	if g.over != nil && g.over.touched.has(u) {
		return g.over.links[u].in
	}
	return g.in.of(u)
}

// nodePlaces returns the number of places of the graph, including those of removed nodes.
func (g *Graph) nodePlaces() uint32 {
	if g.over != nil {
		return g.nodes + uint32(len(g.over.added))
	}
	return g.nodes
}

// has reports whether there is a node at the place.
func (g *Graph) has(r Ref) bool {
	return uint32(r) < g.nodePlaces() && (g.over == nil || !g.over.gone.has(uint32(r)))
}

// idOf returns the id of the node at a place, also of a removed one.
func (g *Graph) idOf(u uint32) []byte {
	if u >= g.nodes {
		return g.over.added[u-g.nodes]
	}
	return g.field(u, rowID)
}

// before reports whether the id of one node comes before that of the other.
func (g *Graph) before(a, b uint32) bool {
	if a < g.nodes && b < g.nodes {
		return a < b
	}
	return bytes.Compare(g.idOf(a), g.idOf(b)) < 0
}

// byID is before for sorting.
func (g *Graph) byID(a, b uint32) int {
	switch {
	case a == b:
		return 0
	case g.before(a, b):
		return -1
	}
	return 1
}

// typeOf is the type of the node at a place.
func (g *Graph) typeOf(u uint32) NodeType {
	if n := g.changed(u); n != nil {
		return n.Type
	}
	return NodeType(g.kinds[u])
}

// Nodes returns the number of nodes in the graph.
func (g *Graph) Nodes() int { return g.nodeCount }

// Edges returns the number of edges in the graph.
func (g *Graph) Edges() int { return g.edgeCount }

// edge returns an arc as an edge with ids.
func (g *Graph) edge(a arc) Edge {
	return Edge{From: string(g.idOf(a.from)), To: string(g.idOf(a.to)), Type: EdgeType(a.kind),
		Weight: weightOf(a.weight), Source: a.source}
}

// arcs returns the arcs that leave a node, with their sources.
func (g *Graph) arcs(r Ref) []arc {
	u := uint32(r)
	switch {
	case !g.has(r):
		return nil
	case g.over == nil || !g.over.touched.has(u):
		return g.flatGraph.arcsOf(u)
	}
	l := g.over.links[u]
	out := l.out.arcs(u)
	for i, s := range l.source {
		out[i].source = s
	}
	return out
}

func (g *Graph) allProvenances() []Provenance {
	if g.over != nil && g.over.stated {
		return slices.Clone(g.over.provenances)
	}
	out := make([]Provenance, g.provenanceCount)
	for i := range out {
		out[i] = g.flatGraph.provenance(i)
	}
	return out
}

func (g *Graph) allConflicts() []Conflict {
	if g.over != nil && g.over.stated {
		return slices.Clone(g.over.conflicts)
	}
	out := make([]Conflict, g.conflictCount)
	for i := range out {
		out[i] = g.flatGraph.conflict(i)
	}
	return out
}

// degree is how many edges leave a node and lead to it.
func (g *Graph) degree(u uint32) uint32 {
	if g.over != nil && g.over.touched.has(u) {
		return uint32(len(g.over.links[u].out.to) + len(g.over.links[u].in.to))
	}
	return g.out.start[u+1] - g.out.start[u] + g.in.start[u+1] - g.in.start[u]
}

// Verify rebuilds the graph from its nodes and edges, and compares the bytes.
func (g *Graph) Verify() error {
	again, refused := Build(g.parts())
	if len(refused) > 0 || g.over == nil && !bytes.Equal(again.file.Bytes(), g.file.Bytes()) || again.nodeCount != g.nodeCount ||
		again.edgeCount != g.edgeCount {
		return ErrDamaged
	}
	return nil
}

// place returns the number of the node with an id, also of a removed one.
func (g *Graph) place(id string) (uint32, bool) {
	if g.over != nil {
		if u, ok := g.over.ids[id]; ok {
			return u, true
		}
	}
	return g.flatGraph.find(HashID(id), id)
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

// Edge is the edge of a step. Of several that differ in their sources it is the heaviest, then the first by source.
func (g *Graph) Edge(s Step) Edge {
	var best Edge
	for _, a := range g.arcs(s.From) {
		if a.to == uint32(s.To) && EdgeType(a.kind) == s.Type && (best.From == "" || weightOf(a.weight) > best.Weight) {
			best = g.edge(a)
		}
	}
	return best
}

// compareArcs is the order of arcs of one node, those of equal ends by what states them, then the heaviest first.
func (g *Graph) compareArcs(a, b arc) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), g.byID(a.to, b.to), strings.Compare(a.source, b.source),
		cmp.Compare(b.weight, a.weight))
}
