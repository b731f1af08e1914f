package memstore

import (
	"bytes"
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
)

// span is a range of the heap.
type span struct{ at, size int }

// piece returns a range of the heap after checking it.
func (t *table) piece(s span) ([]byte, error) {
	b, ok := t.heap.Rows(1, s.at, s.size)
	if !ok {
		return nil, errDamagedCache
	}
	return b, nil
}

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

// blob reads the variable part of a row.
func (t *table) blob(r *row) (blob, error) {
	raw, err := t.piece(r.blob)
	if err != nil {
		return blob{}, err
	}
	return readBlob(bytes.Clone(raw)) // shared by all strings
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
