package graph

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// Ref is the place of a node in a graph: in one that was built, or opened, its number in the order of the ids, from 0. It
// stays the same node's in all graphs that come of it by [Graph.With], also
// after the node went and came back; in a graph that is built anew it may be another's.
type Ref uint32

// Graph is nodes and the edges between them. It never changes, and is safe for concurrent use.
type Graph struct {
	*base
	over *overlay // what With changed; nil if nothing
	// live nodes and edges.
	nodeCount, edgeCount int
}

// base is a graph as it was built: flat, see the package comment.
type base struct {
	data []byte
	header
	rows, kinds, text, sources, provenances, conflicts []byte
	slots, byPath                                      []uint32
	out, in                                            csr
	visits                                             *sync.Pool // of *visits
}

// csr has the arcs of node i at start[i] to start[i+1], sorted by type and the id of the node at the other end.
type csr struct {
	start []uint32
	list
}

// list are arcs of one node in one direction.
type list struct {
	to     []uint32
	weight []uint32 // the bits of a float32, above 0 up to 1
	kind   []byte   // EdgeType
}

// newList is a list of so many arcs, to be filled.
func newList(n int) list { return list{make([]uint32, n), make([]uint32, n), make([]byte, n)} }

func (l list) part(from, to uint32) list {
	return list{l.to[from:to:to], l.weight[from:to:to], l.kind[from:to:to]}
}

func (c *csr) of(u uint32) list { return c.part(c.start[u], c.start[u+1]) }

// owner is the place that an arc is of.
func (c *csr) owner(arc uint32) uint32 {
	next, _ := slices.BinarySearch(c.start, arc+1)
	return uint32(next - 1)
}

// outOf and inOf are the arcs that leave a node and that come to it, those from the other end.
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

// total is how many places the graph has: those of nodes that went, too.
func (g *Graph) total() uint32 {
	if g.over != nil {
		return g.nodes + uint32(len(g.over.added))
	}
	return g.nodes
}

// has reports whether there is a node at the place.
func (g *Graph) has(r Ref) bool {
	return uint32(r) < g.total() && (g.over == nil || !g.over.gone.has(uint32(r)))
}

// changed is the node at the place if it is not that of the base.
func (g *Graph) changed(u uint32) *Node {
	if g.over == nil || !g.over.touched.has(u) {
		return nil
	}
	return g.over.nodes[u]
}

// idOf is the id of the node at a place, also of one that went.
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

// Nodes is how many nodes there are, Edges how many edges.
func (g *Graph) Nodes() int { return g.nodeCount }

// Edges is how many edges there are.
func (g *Graph) Edges() int { return g.edgeCount }

// Changed is how many nodes have changed, or have other edges, since the graph was built. The look-ups of these are slower
// and they are copied by each [Graph.With]: when they are many, Open(g.AppendTo(nil)) is a graph without.
func (g *Graph) Changed() int {
	if g.over == nil {
		return 0
	}
	return len(g.over.links)
}

// ID is the id of a node; "" if there is none.
func (g *Graph) ID(r Ref) string {
	if !g.has(r) {
		return ""
	}
	return string(g.idOf(uint32(r)))
}

// Type is the type of a node; 0 if there is none.
func (g *Graph) Type(r Ref) NodeType {
	if !g.has(r) {
		return 0
	}
	return g.typeOf(uint32(r))
}

// Called is the name of a node and the digest of its text; "" and 0 if there is none.
func (g *Graph) Called(r Ref) (name string, digest uint64) {
	if !g.has(r) {
		return "", 0
	}
	if n := g.changed(uint32(r)); n != nil {
		return n.Name, n.Digest
	}
	return string(g.field(uint32(r), rowName)), g.number(uint32(r), rowDigest)
}

// Node is the node at a place; the zero value if there is none. It shares no memory with the graph.
func (g *Graph) Node(r Ref) Node {
	if !g.has(r) {
		return Node{}
	}
	if n := g.changed(uint32(r)); n != nil {
		out := *n
		out.Labels = slices.Clone(n.Labels)
		return out
	}
	return g.base.node(uint32(r))
}

// edge is an arc for people.
func (g *Graph) edge(a arc) Edge {
	return Edge{From: string(g.idOf(a.from)), To: string(g.idOf(a.to)), Type: EdgeType(a.kind),
		Weight: weightOf(a.weight), Source: a.source}
}

// arcs are the arcs that leave a node, with what states them.
func (g *Graph) arcs(r Ref) []arc {
	u := uint32(r)
	switch {
	case !g.has(r):
		return nil
	case g.over == nil || !g.over.touched.has(u):
		return g.base.arcsOf(u)
	}
	l := g.over.links[u]
	out := l.out.arcs(u)
	for i, s := range l.source {
		out[i].source = s
	}
	return out
}

// arcsOf are the arcs that leave a node of the base, with what states them.
func (b *base) arcsOf(u uint32) []arc {
	out := b.out.of(u).arcs(u)
	for i, source := range b.sourcesOf(u) {
		out[i].source = source
	}
	return out
}

// sourcesOf is what states the arcs that leave a node of the base; nil if nothing states any.
func (b *base) sourcesOf(u uint32) (out []string) {
	start, end := b.out.start[u], b.out.start[u+1]
	for row := b.sourceRow(start); row < int(b.sourceCount); row++ {
		arc, source := b.source(row)
		if arc >= end {
			break
		}
		if out == nil {
			out = make([]string, end-start)
		}
		if arc >= start { // always, unless the bytes are not what was written
			out[arc-start] = source
		}
	}
	return out
}

// arcs are the arcs of a list that leave a node, without what states them.
func (l list) arcs(u uint32) []arc {
	out := make([]arc, len(l.to))
	for i := range out {
		out[i] = arc{from: u, to: l.to[i], kind: l.kind[i], weight: l.weight[i]}
	}
	return out
}

// Provenance are the provenances of a node in the order of their ids.
func (g *Graph) Provenance(r Ref) []Provenance {
	switch {
	case !g.has(r):
		return nil
	case g.over == nil || !g.over.stated:
		if uint32(r) < g.nodes {
			return g.base.provenancesOf(uint32(r))
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

// Conflicts are the conflicts that a node is in, in the order of their ids.
func (g *Graph) Conflicts(r Ref) []Conflict {
	var out []Conflict
	for _, c := range g.allConflicts() {
		if id := g.ID(r); id != "" && (c.A == id || c.B == id) {
			out = append(out, c)
		}
	}
	return out
}

func (g *Graph) allProvenances() []Provenance {
	if g.over != nil && g.over.stated {
		return slices.Clone(g.over.provenances)
	}
	out := make([]Provenance, g.provenanceCount)
	for i := range out {
		out[i] = g.base.provenance(i)
	}
	return out
}

func (g *Graph) allConflicts() []Conflict {
	if g.over != nil && g.over.stated {
		return slices.Clone(g.over.conflicts)
	}
	out := make([]Conflict, g.conflictCount)
	for i := range out {
		out[i] = g.base.conflict(i)
	}
	return out
}

// parts are what the graph is made of, in the order of ids: Build(g.parts()) answers as g does.
func (g *Graph) parts() Parts {
	p := Parts{
		Nodes: make([]Node, 0, g.nodeCount), Edges: make([]Edge, 0, g.edgeCount),
		Provenances: g.allProvenances(), Conflicts: g.allConflicts(),
	}
	for r := range g.All() {
		p.Nodes = append(p.Nodes, g.Node(r))
		for _, a := range g.arcs(r) {
			p.Edges = append(p.Edges, g.edge(a))
		}
	}
	return p
}
