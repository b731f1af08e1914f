package graph

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/schemas/sections"
)

// Ref is the place of a node in a graph: in one that was built or opened, its number in the order of the ids, from 0. It
// keeps its node in all graphs derived by [Graph.With], also after the node was removed and added again; in a rebuilt
// graph it may be another node's.
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
	file *sections.File
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

// list are the arcs of one node in one direction.
type list struct {
	to     []uint32
	weight []uint32 // the bits of a float32, above 0 up to 1
	kind   []byte   // EdgeType
}

// newList returns a list with room for n arcs.
func newList(n int) list { return list{make([]uint32, n), make([]uint32, n), make([]byte, n)} }

func (l list) part(from, to uint32) list {
	return list{l.to[from:to:to], l.weight[from:to:to], l.kind[from:to:to]}
}

func (c *csr) of(u uint32) list { return c.part(c.start[u], c.start[u+1]) }

// owner returns the place that an arc leaves.
func (c *csr) owner(arc uint32) uint32 {
	next, _ := slices.BinarySearch(c.start, arc+1)
	return uint32(next - 1)
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

// total returns the number of places of the graph, including those of removed nodes.
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

// changed returns the node at the place if it differs from the base.
func (g *Graph) changed(u uint32) *Node {
	if g.over == nil || !g.over.touched.has(u) {
		return nil
	}
	return g.over.nodes[u]
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

// Changed returns the number of nodes of the graph that have changed, or have other links, since it was built. Look-ups
// of these are slower and each [Graph.With] copies them: when they are many, Open(g.AppendTo(nil)) returns an equal
// graph without them.
func (g *Graph) Changed() int {
	if g.over == nil {
		return 0
	}
	return len(g.over.links)
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
	return g.base.node(uint32(r))
}

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
		return g.base.arcsOf(u)
	}
	l := g.over.links[u]
	out := l.out.arcs(u)
	for i, s := range l.source {
		out[i].source = s
	}
	return out
}

// arcsOf returns the arcs that leave a node of the base, with their sources.
func (b *base) arcsOf(u uint32) []arc {
	out := b.out.of(u).arcs(u)
	for i, source := range b.sourcesOf(u) {
		out[i].source = source
	}
	return out
}

// sourcesOf returns the sources of the arcs that leave a node of the base; nil if none is stated.
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
		if arc >= start { // always, unless the bytes are damaged
			out[arc-start] = source
		}
	}
	return out
}

// arcs returns the arcs of a list that leave a node, without their sources.
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

// parts returns the parts of the graph, in the order of ids: Build(g.parts()) answers as g does.
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
