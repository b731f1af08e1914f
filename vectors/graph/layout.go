package graph

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"reconcile.dev/reconcile/schemas/sections"
)

// ErrDamaged reports bytes that are not a graph, or one of another version.
var ErrDamaged = errors.New("the graph of the index is damaged or of another version; build it again")

// format is that of graphs.
var format = sections.Format{Magic: "rcngraph", Version: 3}

// header has the sizes of a graph.
type header struct {
	nodes, edges, slotCount, sourceCount, provenanceCount, conflictCount uint32
}

// A row of a node; a field of text is two numbers: where it begins and its length.
const (
	rowID     = 0
	rowName   = 8
	rowPath   = 16
	rowLabels = 24 // parted by labelEnd
	rowLine   = 32
	rowEnd    = 36
	rowDigest = 40
	rowAt     = 48
	rowHash   = 56
	rowSize   = 64
	labelEnd  = "\x00"
)

// Rows of stated facts: numbers, then fields of text.
const (
	sourceSize     = 12 // arc, text
	provenanceSize = 56 // node, confidence, verified at, texts: id, source type, source id, verifier, source
	conflictSize   = 56 // a, b, detected at, resolved at, texts: id, type, resolution, source
	provenanceText = 16
	conflictText   = 24
)

// Open returns the graph in data. The bytes are used in place and must not change while the graph is in use. Open
// checks that all numbers are in range; Verify, or the checksum of a file that contains the graph, detects other changes.
func Open(data []byte) (*Graph, error) {
	file, err := format.Open(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return open(file)
}

func open(file *sections.File) (*Graph, error) {
	b := &flatGraph{file: file, visits: &sync.Pool{New: func() any { return new(visits) }}}
	if !b.split() || !b.sound() {
		return nil, ErrDamaged
	}
	return &Graph{flatGraph: b, nodeCount: int(b.nodes), edgeCount: int(b.edges)}, nil
}

// The numbers of the sections.
const (
	sectionRows = iota
	sectionKinds
	sectionSlots
	sectionByPath
	sectionOut // and three more, see csr
	_
	_
	_
	sectionIn // and three more
	_
	_
	_
	sectionSources
	sectionProvenances
	sectionConflicts
	sectionText
	sectionCount
)

// split finds the sections, and reports whether their sizes match.
func (b *flatGraph) split() bool {
	if b.file.Sections() != sectionCount {
		return false
	}
	b.rows, b.kinds, b.text = b.file.Get(sectionRows), b.file.Get(sectionKinds), b.file.Get(sectionText)
	b.sources, b.provenances, b.conflicts = b.file.Get(sectionSources), b.file.Get(sectionProvenances), b.file.Get(sectionConflicts)
	b.slots, b.byPath = b.words(sectionSlots), b.words(sectionByPath)
	b.out, b.in = b.csr(sectionOut), b.csr(sectionIn)
	b.header = header{nodes: uint32(len(b.kinds)), edges: uint32(len(b.out.to)), slotCount: uint32(len(b.slots)),
		sourceCount: uint32(len(b.sources) / sourceSize), provenanceCount: uint32(len(b.provenances) / provenanceSize),
		conflictCount: uint32(len(b.conflicts) / conflictSize)}
	return len(b.rows) == rowSize*len(b.kinds) && b.out.fits(len(b.kinds), len(b.out.to)) && b.in.fits(len(b.kinds), len(b.out.to))
}

func (b *flatGraph) words(section int) []uint32 { return sections.Numbers[uint32](b.file.Get(section)) }

// csr has the arcs in four sections.
func (b *flatGraph) csr(first int) csr {
	return csr{b.words(first), list{b.words(first + 1), b.words(first + 2), b.file.Get(first + 3)}}
}

// fits reports whether there are as many numbers as for the nodes and arcs.
func (c *csr) fits(nodes, arcs int) bool {
	return len(c.start) == nodes+1 && len(c.to) == arcs && len(c.weight) == arcs && len(c.kind) == arcs
}

// sound reports whether all numbers are in range.
func (b *flatGraph) sound() bool {
	if b.slotCount&(b.slotCount-1) != 0 || b.slotCount <= b.nodes || !b.typesKnown() {
		return false
	}
	return belowLimit(b.slots, b.nodes+1) && belowLimit(b.byPath, b.nodes) && b.out.sound(b.nodes, b.edges) && b.in.sound(b.nodes, b.edges) &&
		b.textsSound(b.rows, rowSize, rowID, rowLine) && b.textsSound(b.sources, sourceSize, 4, sourceSize) &&
		b.textsSound(b.provenances, provenanceSize, provenanceText, provenanceSize) &&
		b.textsSound(b.conflicts, conflictSize, conflictText, conflictSize) && b.statedSound()
}

// typesKnown reports whether all nodes are of known types.
func (b *flatGraph) typesKnown() bool {
	known := true
	for _, t := range b.kinds {
		known = known && t-1 < byte(len(nodeNames)-1)
	}
	return known
}

// belowLimit reports whether all numbers are smaller than the limit.
func belowLimit(numbers []uint32, limit uint32) bool {
	most := uint32(0)
	for _, n := range numbers {
		most = max(most, n)
	}
	return len(numbers) == 0 || most < limit
}

const one = 0x3f800000 // the bits of 1 as a float32

func (c *csr) sound(nodes, edges uint32) bool {
	at := uint32(0)
	for _, start := range c.start {
		if start < at {
			return false
		}
		at = start
	}
	if c.start[0] != 0 || at != edges {
		return false
	}
	least, most := uint32(1), uint32(1)
	for _, w := range c.weight {
		least, most = min(least, w), max(most, w)
	}
	kinds := true
	for _, k := range c.kind {
		kinds = kinds && k-1 < byte(len(edgeNames)-1)
	}
	return kinds && least > 0 && most <= one && belowLimit(c.to, nodes)
}

// textsSound reports whether the fields of text from one place in a row to another are in the text.
func (b *flatGraph) textsSound(rows []byte, size, from, to int) bool {
	limit := uint64(len(b.text))
	ok := true
	for ; len(rows) >= size; rows = rows[size:] {
		for at := from; at < to; at += 8 {
			begin := uint64(binary.LittleEndian.Uint32(rows[at:]))
			ok = ok && begin+uint64(binary.LittleEndian.Uint32(rows[at+4:])) <= limit
		}
	}
	return ok
}

// statedSound reports whether the nodes and arcs of stated facts exist.
func (b *flatGraph) statedSound() bool {
	ok := true
	for row := range int(b.sourceCount) {
		ok = ok && binary.LittleEndian.Uint32(b.sources[row*sourceSize:]) < b.edges
	}
	for row := range int(b.provenanceCount) {
		ok = ok && binary.LittleEndian.Uint32(b.provenances[row*provenanceSize:]) < b.nodes
	}
	for row := range int(b.conflictCount) {
		at := b.conflicts[row*conflictSize:]
		ok = ok && binary.LittleEndian.Uint32(at) < b.nodes && binary.LittleEndian.Uint32(at[4:]) < b.nodes
	}
	return ok
}

// field is a text of a node's row; number is a number of eight bytes there.
func (b *flatGraph) field(u uint32, at int) []byte {
	return b.textAt(b.rows[int(u)*rowSize+at:])
}

func (b *flatGraph) number(u uint32, at int) uint64 {
	return binary.LittleEndian.Uint64(b.rows[int(u)*rowSize+at:])
}

func (b *flatGraph) textAt(row []byte) []byte {
	begin, size := binary.LittleEndian.Uint32(row), binary.LittleEndian.Uint32(row[4:])
	return b.text[begin : uint64(begin)+uint64(size)]
}

// find is the place of the node whose id has the hash, and is the id unless that is "".
func (b *flatGraph) find(hash uint64, id string) (uint32, bool) {
	mask := b.slotCount - 1
	for i := range b.slotCount {
		n := b.slots[(uint32(hash)+i)&mask]
		if n == 0 {
			break
		}
		if b.number(n-1, rowHash) == hash && (id == "" || string(b.field(n-1, rowID)) == id) {
			return n - 1, true
		}
	}
	return 0, false
}

// node is the node at a place.
func (b *flatGraph) node(u uint32) Node {
	row := b.rows[int(u)*rowSize:][:rowSize]
	n := Node{
		ID: string(b.field(u, rowID)), Type: NodeType(b.kinds[u]), Name: string(b.field(u, rowName)),
		Path: string(b.field(u, rowPath)), Line: int(binary.LittleEndian.Uint32(row[rowLine:])),
		End: int(binary.LittleEndian.Uint32(row[rowEnd:])), Digest: b.number(u, rowDigest),
		At: int64(b.number(u, rowAt)),
	}
	if labels := b.field(u, rowLabels); len(labels) > 0 {
		n.Labels = strings.Split(string(labels), labelEnd)
	}
	return n
}

// sourceRow is the first row of the sources whose arc is not before the given one.
func (b *flatGraph) sourceRow(arc uint32) int {
	return sort.Search(int(b.sourceCount), func(row int) bool {
		return binary.LittleEndian.Uint32(b.sources[row*sourceSize:]) >= arc
	})
}

func (b *flatGraph) source(row int) (arc uint32, source string) {
	at := b.sources[row*sourceSize:]
	return binary.LittleEndian.Uint32(at), string(b.textAt(at[4:]))
}

func (b *flatGraph) provenance(row int) Provenance {
	at := b.provenances[row*provenanceSize:][:provenanceSize]
	text := func(i int) string { return string(b.textAt(at[provenanceText+8*i:])) }
	return Provenance{
		Node:       string(b.field(binary.LittleEndian.Uint32(at), rowID)),
		Confidence: uint16(binary.LittleEndian.Uint32(at[4:])), VerifiedAt: int64(binary.LittleEndian.Uint64(at[8:])),
		ID: text(0), SourceType: text(1), SourceID: text(2), Verifier: text(3), Source: text(4),
	}
}

func (b *flatGraph) conflict(row int) Conflict {
	at := b.conflicts[row*conflictSize:][:conflictSize]
	text := func(i int) string { return string(b.textAt(at[conflictText+8*i:])) }
	return Conflict{
		A: string(b.field(binary.LittleEndian.Uint32(at), rowID)),
		B: string(b.field(binary.LittleEndian.Uint32(at[4:]), rowID)), DetectedAt: int64(binary.LittleEndian.Uint64(at[8:])),
		ResolvedAt: int64(binary.LittleEndian.Uint64(at[16:])), ID: text(0), Type: text(1), Resolution: text(2), Source: text(3),
	}
}

// provenancesOf are those of the node at a place.
func (b *flatGraph) provenancesOf(u uint32) []Provenance {
	nodeOf := func(row int) uint32 { return binary.LittleEndian.Uint32(b.provenances[row*provenanceSize:]) }
	var out []Provenance
	row := sort.Search(int(b.provenanceCount), func(row int) bool { return nodeOf(row) >= u })
	for ; row < int(b.provenanceCount) && nodeOf(row) == u; row++ {
		out = append(out, b.provenance(row))
	}
	return out
}

// flatGraph is a graph as it was built: flat, see the package comment.
type flatGraph struct {
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

func (l list) part(from, to uint32) list {
	return list{l.to[from:to:to], l.weight[from:to:to], l.kind[from:to:to]}
}

func (c *csr) of(u uint32) list { return c.part(c.start[u], c.start[u+1]) }

// owner returns the place that an arc leaves.
func (c *csr) owner(arc uint32) uint32 {
	next, _ := slices.BinarySearch(c.start, arc+1)
	return uint32(next - 1)
}

// arcsOf returns the arcs that leave a node of the base, with their sources.
func (b *flatGraph) arcsOf(u uint32) []arc {
	out := b.out.of(u).arcs(u)
	for i, source := range b.sourcesOf(u) {
		out[i].source = source
	}
	return out
}

// sourcesOf returns the sources of the arcs that leave a node of the base; nil if none is stated.
func (b *flatGraph) sourcesOf(u uint32) (out []string) {
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
