package graph

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// maxTypes is how many types of nodes the format has room for.
const maxTypes = 64

// maxCount is how many nodes and how many edges a graph may have, and how many bytes its texts.
const maxCount = 1<<31 - 1

// Parts are what a graph is built of, in any order.
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

// builder puts a graph together.
type builder struct {
	nodes   []*Node
	refused refusals
	text    []byte
	spans   map[string]span
	base    *base
}

// span is where a text is.
type span struct{ begin, size uint32 }

// Build makes a graph. What cannot be in it is left out, each with an error that says why: a node without id or of no
// known type, the second of two nodes of one id, an edge to a node that is not there or that the rules forbid, see
// [EdgeType.Allows]; of many errors the first hundred in the order of their texts, and how many more. The graph is nil
// only if the parts are too many for the format.
func Build(p Parts) (*Graph, []error) {
	b := &builder{spans: map[string]span{}}
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

// textSize is an upper bound of the bytes of text.
func textSize(p Parts) int {
	size := 0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		size += len(n.ID) + len(n.Name) + len(n.Path)
		for _, label := range n.Labels {
			size += len(label) + 1
		}
	}
	for i := range p.Edges {
		size += len(p.Edges[i].Source)
	}
	for _, f := range p.Provenances {
		size += len(f.ID) + len(f.SourceType) + len(f.SourceID) + len(f.Verifier) + len(f.Source)
	}
	for _, c := range p.Conflicts {
		size += len(c.ID) + len(c.Type) + len(c.Resolution) + len(c.Source)
	}
	return size
}

// takeNodes sorts the nodes by id and leaves out what cannot be.
func (b *builder) takeNodes(nodes []Node) {
	b.nodes = make([]*Node, 0, len(nodes))
	for i := range nodes {
		if err := checkNode(&nodes[i]); err != nil {
			b.refused.add(err)
			continue
		}
		b.nodes = append(b.nodes, &nodes[i])
	}
	slices.SortFunc(b.nodes, compareNodes)
	kept := b.nodes[:0]
	for _, n := range b.nodes {
		if len(kept) > 0 && kept[len(kept)-1].ID == n.ID {
			b.refused.add(fmt.Errorf("node %q is there twice: as %s and as %s; ids are unique", n.ID, place(kept[len(kept)-1]),
				place(n)))
			continue
		}
		kept = append(kept, n)
	}
	b.nodes = kept
}

// checkNode says why a node cannot be in a graph.
func checkNode(n *Node) error {
	switch {
	case n.ID == "":
		return fmt.Errorf("a node of type %s (%s) has no id", n.Type, place(n))
	case n.Type.Domain() == 0:
		return fmt.Errorf("node %q is of no known type: %s", n.ID, n.Type)
	case n.Line < 0 || n.End < 0 || n.Line > maxCount || n.End > maxCount:
		return fmt.Errorf("node %q has lines %d to %d; they count from 1", n.ID, n.Line, n.End)
	}
	for _, label := range n.Labels {
		if label == "" || strings.Contains(label, labelEnd) {
			return fmt.Errorf("node %q has a label %q; labels are key=value", n.ID, label)
		}
	}
	return nil
}

