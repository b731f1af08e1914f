package memstore

import (
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state"
)

// settled is the state that the last Settle left: while it is unchanged, nothing needs folding.
type settled struct {
	captures map[string]bool           // names of Observations; nil if unknown
	records  map[string]state.Identity // by name
	issues   map[int]uint64            // hash of each issue file
	archives map[int]state.Identity
}

// saveSettled records that everything is folded. For issue files it records the folded content, not the present one, so
// that later writes of other processes are detected.
func (s *memorySettling) saveSettled() {
	if s.files.o.NoCache {
		return
	}
	var names []string
	for _, e := range s.entries {
		if !e.Gone() {
			names = append(names, e.Name)
		}
	}
	var e, records sections.Encoder
	encodeTexts(&e, names)
	encodeHashes(&e, s.hashes)
	archives := s.files.archives()
	e.Uint(uint64(len(archives)))
	for _, issue := range slices.Sorted(maps.Keys(archives)) {
		e.Uint(uint64(issue))
		encodeIdentity(&e, archives[issue])
	}
	records.Uint(uint64(len(s.names)))
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		records.String(name)
		encodeIdentity(&records, s.names[name])
	}
	if s.files.saveValues(foldedPath, records.B) == nil {
		_ = s.files.saveValues(settledPath, e.B) // otherwise the next run folds everything again
	}
}

func (f *Files) loadSettled() (s settled) {
	s.records = f.folded()
	d := f.loadValues(settledPath)
	captures := map[string]bool{}
	for _, name := range decodeTexts(&d) {
		captures[name] = true
	}
	s.issues, s.archives = decodeSettledHashes(&d), map[int]state.Identity{}
	for range d.Count(2) {
		issue := decodeIssue(&d)
		s.archives[issue] = decodeIdentity(&d)
	}
	if !d.Bad && s.records != nil {
		s.captures = captures
	}
	return s
}

// valuesFormat is that of small files of the cache: one section of values.
var valuesFormat = sections.Format{Magic: "rcnmvals", Version: 2}

// saveValues writes a small file of the cache.
func (f *Files) saveValues(path string, values []byte) error {
	return f.store.Replace(path, valuesFormat.Encode(values).Bytes())
}

// loadValues reads a small file of the cache. One that is unusable has no values, and is bad.
func (f *Files) loadValues(path string) sections.Decoder {
	data, _, err := f.store.ReadFile(path, fileLimit)
	if err != nil || f.o.NoCache {
		return sections.Decoder{Bad: true}
	}
	return decodeValues(data)
}

func decodeValues(data []byte) sections.Decoder {
	file, err := valuesFormat.Open(data)
	if err != nil || file.Verify() != nil {
		return sections.Decoder{Bad: true}
	}
	return sections.Decoder{B: file.Get(0)}
}

func encodeIdentity(e *sections.Encoder, id state.Identity) {
	for _, n := range []uint64{uint64(id.Size), uint64(id.Mtime), uint64(id.Ctime), id.Ino, uint64(id.Mode)} {
		e.Fixed(n)
	}
}

func decodeIdentity(d *sections.Decoder) state.Identity {
	return state.Identity{
		Size: int64(d.Fixed()), Mtime: int64(d.Fixed()), Ctime: int64(d.Fixed()), Ino: d.Fixed(), Mode: uint32(d.Fixed()),
	}
}

// encodeHashes appends the hashes of issue files.
func encodeHashes(e *sections.Encoder, hashes map[int]uint64) {
	e.Uint(uint64(len(hashes)))
	for _, issue := range slices.Sorted(maps.Keys(hashes)) {
		e.Uint(uint64(issue))
		e.Fixed(hashes[issue])
	}
}

func decodeSettledHashes(d *sections.Decoder) map[int]uint64 {
	out := map[int]uint64{}
	for range d.Count(9) {
		issue := decodeIssue(d)
		out[issue] = d.Fixed()
	}
	return out
}

// decodeIssue reads the number of an issue.
func decodeIssue(d *sections.Decoder) int { return int(d.UintTo(1 << 40)) }
