package memstore

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical"
)

// A table is what is known of the observations of some issue files, in flat little-endian bytes that are used as they lie
// in a file of the cache, without decoding:
//
//	header   magic, how many issues, rows, bytes of words, heap and lexical index, checksum of the front, which table this
//	         one goes with, checksum of the header
//	issues   for each issue file its number, its rows, what the file system said of it, the hash of its content
//	rows     for each observation what filters and relevance need
//	words    agents and categories: length and text
//	heap     for each observation id, summary and what else is read of those that are chosen; for each issue the captures
//	         that its file holds
//	lexical  the lexical index over summaries and contents; document i is row i. Nothing in a bare table, which was made
//	         where nobody searched
//
// The front, up to and with the words, is checked when it is opened, the rest when it is used. What is not what was
// written is errDamagedCache, and the table is made anew.
type table struct {
	data         []byte
	issues, rows []byte
	words        []string
	heap         []byte
	lex          *lexical.Index // nil: bare
	// kept has what searches have shown of each row, of mostKept rows at most, unless the table is bare. room is for how
	// many more there is.
	kept []atomic.Pointer[shown]
	room atomic.Int64
}

// shown is what a search shows of a row, but for its score, and what it is about.
type shown struct {
	row     Row
	anchors []schemas.Anchor
	said    atomic.Pointer[said]
}

// said is why a row may be stale, as it was at the moment that began then.
type said struct {
	then time.Time
	why  string
}

// mostKept rows take some 8 MB.
const mostKept = 1 << 14

var errDamagedCache = errors.New("the memory's cache is damaged")

const (
	tableMagic  = "rcnmem\x00\x01" // ends with the version
	tableHeader = 72
	issueSize   = 80
	rowSize     = 56
)

// source is what is known of an issue file: which rows come from it, and when it has to be read again.
type source struct {
	issue       int
	first, rows int
	id          state.Identity
	hash        uint64
	racy        bool // changed so shortly before it was read that a further change may look the same
	taken       span // of the captures in the heap
}

// span is a checked piece of the heap.
type span struct {
	at, size int
	sum      uint32
}

func spanOf(heap []byte, at int) span {
	return span{at, len(heap) - at, uint32(xxhash.Sum64(heap[at:]))}
}

// row is the part of an observation of fixed size.
type row struct {
	issue           int
	agent, category int   // places in words
	ms, verified    int64 // since 1970; verified is 0 if never
	tokens          int
	recalls, seen   int
	superseded      bool
	anchored        bool
	merged          bool // by compaction
	blob            span
}

