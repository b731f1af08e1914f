package memstore

import (
	"encoding/binary"
	"maps"
	"slices"

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
func (s *settling) saveSettled() {
	if s.files.o.NoCache {
		return
	}
	var names []string
	for _, e := range s.entries {
		if !e.Gone() {
			names = append(names, e.Name)
		}
	}
	b := appendTexts(nil, names)
	b = binary.AppendUvarint(b, uint64(len(s.hashes)))
	for _, issue := range slices.Sorted(maps.Keys(s.hashes)) {
		b = binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, uint64(issue)), s.hashes[issue])
	}
	archives := s.files.archives()
	b = binary.AppendUvarint(b, uint64(len(archives)))
	for _, issue := range slices.Sorted(maps.Keys(archives)) {
		b = appendIdentity(binary.AppendUvarint(b, uint64(issue)), archives[issue])
	}
	records := binary.AppendUvarint(nil, uint64(len(s.names)))
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		records = appendIdentity(appendText(records, name), s.names[name])
	}
	if s.files.store.Replace(foldedPath, seal(records)) == nil {
		_ = s.files.store.Replace(settledPath, seal(b)) // otherwise the next run folds everything again
	}
}

func (f *Files) loadSettled() (s settled) {
	s.records = f.folded()
	d := f.unsealed(settledPath)
	captures := map[string]bool{}
	for _, name := range d.texts() {
		captures[name] = true
	}
	s.issues, s.archives = map[int]uint64{}, map[int]state.Identity{}
	for n := d.number(); n > 0 && d.ok; n-- {
		issue := d.number()
		s.issues[issue] = d.fixed()
	}
	for n := d.number(); n > 0 && d.ok; n-- {
		issue := d.number()
		s.archives[issue] = d.identity()
	}
	if d.ok && s.records != nil {
		s.captures = captures
	}
	return s
}

// folded returns the records that are in the issue files; nil if unknown.
func (f *Files) folded() map[string]state.Identity {
	d := f.unsealed(foldedPath)
	out := map[string]state.Identity{}
	for n := d.number(); n > 0 && d.ok; n-- {
		name := d.text()
		out[name] = d.identity()
	}
	if !d.ok {
		return nil
	}
	return out
}

// unsealed reads a small file of the cache.
func (f *Files) unsealed(path string) reader {
	data, _, err := f.store.ReadFile(path, fileLimit)
	body, ok := unseal(data)
	return reader{body, ok && err == nil && !f.o.NoCache}
}

func appendIdentity(b []byte, id state.Identity) []byte {
	for _, n := range []uint64{uint64(id.Size), uint64(id.Mtime), uint64(id.Ctime), id.Ino, uint64(id.Mode)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func (d *reader) identity() state.Identity {
	return state.Identity{
		Size: int64(d.fixed()), Mtime: int64(d.fixed()), Ctime: int64(d.fixed()), Ino: d.fixed(), Mode: uint32(d.fixed()),
	}
}