// place is where a node is, for people.
func place(n *Node) string {
	if n.Path == "" {
		return fmt.Sprintf("%s %q", n.Type, n.Name)
	}
	return fmt.Sprintf("%s %q in %s:%d", n.Type, n.Name, n.Path, n.Line)
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

// placeNodes makes the hash table, and returns what finds nodes in it.
func (b *builder) placeNodes() finder {
	b.base = &base{header: header{nodes: uint32(len(b.nodes)), slotCount: 1}}
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

// takeEdges makes arcs of the edges, sorted, without those that cannot be.
func (b *builder) takeEdges(edges []Edge, find finder) []arc {
	arcs := make([]arc, 0, len(edges))
	for i := range edges {
		e := &edges[i]
		a, err := toArc(e, find, func(u uint32) *Node { return b.nodes[u] })
		if err != nil {
			b.refused.add(err)
			continue
		}
		arcs = append(arcs, a)
	}
	arcs = sortByNode(arcs, len(b.nodes))
	// Of equal ones the heaviest comes first.
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

// toArc finds the ends of an edge and says why it cannot be.
func toArc(e *Edge, find finder, node func(uint32) *Node) (arc, error) {
	from, ok := find(e.From)
	if !ok {
		return arc{}, missing(e, e.From)
	}
	to, ok := find(e.To)
	if !ok {
		return arc{}, missing(e, e.To)
	}
	err := CheckEdge(e.Type, node(from), node(to))
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

func missing(e *Edge, id string) error {
	err := fmt.Errorf("edge %s from %q to %q: there is no node %q; add it, or leave the edge out", e.Type, e.From, e.To, id)
	if e.Source != "" {
		err = fmt.Errorf("%s: %w", e.Source, err)
	}
	return err
}

// takeProvenances sorts by node and id and leaves out what cannot be.
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

// takeConflicts sorts by id and leaves out what cannot be.
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

// intern puts a text where the texts are, unless it is there.
func (b *builder) intern(s string) span {
	if s == "" {
		return span{}
	}
	at, ok := b.spans[s]
	if !ok {
		at = span{uint32(len(b.text)), uint32(len(s))}
		b.text = append(b.text, s...)
		b.spans[s] = at
	}
	return at
}

// part is a text that is often the begin or the end of an id, and then needs no place of its own.
func (b *builder) part(id string, whole span, s string) span {
	switch {
	case s == "":
		return span{}
	case strings.HasPrefix(id, s):
		return span{whole.begin, uint32(len(s))}
	case strings.HasSuffix(id, s):
		return span{whole.begin + uint32(len(id)-len(s)), uint32(len(s))}
	}
	return b.intern(s)
}

func (s span) put(at []byte) {
	binary.LittleEndian.PutUint32(at, s.begin)
	binary.LittleEndian.PutUint32(at[4:], s.size)
}

// layOut writes all sections.
func (b *builder) layOut(arcs []arc, provenances []Provenance, conflicts []Conflict, find finder) *Graph {
	h := &b.base.header
	rows := b.nodeRows()
	sources := b.sourceRows(arcs)
	facts, disputes := b.provenanceRows(provenances, find), b.conflictRows(conflicts, find)
	h.edges, h.textSize = uint32(len(arcs)), uint32(len(b.text))
	h.sourceCount = uint32(len(sources) / sourceSize)
	h.provenanceCount, h.conflictCount = uint32(len(provenances)), uint32(len(conflicts))
	byType, byDigest, byPath := b.orders()
	h.pathed = uint32(len(byPath))
	out, in := outward(arcs, len(b.nodes)), inward(arcs, len(b.nodes))
	kinds := make([]byte, len(b.nodes))
	for i, n := range b.nodes {
		kinds[i] = byte(n.Type)
	}
	data := make([]byte, headerSize, h.size())
	copy(data, magic)
	for i, field := range h.fields() {
		binary.LittleEndian.PutUint32(data[len(magic)+4*i:], *field)
	}
	for _, section := range [][]byte{rows, kinds, raw(b.base.slots), raw(byType), raw(byDigest), raw(byPath),
		raw(out.start), raw(out.to), raw(out.weight), out.kind, raw(in.start), raw(in.to), raw(in.weight), in.kind,
		sources, facts, disputes, b.text} {
		data = append(data, section...)
		data = append(data, make([]byte, -len(data)&(align-1))...)
	}
	g, err := Open(data)
	if err != nil {
		panic("graph: what Build wrote is not sound") // a mistake in this file
	}
	return g
}

// raw are numbers in the format.
func raw(numbers []uint32) []byte {
	out := make([]byte, 4*len(numbers))
	for i, n := range numbers {
		binary.LittleEndian.PutUint32(out[4*i:], n)
	}
	return out
}

func (b *builder) nodeRows() []byte {
	rows := make([]byte, len(b.nodes)*rowSize)
	for i, n := range b.nodes {
		row := rows[i*rowSize:]
		id := b.intern(n.ID)
		id.put(row[rowID:])
		b.part(n.ID, id, n.Name).put(row[rowName:])
		b.part(n.ID, id, n.Path).put(row[rowPath:])
		b.intern(strings.Join(sortedSet(n.Labels), labelEnd)).put(row[rowLabels:])
		binary.LittleEndian.PutUint32(row[rowLine:], uint32(n.Line))
		binary.LittleEndian.PutUint32(row[rowEnd:], uint32(n.End))
		binary.LittleEndian.PutUint64(row[rowDigest:], n.Digest)
		binary.LittleEndian.PutUint64(row[rowAt:], uint64(n.At))
		binary.LittleEndian.PutUint64(row[rowHash:], HashID(n.ID))
	}
	return rows
}

func (b *builder) sourceRows(arcs []arc) []byte {
	var rows []byte
	for i, a := range arcs {
		if a.source == "" {
			continue
		}
		var row [sourceSize]byte
		binary.LittleEndian.PutUint32(row[:], uint32(i))
		b.intern(a.source).put(row[4:])
		rows = append(rows, row[:]...)
	}
	return rows
}

func (b *builder) provenanceRows(all []Provenance, find finder) []byte {
	rows := make([]byte, len(all)*provenanceSize)
	for i, p := range all {
		row := rows[i*provenanceSize:]
		node, _ := find(p.Node)
		binary.LittleEndian.PutUint32(row, node)
		binary.LittleEndian.PutUint32(row[4:], uint32(p.Confidence))
		binary.LittleEndian.PutUint64(row[8:], uint64(p.VerifiedAt))
		for j, text := range []string{p.ID, p.SourceType, p.SourceID, p.Verifier, p.Source} {
			b.intern(text).put(row[provenanceText+8*j:])
		}
	}
	return rows
}

func (b *builder) conflictRows(all []Conflict, find finder) []byte {
	rows := make([]byte, len(all)*conflictSize)
	for i, c := range all {
		row := rows[i*conflictSize:]
		first, _ := find(c.A)
		second, _ := find(c.B)
		binary.LittleEndian.PutUint32(row, first)
		binary.LittleEndian.PutUint32(row[4:], second)
		binary.LittleEndian.PutUint64(row[8:], uint64(c.DetectedAt))
		binary.LittleEndian.PutUint64(row[16:], uint64(c.ResolvedAt))
		for j, text := range []string{c.ID, c.Type, c.Resolution, c.Source} {
			b.intern(text).put(row[conflictText+8*j:])
		}
	}
	return rows
}

// orders are the places of the nodes by type, by digest, and, of those that have one, by path; equal ones by id.
func (b *builder) orders() (byType, byDigest, byPath []uint32) {
	byType, byDigest = make([]uint32, len(b.nodes)), make([]uint32, len(b.nodes))
	for i, n := range b.nodes {
		byType[i], byDigest[i] = uint32(i), uint32(i)
		if n.Path != "" {
			byPath = append(byPath, uint32(i))
		}
	}
	slices.SortFunc(byType, func(x, y uint32) int {
		return cmp.Or(cmp.Compare(b.nodes[x].Type, b.nodes[y].Type), cmp.Compare(x, y))
	})
	slices.SortFunc(byDigest, func(x, y uint32) int {
		return cmp.Or(cmp.Compare(b.nodes[x].Digest, b.nodes[y].Digest), cmp.Compare(x, y))
	})
	slices.SortFunc(byPath, func(x, y uint32) int {
		return cmp.Or(strings.Compare(b.nodes[x].Path, b.nodes[y].Path), cmp.Compare(x, y))
	})
	return byType, byDigest, byPath
}

// outward are the arcs as they are sorted.
func outward(arcs []arc, nodes int) csr {
	c := newCSR(arcs, nodes, func(a *arc) uint32 { return a.from })
	for i := range arcs {
		c.to[i], c.weight[i], c.kind[i] = arcs[i].to, arcs[i].weight, arcs[i].kind
	}
	return c
}

// inward are the arcs by where they lead, then by type and where they come from: sorted by type, then by node, each
// time leaving what is equal as it was.
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

// maxRefused is how many refusals are told.
const maxRefused = 100

// refusals keeps the first errors in the order of their texts, whatever order they come in.
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
