package memstore

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical"
)

// A table holds the observations of some issue files in flat little-endian bytes, which are used in a file of the cache
// without decoding:
//
//	header   magic, number of issues, rows, bytes of words, heap and lexical index, checksum of the front, key of the
//	         table that this one extends, checksum of the header
//	issues   for each issue file its number, its rows, its stat data, the hash of its content
//	rows     for each observation what filters and relevance need
//	words    agents and categories: length and text
//	heap     for each observation id, summary and what else is read of selected ones; for each issue the captures that its
//	         file holds
//	lexical  the lexical index over summaries and contents; document i is row i. Empty in a bare table, which was built
//	         without a search
//
// The front, up to and including the words, is checked when the table is opened, the rest on use. A mismatch is
// errDamagedCache, and the table is rebuilt.
type table struct {
	data         []byte
	issues, rows []byte
	words        []string
	heap         []byte
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

const (
	tableMagic  = "rcnmem\x00\x02" // ends with the version
	tableHeader = 72
	issueSize   = 80
	rowSize     = 56
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
	if len(data) < tableHeader || string(data[:len(tableMagic)]) != tableMagic {
		return nil, errDamagedCache
	}
	u := func(at int) int { return int(binary.LittleEndian.Uint64(data[at:])) }
	issues, rows, words, heap, lex := u(8), u(16), u(24), u(32), u(40)
	for _, n := range []int{issues, rows, words, heap, lex} {
		if n < 0 || n > len(data) {
			return nil, errDamagedCache
		}
	}
	front := tableHeader + issues*issueSize + rows*rowSize + words
	if aligned(front+heap)+lex != len(data) || xxhash.Sum64(data[tableHeader:front]) != uint64(u(48)) ||
		xxhash.Sum64(data[:64]) != uint64(u(64)) {
		return nil, errDamagedCache
	}
	t := &table{data: data}
	t.issues = data[tableHeader:][:issues*issueSize]
	t.rows = data[tableHeader+len(t.issues):][:rows*rowSize]
	t.heap = data[front:][:heap]
	for d := (reader{data[front-words : front], true}); len(d.b) > 0; {
		t.words = append(t.words, d.text())
	}
	if lex == 0 {
		return t, nil
	}
	t.kept = make([]atomic.Pointer[shown], rows)
	t.room.Store(mostKept)
	var err error
	if t.lex, err = lexical.Open(data[aligned(front+heap):]); err != nil || t.lex.Docs() != rows {
		return nil, errDamagedCache
	}
	return t, nil
}

func aligned(n int) int { return (n + 7) &^ 7 }

// key identifies the table.
func (t *table) key() uint64 { return binary.LittleEndian.Uint64(t.data[64:]) }

// basis returns the key of the table that this one extends; 0 for a base.
func (t *table) basis() uint64 { return binary.LittleEndian.Uint64(t.data[56:]) }

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
		hash: u64(48), taken: span{int(u32(60)), int(u32(64)), u32(68)},
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
	for _, n := range []uint32{s.id.Mode, uint32(s.taken.at), uint32(s.taken.size), s.taken.sum, 0, 0} {
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
	flags := b[44]
	return row{
		issue: u32(0), agent: int(binary.LittleEndian.Uint16(b[4:])), category: int(binary.LittleEndian.Uint16(b[6:])),
		ms: int64(binary.LittleEndian.Uint64(b[8:])), tokens: u32(16), recalls: u32(20), seen: u32(24),
		blob:       span{u32(28), u32(32), uint32(u32(36))},
		superseded: flags&flagSuperseded != 0, anchored: flags&flagAnchored != 0,
		merged: flags&flagMerged != 0,
	}
}

func (r *row) appendTo(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(r.issue))
	b = le.AppendUint16(le.AppendUint16(b, uint16(r.agent)), uint16(r.category))
	b = le.AppendUint64(b, uint64(r.ms))
	for _, n := range []int{r.tokens, r.recalls, r.seen, r.blob.at, r.blob.size, int(r.blob.sum), 0} {
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
