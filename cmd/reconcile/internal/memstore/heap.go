package memstore

import (
	"encoding/binary"
	"maps"
	"slices"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
)

// span is a range of the heap with its checksum.
type span struct {
	at, size int
	sum      uint32
}

func spanOf(heap []byte, at int) span {
	return span{at, len(heap) - at, uint32(xxhash.Sum64(heap[at:]))}
}

// piece returns a range of the heap after checking it.
func (t *table) piece(s span) ([]byte, error) {
	if s.at+s.size > len(t.heap) || uint32(xxhash.Sum64(t.heap[s.at:s.at+s.size])) != s.sum {
		return nil, errDamagedCache
	}
	return t.heap[s.at : s.at+s.size], nil
}

// blob is the part of an observation of variable size.
type blob struct {
	id, summary, supersededBy string
	anchors                   []schemas.Anchor
	source                    string // the Observation that it came from
	compacts                  []string
}

func appendBlob(b []byte, o *schemas.Observation) []byte {
	for _, s := range []string{o.ID, o.Summary, o.SupersededBy, o.Source} {
		b = appendText(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(o.Anchors)))
	for _, a := range o.Anchors {
		b = appendText(appendText(b, a.Path), a.Digest)
	}
	return appendTexts(b, o.Compacts)
}

// blob reads the variable part of a row.
func (t *table) blob(r *row) (blob, error) {
	raw, err := t.piece(r.blob)
	if err != nil {
		return blob{}, err
	}
	return readBlob(string(raw)) // one copy, shared by all strings
}

// readBlob parses a blob.
func readBlob(raw string) (blob, error) {
	d := texts{rest: raw, ok: true}
	out := blob{id: d.next(), summary: d.next(), supersededBy: d.next(), source: d.next()}
	for n := d.number(); n > 0 && d.ok; n-- {
		out.anchors = append(out.anchors, schemas.Anchor{Path: d.next(), Digest: d.next()})
	}
	for n := d.number(); n > 0 && d.ok; n-- {
		out.compacts = append(out.compacts, d.next())
	}
	if !d.ok {
		return blob{}, errDamagedCache
	}
	return out, nil
}

// borrowedID returns a row's id as a slice of the table, unchecked: it is for comparisons, and invalid after the table is
// closed.
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

// id reads only the id of a row.
func (t *table) id(r *row) (string, error) {
	raw, err := t.piece(r.blob)
	if err != nil {
		return "", err
	}
	d := reader{raw, true}
	return d.text(), nil
}

// appendTaken encodes the captures that an issue file holds, and their links to older observations.
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

// taken decodes the captures of an issue file into the form of the file.
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

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// texts is reader for a string.
type texts struct {
	rest string
	ok   bool
}

func (d *texts) number() (n int) {
	if d.rest != "" && d.rest[0] < 0x80 { // the common case
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

// reader reads texts and numbers from the front of a slice; ok becomes false if it is too short.
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