// blob is the part of an observation of other sizes.
type blob struct {
	id, summary, supersededBy string
	anchors                   []schemas.Anchor
	source                    string // the Observation that it came in with
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

// key tells a table from others.
func (t *table) key() uint64 { return binary.LittleEndian.Uint64(t.data[64:]) }

// basis is the key of the table that this one goes with; 0 if it stands for itself.
func (t *table) basis() uint64 { return binary.LittleEndian.Uint64(t.data[56:]) }

func (t *table) len() int { return len(t.rows) / rowSize }

// sources are the issue files, by number.
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

// word is an agent or a category.
func (t *table) word(i int) string {
	if i < len(t.words) {
		return t.words[i]
	}
	return ""
}

// piece is a piece of the heap, checked.
func (t *table) piece(s span) ([]byte, error) {
	if s.at+s.size > len(t.heap) || uint32(xxhash.Sum64(t.heap[s.at:s.at+s.size])) != s.sum {
		return nil, errDamagedCache
	}
	return t.heap[s.at : s.at+s.size], nil
}

// blob reads what else is known of a row.
func (t *table) blob(r *row) (blob, error) {
	raw, err := t.piece(r.blob)
	if err != nil {
		return blob{}, err
	}
	return readBlob(string(raw)) // one copy, of which all are parts
}

// shown reads what a search shows of row i, and keeps it for the next one.
func (t *table) shown(i int) (*shown, error) {
	r := t.row(i)
	b, err := t.blob(&r)
	if err != nil {
		return nil, err
	}
	s := &shown{row: t.told(&r, &b), anchors: b.anchors}
	if t.room.Add(-1) >= 0 {
		t.kept[i].Store(s)
	}
	return s, nil
}

// told is a row as people and programs get it.
func (t *table) told(r *row, b *blob) Row {
	return Row{ObservationIndex: t.index(r, b), SupersededBy: b.supersededBy, RecallCount: r.recalls, SeenCount: r.seen}
}

// readBlob takes a blob apart.
func readBlob(raw string) (blob, error) {
	d := texts{rest: raw, ok: true}
	out := blob{id: d.next(), summary: d.next(), supersededBy: d.next(), source: d.next()}
	for n := d.number(); n > 0 && d.ok; n-- {
		out.anchors = append(out.anchors, schemas.Anchor{Path: d.next(), Digest: d.next()})
	}
	if !d.ok {
		return blob{}, errDamagedCache
	}
	return out, nil
}

// borrowedID is the id of a row as a part of the table, unchecked: it is for comparing, and gone when the table is.
func (t *table) borrowedID(r *row) string {
	if r.blob.at+r.blob.size > len(t.heap) {
		return ""
	}
	raw := t.heap[r.blob.at : r.blob.at+r.blob.size]
	n, size := binary.Uvarint(raw)
	if size <= 0 || n == 0 || n > uint64(len(raw)-size) {
		return ""
	}
	return unsafe.String(&raw[size], int(n))
}

// id reads the id of a row alone.
func (t *table) id(r *row) (string, error) {
	raw, err := t.piece(r.blob)
	if err != nil {
		return "", err
	}
	d := reader{raw, true}
	return d.text(), nil
}

func appendBlob(b []byte, o *schemas.Observation) []byte {
	for _, s := range []string{o.ID, o.Summary, o.SupersededBy, o.Source} {
		b = appendText(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(o.Anchors)))
	for _, a := range o.Anchors {
		b = appendText(appendText(b, a.Path), a.Digest)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendTaken writes which captures an issue file holds, and what they say of older observations.
func appendTaken(b []byte, f *schemas.MemoryFile) []byte {
	b = binary.AppendUvarint(b, uint64(len(f.Sources)))
	for _, name := range slices.Sorted(maps.Keys(f.Sources)) {
		b = appendText(appendText(b, name), f.Sources[name])
		links := f.Links[name]
		b = appendTexts(b, links.Repeats)
		b = binary.AppendUvarint(b, uint64(len(links.Supersedes)))
		for _, by := range slices.Sorted(maps.Keys(links.Supersedes)) {
			b = appendTexts(appendText(b, by), links.Supersedes[by])
		}
	}
	return b
}

func appendTexts(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendText(b, s)
	}
	return b
}

// taken reads which captures an issue file holds into the form of the file.
func (t *table) taken(s *source) (*schemas.MemoryFile, error) {
	raw, err := t.piece(s.taken)
	if err != nil {
		return nil, err
	}
	d := reader{raw, true}
	f := &schemas.MemoryFile{IssueNumber: s.issue, Sources: map[string]string{}, Links: map[string]schemas.MemoryLinks{}}
	for n := d.number(); n > 0 && d.ok; n-- {
		name, digest := d.text(), d.text()
		f.Sources[name] = digest
		links := schemas.MemoryLinks{Repeats: d.texts()}
		for k := d.number(); k > 0 && d.ok; k-- {
			if links.Supersedes == nil {
				links.Supersedes = map[string][]string{}
			}
			by := d.text()
			links.Supersedes[by] = d.texts()
		}
		if len(links.Repeats)+len(links.Supersedes) > 0 {
			f.Links[name] = links
		}
	}
	if !d.ok {
		return nil, errDamagedCache
	}
	return f, nil
}

// texts is reader for a string.
type texts struct {
	rest string
	ok   bool
}

func (d *texts) number() (n int) {
	if d.rest != "" && d.rest[0] < 0x80 { // most are
		n, d.rest = int(d.rest[0]), d.rest[1:]
		return n
	}
	for shift := 0; shift < 40 && d.rest != ""; shift += 7 {
		c := d.rest[0]
		d.rest = d.rest[1:]
		if n |= int(c&0x7f) << shift; c < 0x80 {
			return n
		}
	}
	d.rest, d.ok = "", false
	return 0
}

func (d *texts) next() string {
	n := d.number()
	if n > len(d.rest) {
		d.rest, d.ok = "", false
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

// reader takes texts and numbers off the front of a slice; ok becomes false when there is less than it should be.
type reader struct {
	b  []byte
	ok bool
}

func (d *reader) number() int {
	n, size := binary.Uvarint(d.b)
	if size <= 0 || n > 1<<40 {
		d.b, d.ok = nil, false
		return 0
	}
	d.b = d.b[size:]
	return int(n)
}

func (d *reader) text() string {
	n := d.number()
	if n > len(d.b) {
		d.b, d.ok = nil, false
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *reader) texts() []string {
	var out []string
	for n := d.number(); n > 0 && d.ok; n-- {
		out = append(out, d.text())
	}
	return out
}

// tableBuilder makes a table.
type tableBuilder struct {
	issues, rows, heap []byte
	words              []string
	places             map[string]int
	bare               bool
	docs               []lexical.Document // of the rows that were added as observations, unless bare
}

func (b *tableBuilder) word(s string) int {
	if i, ok := b.places[s]; ok {
		return i
	}
	if b.places == nil {
		b.places = map[string]int{}
	}
	if len(b.words) == 1<<16-1 {
		return len(b.words) // so many agents: the others have no name here
	}
	b.places[s] = len(b.words)
	b.words = append(b.words, s)
	return b.places[s]
}

func (b *tableBuilder) len() int { return len(b.rows) / rowSize }

// add adds an issue file with what it holds.
func (b *tableBuilder) add(s source, f *schemas.MemoryFile) {
	s.first, s.rows = b.len(), len(f.Observations)
	at := len(b.heap)
	b.heap = appendTaken(b.heap, f)
	s.taken = spanOf(b.heap, at)
	b.issues = s.appendTo(b.issues)
	for i := range f.Observations {
		o := &f.Observations[i]
		at := len(b.heap)
		b.heap = appendBlob(b.heap, o)
		r := row{
			issue: o.IssueNumber, agent: b.word(o.Agent), category: b.word(o.Category), ms: o.Timestamp.UnixMilli(),
			tokens: o.Tokens, recalls: o.RecallCount, seen: o.SeenCount, superseded: o.SupersededBy != "",
			anchored: len(o.Anchors) > 0, merged: len(o.Compacts) > 0, blob: spanOf(b.heap, at),
		}
		if !o.VerifiedAt.IsZero() {
			r.verified = o.VerifiedAt.UnixMilli()
		}
		b.rows = r.appendTo(b.rows)
		if !b.bare {
			b.docs = append(b.docs, document(o))
		}
	}
}

// reserve makes room for what tables have: growing it bit by bit would take twice as much.
func (b *tableBuilder) reserve(parts []part) {
	issues, rows, heap := 0, 0, 0
	for _, p := range parts {
		issues, rows, heap = issues+len(p.issues), rows+len(p.rows), heap+len(p.heap)
	}
	b.issues, b.rows, b.heap = slices.Grow(b.issues, issues), slices.Grow(b.rows, rows), slices.Grow(b.heap, heap)
}

// copyFrom adds an issue file with the rows that another table has of it.
func (b *tableBuilder) copyFrom(t *table, s source) error {
	from := s.first
	s.first = b.len()
	if err := b.copyPiece(t, &s.taken); err != nil {
		return err
	}
	b.issues = s.appendTo(b.issues)
	for i := range s.rows {
		r := t.row(from + i)
		if err := b.copyPiece(t, &r.blob); err != nil {
			return err
		}
		r.agent, r.category = b.word(t.word(r.agent)), b.word(t.word(r.category))
		b.rows = r.appendTo(b.rows)
	}
	return nil
}

func (b *tableBuilder) copyPiece(t *table, s *span) error {
	raw, err := t.piece(*s)
	s.at = len(b.heap)
	b.heap = append(b.heap, raw...)
	return err
}

// bytes is the table with its lexical index; basis is the key of the table that it goes with.
func (b *tableBuilder) bytes(lex []byte, basis uint64) []byte {
	var words []byte
	for _, w := range b.words {
		words = appendText(words, w)
	}
	front := tableHeader + len(b.issues) + len(b.rows) + len(words)
	at := aligned(front + len(b.heap))
	out := make([]byte, tableHeader, at+len(lex))
	for _, part := range [][]byte{b.issues, b.rows, words, b.heap} {
		out = append(out, part...)
	}
	out = append(out[:at], lex...)
	copy(out, tableMagic)
	for i, n := range []int{len(b.issues) / issueSize, b.len(), len(words), len(b.heap), len(lex)} {
		binary.LittleEndian.PutUint64(out[8+8*i:], uint64(n))
	}
	binary.LittleEndian.PutUint64(out[48:], xxhash.Sum64(out[tableHeader:front]))
	binary.LittleEndian.PutUint64(out[56:], basis)
	binary.LittleEndian.PutUint64(out[64:], xxhash.Sum64(out[:64]))
	return out
}

// document is what of an observation can be found by its words. Of equally good ones the newer comes first.
func document(o *schemas.Observation) lexical.Document {
	return lexical.Document{Title: o.Summary, Body: o.Content, Key: ^uint64(o.Timestamp.UnixMilli())}
}
