package graph

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// maxCount is how many nodes and how many edges a graph may have, and how many bytes its texts.
const maxCount = 1<<31 - 1

// Parts are the input of Build, in any order.
type Parts struct {
	Nodes       []Node
	Edges       []Edge
	Provenances []Provenance
	Conflicts   []Conflict
}

// arc is an edge between places.
type arc struct {
	from, to uint32
	weight   uint32 // bits of a float32
	kind     byte
	source   string
}

// compareArcs is the order of the arcs of a graph as it is built: without regard to what With added.
func compareArcs(a, b arc) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.kind, b.kind), cmp.Compare(a.to, b.to),
		strings.Compare(a.source, b.source), cmp.Compare(b.weight, a.weight))
}

// graphBuilder builds a graph.
type graphBuilder struct {
	nodes   []*Node
	refused refusals
	text    []byte
	spans   map[string]rowSpan
	base    *flatGraph
}

// Build makes a graph. It skips parts that break the rules, each with an error that gives the reason: a node without
// id or of unknown type, the second of two nodes with one id, an edge to a missing node or one that the rules forbid,
// see [CheckEdge]; of many errors it returns the first hundred in the order of their texts, and the number of the
// others. The graph is nil only if the parts are too many for the format.
func Build(p Parts) (*Graph, []error) {
	b := &graphBuilder{spans: map[string]rowSpan{}}
	b.takeNodes(p.Nodes)
	if len(b.nodes) > maxCount || len(p.Edges) > maxCount || textSize(p) > maxCount {
		return nil, []error{errors.New("the nodes, edges or texts are more than 2^31; index fewer files")}
	}
	find := b.placeNodes()
	arcs := b.takeEdges(p.Edges, find)
	provenances := takeProvenances(p.Provenances, find, &b.refused)
	conflicts := takeConflicts(p.Conflicts, find, &b.refused)
	return b.layOut(arcs, provenances, conflicts, find), b.refused.list()
}

// finder is the place of a node.
type finder func(id string) (uint32, bool)

// takeNodes sorts the nodes by id and skips invalid ones.
func (b *graphBuilder) takeNodes(nodes []Node) {
	b.nodes = make([]*Node, 0, len(nodes))
	for i := range nodes {
		if err := CheckNode(&nodes[i]); err != nil {
			b.refused.add(err)
			continue
		}
		b.nodes = append(b.nodes, &nodes[i])
	}
	slices.SortFunc(b.nodes, compareNodes)
	kept := b.nodes[:0]
	for _, n := range b.nodes {
		if len(kept) > 0 && kept[len(kept)-1].ID == n.ID {
			b.refused.add(fmt.Errorf("node %q is there twice: as %s and as %s; ids are unique", n.ID, namedPlace(kept[len(kept)-1]),
				namedPlace(n)))
			continue
		}
		kept = append(kept, n)
	}
	b.nodes = kept
}

// compareNodes orders by id; nodes of one id in an order that does not depend on that of the input.
func compareNodes(a, b *Node) int {
	if c := strings.Compare(a.ID, b.ID); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.End, b.End),
		cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name), cmp.Compare(a.Digest, b.Digest),
		cmp.Compare(a.At, b.At), slices.Compare(sortedSet(a.Labels), sortedSet(b.Labels)))
}

// placeNodes makes the hash table, and returns a function that finds nodes in it.
func (b *graphBuilder) placeNodes() finder {
	b.base = &flatGraph{header: header{nodes: uint32(len(b.nodes)), slotCount: 1}}
	for b.base.slotCount < b.base.nodes+b.base.nodes/2+1 {
		b.base.slotCount *= 2
	}
	slots, mask := make([]uint32, b.base.slotCount), b.base.slotCount-1
	for i, n := range b.nodes {
		at := uint32(HashID(n.ID)) & mask
		for slots[at] != 0 {
			at = (at + 1) & mask
		}
		slots[at] = uint32(i) + 1
	}
	b.base.slots = slots
	return func(id string) (uint32, bool) {
		for at := uint32(HashID(id)) & mask; slots[at] != 0; at = (at + 1) & mask {
			if i := slots[at] - 1; b.nodes[i].ID == id {
				return i, true
			}
		}
		return 0, false
	}
}

// takeEdges makes arcs of the valid edges, sorted.
func (b *graphBuilder) takeEdges(edges []Edge, find finder) []arc {
	arcs := make([]arc, 0, len(edges))
	for i := range edges {
		e := &edges[i]
		a, err := toArc(e, find, func(u uint32) NodeType { return b.nodes[u].Type })
		if err != nil {
			b.refused.add(err)
			continue
		}
		arcs = append(arcs, a)
	}
	arcs = sortByNode(arcs, len(b.nodes))
	// Of equal ones the heaviest is first.
	return slices.CompactFunc(arcs, sameEdge)
}

func sameEdge(a, b arc) bool {
	return a.from == b.from && a.to == b.to && a.kind == b.kind && a.source == b.source
}

// sortByNode sorts by compareArcs: the nodes by counting, the few arcs of each by comparing.
func sortByNode(arcs []arc, nodes int) []arc {
	starts := make([]int, nodes+1)
	for i := range arcs {
		starts[arcs[i].from+1]++
	}
	for i := range nodes {
		starts[i+1] += starts[i]
	}
	next, out := slices.Clone(starts), make([]arc, len(arcs))
	for _, a := range arcs {
		out[next[a.from]] = a
		next[a.from]++
	}
	for i := range nodes {
		slices.SortFunc(out[starts[i]:starts[i+1]], compareArcs)
	}
	return out
}

