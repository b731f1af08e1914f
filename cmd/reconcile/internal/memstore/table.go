package memstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
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
		out[i] = decodeTableSource(t.issues[i*issueSize:])
	}
	return out
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

// piece returns a range of the heap after checking it.
func (t *table) piece(s span) ([]byte, error) {
	b, ok := t.heap.Rows(1, s.at, s.size)
	if !ok {
		return nil, errDamagedCache
	}
	return b, nil
}

// blob reads the variable part of a row.
func (t *table) blob(r *row) (blob, error) {
	raw, err := t.piece(r.blob)
	if err != nil {
		return blob{}, err
	}
	return readBlob(bytes.Clone(raw)) // shared by all strings
}

// borrowedID returns a row's id as a slice of the table, unchecked: it is for comparisons, and invalid after the table is
// closed.
func (t *table) borrowedID(r *row) string {
	if r.blob.at+r.blob.size > len(t.heap.Data) {
		return ""
	}
	d := sections.Decoder{B: t.heap.Data[r.blob.at : r.blob.at+r.blob.size]}
	return d.Shared()
}

// id reads only the id of a row.
func (t *table) id(r *row) (string, error) {
	raw, err := t.piece(r.blob)
	if err != nil {
		return "", err
	}
	d := sections.Decoder{B: raw}
	return d.String(), nil
}

// taken decodes the captures of an issue file into the form of the file.
func (t *table) taken(s *source) (*schemas.MemoryFile, error) {
	raw, err := t.piece(s.taken)
	if err != nil {
		return nil, err
	}
	d := sections.Decoder{B: raw}
	f := &schemas.MemoryFile{IssueNumber: s.issue, Sources: map[string]string{}, Links: map[string]schemas.MemoryLinks{}}
	for range d.Count(4) {
		name, digest := d.String(), d.String()
		f.Sources[name] = digest
		links := schemas.MemoryLinks{Repeats: decodeTexts(&d)}
		for range d.Count(2) {
			if links.Supersedes == nil {
				links.Supersedes = map[string][]string{}
			}
			by := d.String()
			links.Supersedes[by] = decodeTexts(&d)
		}
		if len(links.Repeats)+len(links.Supersedes) > 0 {
			f.Links[name] = links
		}
	}
	if d.Bad {
		return nil, errDamagedCache
	}
	return f, nil
}

func (t *table) index(r *row, b *blob) schemas.ObservationIndex {
	return schemas.ObservationIndex{
		ID: b.id, Agent: t.word(r.agent), IssueNumber: r.issue, Category: t.word(r.category), Summary: b.summary,
		Tokens: r.tokens, Timestamp: schemas.Stamp{Time: time.UnixMilli(r.ms).UTC()},
	}
}
