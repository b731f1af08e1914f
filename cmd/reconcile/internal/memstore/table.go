package memstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical"
)

// A table holds the observations of some issue files in a file of package sections, which is used in the cache without
// decoding:
//
//	basis    the key of the table that this one extends, 8 bytes
//	issues   for each issue file its number, its rows, its stat data, the hash of its content
//	rows     for each observation what filters and relevance need
//	words    agents and categories: length and text
//	heap     for each observation id, summary and what else is read of selected ones; for each issue the captures that its
//	         file holds
//	lexical  the lexical index over summaries and contents; document i is row i. Empty in a bare table, which was built
//	         without a search
//
// All but the heap and the lexical index is checked when the table is opened, these are on use. A mismatch is
// errDamagedCache, and the table is rebuilt.
type table struct {
	file         *sections.File
	issues, rows []byte
	words        []string
	heap         *sections.Section
	lex          *lexical.Index // nil: bare
	// kept caches the searched rows, at most mostKept, unless the table is bare. room is the number of rows that still fit.
	kept []atomic.Pointer[shown]
	room atomic.Int64
}

// shown is a row in a search result, without its score, with its anchors.
type shown struct {
	row       Row
	anchors   []schemas.Anchor
	staleness atomic.Pointer[staleness]
}

// staleness is why a row may be stale, by the digests of the snapshot at then.
type staleness struct {
	then time.Time
	why  string
}

// mostKept rows take about 8 MB.
const mostKept = 1 << 14

var errDamagedCache = errors.New("the memory's cache is damaged")

var tableFormat = sections.Format{Magic: "rcnmtabl", Version: 3}

// The numbers of the sections.
const (
	sectionBasis = iota
	sectionIssues
	sectionRows
	sectionWords
	sectionHeap
	sectionLexical
)

const (
	issueSize = 72
	rowSize   = 48
)

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

func openTable(data []byte) (*table, error) {
	f, err := tableFormat.Open(data)
	if err == nil {
		err = f.Check(sectionBasis, sectionIssues, sectionRows, sectionWords)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamagedCache, err)
	}
	t := &table{file: f, issues: f.Get(sectionIssues), rows: f.Get(sectionRows), heap: f.Section(sectionHeap)}
	if len(f.Get(sectionBasis)) != 8 || len(t.issues)%issueSize != 0 || len(t.rows)%rowSize != 0 {
		return nil, errDamagedCache
	}
	for d := (sections.Decoder{B: f.Get(sectionWords)}); len(d.B) > 0; {
		t.words = append(t.words, d.String())
	}
	lex := f.Get(sectionLexical)
	if len(lex) == 0 {
		return t, nil
	}
	t.kept = make([]atomic.Pointer[shown], t.len())
	t.room.Store(mostKept)
	if t.lex, err = lexical.Open(lex); err != nil || t.lex.Docs() != t.len() {
		return nil, errDamagedCache
	}
	return t, nil
}

// key identifies the table.
func (t *table) key() uint64 { return t.file.Sum() }

// basis returns the key of the table that this one extends; 0 for a base.
func (t *table) basis() uint64 { return binary.LittleEndian.Uint64(t.file.Get(sectionBasis)) }

func (t *table) len() int { return len(t.rows) / rowSize }

// sources returns the issue files, by number.
func (t *table) sources() []source {
	out := make([]source, len(t.issues)/issueSize)
	for i := range out {
		out[i] = decodeSource(t.issues[i*issueSize:])
	}
	return out
}

func decodeSource(b []byte) source {
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

// Flags of rows.
const (
	flagSuperseded = 1 << iota
	flagAnchored
	flagMerged
)

// row returns the i-th row.
func (t *table) row(i int) row {
	b := t.rows[i*rowSize:][:rowSize]
	u32 := func(at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }
	flags := b[36]
	return row{
		issue: u32(0), agent: int(binary.LittleEndian.Uint16(b[4:])), category: int(binary.LittleEndian.Uint16(b[6:])),
		ms: int64(binary.LittleEndian.Uint64(b[8:])), tokens: u32(16), recalls: u32(20), seen: u32(24),
		blob: span{u32(28), u32(32)}, verified: int64(binary.LittleEndian.Uint64(b[40:])),
		superseded: flags&flagSuperseded != 0, anchored: flags&flagAnchored != 0,
		merged: flags&flagMerged != 0,
	}
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

// word returns an agent or a category.
func (t *table) word(i int) string {
	if i < len(t.words) {
		return t.words[i]
	}
	return ""
}

// shown reads row i for a search result, and caches it.
func (t *table) shown(i int) (*shown, error) {
	r := t.row(i)
	b, err := t.blob(&r)
	if err != nil {
		return nil, err
	}
	s := &shown{row: t.toRow(&r, &b), anchors: b.anchors}
	if t.room.Add(-1) >= 0 {
		t.kept[i].Store(s)
	}
	return s, nil
}

// toRow returns a row for people and programs.
func (t *table) toRow(r *row, b *blob) Row {
	return Row{ObservationIndex: t.index(r, b), SupersededBy: b.supersededBy, RecallCount: r.recalls, SeenCount: r.seen}
}