// toArc resolves the ends of an edge; the error is the reason why it cannot be in the graph.
func toArc(e *Edge, find finder, typeOf func(uint32) NodeType) (arc, error) {
	from, ok := find(e.From)
	if !ok {
		return arc{}, missingNode(e, e.From)
	}
	to, ok := find(e.To)
	if !ok {
		return arc{}, missingNode(e, e.To)
	}
	err := CheckEdge(e.Type, &Node{ID: e.From, Type: typeOf(from)}, &Node{ID: e.To, Type: typeOf(to)})
	weight := e.Weight
	if weight == 0 {
		weight = 1
	}
	if err == nil && !(weight > 0 && weight <= 1) {
		err = fmt.Errorf("edge %s from %q to %q has the weight %v; weights are above 0 up to 1", e.Type, e.From, e.To, e.Weight)
	}
	if err != nil && e.Source != "" {
		err = fmt.Errorf("%s: %w", e.Source, err)
	}
	return arc{from, to, math.Float32bits(weight), byte(e.Type), e.Source}, err
}

// takeProvenances sorts by node and id and skips invalid ones.
func takeProvenances(all []Provenance, find finder, refused *refusals) []Provenance {
	out := make([]Provenance, 0, len(all))
	for _, p := range all {
		if _, ok := find(p.Node); !ok {
			refused.add(fmt.Errorf("%s: provenance %q: there is no node %q", p.Source, p.ID, p.Node))
		} else if p.Confidence > 1000 {
			refused.add(fmt.Errorf("%s: provenance %q: the confidence is %d; it is in thousandths", p.Source, p.ID, p.Confidence))
		} else {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Provenance) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.ID, b.ID), strings.Compare(a.Source, b.Source),
			strings.Compare(a.SourceType, b.SourceType), strings.Compare(a.SourceID, b.SourceID),
			strings.Compare(a.Verifier, b.Verifier), cmp.Compare(a.VerifiedAt, b.VerifiedAt),
			cmp.Compare(a.Confidence, b.Confidence))
	})
	return slices.Compact(out)
}

// takeConflicts sorts by id and skips invalid ones.
func takeConflicts(all []Conflict, find finder, refused *refusals) []Conflict {
	out := make([]Conflict, 0, len(all))
	for _, c := range all {
		_, a := find(c.A)
		_, b := find(c.B)
		if !a || !b {
			refused.add(fmt.Errorf("%s: conflict %q is between %q and %q, which are not both nodes", c.Source, c.ID, c.A, c.B))
			continue
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Conflict) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Source, b.Source), strings.Compare(a.A, b.A),
			strings.Compare(a.B, b.B), strings.Compare(a.Type, b.Type), strings.Compare(a.Resolution, b.Resolution),
			cmp.Compare(a.DetectedAt, b.DetectedAt), cmp.Compare(a.ResolvedAt, b.ResolvedAt))
	})
	return slices.Compact(out)
}

// maxRefused is the maximum number of refusals that are returned.
const maxRefused = 100

// refusals keeps the first errors in the order of their texts, in whatever order they are added.
type refusals struct {
	errs  []error
	count int
}

func (r *refusals) add(err error) {
	r.errs = append(r.errs, err)
	r.count++
	if len(r.errs) >= 4*maxRefused {
		r.shorten()
	}
}

func (r *refusals) shorten() {
	slices.SortStableFunc(r.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	r.errs = r.errs[:min(len(r.errs), maxRefused)]
}

func (r *refusals) list() []error {
	r.shorten()
	if r.count > len(r.errs) {
		return append(r.errs, fmt.Errorf("and %d more like these", r.count-len(r.errs)))
	}
	return r.errs
}

// newList returns a list with room for n arcs.
func newList(n int) list { return list{make([]uint32, n), make([]uint32, n), make([]byte, n)} }

// outward are the arcs of the graph by the node that they leave, as they are sorted.
func outward(arcs []arc, nodes int) csr {
	c := newCSR(arcs, nodes, func(a *arc) uint32 { return a.from })
	for i := range arcs {
		c.to[i], c.weight[i], c.kind[i] = arcs[i].to, arcs[i].weight, arcs[i].kind
	}
	return c
}

// inward sorts the arcs by the node that they lead to, then by type and the node that they leave: by type, then by
// node, each time with a stable sort.
func inward(arcs []arc, nodes int) csr {
	var starts [256]int
	for i := range arcs {
		starts[int(arcs[i].kind)+1]++
	}
	for t := range len(starts) - 1 {
		starts[t+1] += starts[t]
	}
	byKind := make([]uint32, len(arcs))
	for i := range arcs {
		byKind[starts[arcs[i].kind]] = uint32(i)
		starts[arcs[i].kind]++
	}
	c := newCSR(arcs, nodes, func(a *arc) uint32 { return a.to })
	next := slices.Clone(c.start)
	for _, i := range byKind {
		a := &arcs[i]
		at := next[a.to]
		next[a.to]++
		c.to[at], c.weight[at], c.kind[at] = a.from, a.weight, a.kind
	}
	return c
}

// newCSR has room for the arcs, and the starts counted by one of their ends.
func newCSR(arcs []arc, nodes int, end func(*arc) uint32) csr {
	c := csr{make([]uint32, nodes+1), list{make([]uint32, len(arcs)), make([]uint32, len(arcs)), make([]byte, len(arcs))}}
	for i := range arcs {
		c.start[end(&arcs[i])+1]++
	}
	for i := range nodes {
		c.start[i+1] += c.start[i]
	}
	return c
}
