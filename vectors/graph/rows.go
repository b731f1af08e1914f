package graph

import (
	"encoding/binary"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas/sections"
)

// intern puts a text where the texts are, unless it is there.
func (b *graphBuilder) intern(s string) rowSpan {
	if s == "" {
		return rowSpan{}
	}
	at, ok := b.spans[s]
	if !ok {
		at = rowSpan{uint32(len(b.text)), uint32(len(s))}
		b.text = append(b.text, s...)
		b.spans[s] = at
	}
	return at
}

// part is a text that is often the begin or the end of an id, and then needs no place of its own.
func (b *graphBuilder) part(id string, whole rowSpan, s string) rowSpan {
	switch {
	case s == "":
		return rowSpan{}
	case strings.HasPrefix(id, s):
		return rowSpan{whole.begin, uint32(len(s))}
	case strings.HasSuffix(id, s):
		return rowSpan{whole.begin + uint32(len(id)-len(s)), uint32(len(s))}
	}
	return b.intern(s)
}

func (s rowSpan) put(at []byte) {
	binary.LittleEndian.PutUint32(at, s.begin)
	binary.LittleEndian.PutUint32(at[4:], s.size)
}

// layOut writes all sections.
func (b *graphBuilder) layOut(arcs []arc, provenances []Provenance, conflicts []Conflict, find finder) *Graph {
	rows := b.nodeRows()
	sources := b.sourceRows(arcs)
	facts, disputes := b.provenanceRows(provenances, find), b.conflictRows(conflicts, find)
	out, in := outward(arcs, len(b.nodes)), inward(arcs, len(b.nodes))
	kinds := make([]byte, len(b.nodes))
	for i, n := range b.nodes {
		kinds[i] = byte(n.Type)
	}
	raw := sections.Raw[uint32]
	g, err := open(format.Encode(rows, kinds, raw(b.base.slots), raw(b.byPath()),
		raw(out.start), raw(out.to), raw(out.weight), out.kind, raw(in.start), raw(in.to), raw(in.weight), in.kind,
		sources, facts, disputes, b.text))
	if err != nil {
		panic("graph: what Build wrote is not sound") // a mistake in this file
	}
	return g
}

func (b *graphBuilder) nodeRows() []byte {
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

func (b *graphBuilder) sourceRows(arcs []arc) []byte {
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

func (b *graphBuilder) provenanceRows(all []Provenance, find finder) []byte {
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

// byPath are the places of the nodes that have a path, by it; equal ones by id.
func (b *graphBuilder) byPath() []uint32 {
	var out []uint32
	for i, n := range b.nodes {
		if n.Path != "" {
			out = append(out, uint32(i))
		}
	}
	slices.SortStableFunc(out, func(x, y uint32) int { return strings.Compare(b.nodes[x].Path, b.nodes[y].Path) })
	return out
}

// rowSpan is the position of a text.
type rowSpan struct{ begin, size uint32 }

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

// AppendTo appends the data of the graph in its format; the parts of a graph with changes of With are built again
// first. It can be used in place if it begins at a multiple of 64 bytes.
func (g *Graph) AppendTo(to []byte) []byte {
	if g.over != nil {
		g, _ = Build(g.parts())
	}
	return append(to, g.file.Bytes()...)
}

func (b *graphBuilder) conflictRows(all []Conflict, find finder) []byte {
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
