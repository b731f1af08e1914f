package memstore

import (
	"encoding/binary"
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state"
)

// span is a range of the heap.
type span struct{ at, size int }

// blob is the part of an observation of variable size.
type blob struct {
	id, summary, supersededBy string
	anchors                   []schemas.Anchor
	source                    string // the Observation that it came from
	compacts                  []string
}

func appendBlob(b []byte, o *schemas.Observation) []byte {
	e := sections.Encoder{B: b}
	for _, s := range []string{o.ID, o.Summary, o.SupersededBy, o.Source} {
		e.String(s)
	}
	e.Uint(uint64(len(o.Anchors)))
	for _, a := range o.Anchors {
		e.String(a.Path)
		e.String(a.Digest)
	}
	encodeTexts(&e, o.Compacts)
	return e.B
}

// readBlob parses a blob, whose strings share raw.
func readBlob(raw []byte) (blob, error) {
	d := sections.Decoder{B: raw}
	out := blob{id: d.Shared(), summary: d.Shared(), supersededBy: d.Shared(), source: d.Shared()}
	for range d.Count(2) {
		out.anchors = append(out.anchors, schemas.Anchor{Path: d.Shared(), Digest: d.Shared()})
	}
	for range d.Count(1) {
		out.compacts = append(out.compacts, d.Shared())
	}
	if d.Bad {
		return blob{}, errDamagedCache
	}
	return out, nil
}

// appendTaken encodes the captures that an issue file holds, and their links to older observations.
func appendTaken(b []byte, f *schemas.MemoryFile) []byte {
	e := sections.Encoder{B: b}
	e.Uint(uint64(len(f.Sources)))
	for _, name := range slices.Sorted(maps.Keys(f.Sources)) {
		e.String(name)
		e.String(f.Sources[name])
		links := f.Links[name]
		encodeTexts(&e, links.Repeats)
		e.Uint(uint64(len(links.Supersedes)))
		for _, by := range slices.Sorted(maps.Keys(links.Supersedes)) {
			e.String(by)
			encodeTexts(&e, links.Supersedes[by])
		}
	}
	return e.B
}

func encodeTexts(e *sections.Encoder, list []string) {
	e.Uint(uint64(len(list)))
	for _, s := range list {
		e.String(s)
	}
}

func decodeTexts(d *sections.Decoder) []string {
	var out []string
	for range d.Count(1) {
		out = append(out, d.String())
	}
	return out
}

// source describes an issue file: its rows in the table, and its state when it was read.
type source struct {
	issue       int
	first, rows int
	id          state.Identity
	hash        uint64
	racy        bool // changed so shortly before the read that a further change may be undetectable
	taken       span // range of the captures in the heap
}

// row is the part of an observation of fixed size.
type row struct {
	issue           int
	agent, category int   // indexes of words
	ms, verified    int64 // since 1970; verified is 0 if never
	tokens          int
	recalls, seen   int
	superseded      bool
	anchored        bool
	merged          bool // by compaction
	blob            span
}

func decodeTableSource(b []byte) source {
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	return source{
		issue: int(u32(0)), first: int(u32(4)), rows: int(u32(8)), racy: u32(12) != 0,
		id:   state.Identity{Size: int64(u64(16)), Mtime: int64(u64(24)), Ctime: int64(u64(32)), Ino: u64(40), Mode: u32(56)},
		hash: u64(48), taken: span{int(u32(60)), int(u32(64))},
	}
}

func (s *source) appendTo(b []byte) []byte {
	le := binary.LittleEndian
	racy := uint32(0)
	if s.racy {
		racy = 1
	}
	for _, n := range []uint32{uint32(s.issue), uint32(s.first), uint32(s.rows), racy} {
		b = le.AppendUint32(b, n)
	}
	for _, n := range []uint64{uint64(s.id.Size), uint64(s.id.Mtime), uint64(s.id.Ctime), s.id.Ino, s.hash} {
		b = le.AppendUint64(b, n)
	}
	for _, n := range []uint32{s.id.Mode, uint32(s.taken.at), uint32(s.taken.size), 0} {
		b = le.AppendUint32(b, n)
	}
	return b
}

func (r *row) appendTo(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(r.issue))
	b = le.AppendUint16(le.AppendUint16(b, uint16(r.agent)), uint16(r.category))
	b = le.AppendUint64(b, uint64(r.ms))
	for _, n := range []int{r.tokens, r.recalls, r.seen, r.blob.at, r.blob.size} {
		b = le.AppendUint32(b, uint32(n))
	}
	var flags uint32
	if r.superseded {
		flags |= flagSuperseded
	}
	if r.anchored {
		flags |= flagAnchored
	}
	if r.merged {
		flags |= flagMerged
	}
	return le.AppendUint64(le.AppendUint32(b, flags), uint64(r.verified))
}
