package memstore

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state"
)

// record writes a record and returns its name. A record that matters is written durably, and may exist with the same
// content; for others, which are counts, existence is an error, fs.ErrExist. It redacts secrets, which callers should have
// removed.
func (f *Files) record(r schemas.MemoryRecord, matters bool) (string, error) {
	r.By, r.Reason = secrets.Redact(r.By), secrets.Redact(r.Reason)
	name, data, err := memory.EncodeRecord(r)
	if err != nil {
		return "", err
	}
	p := f.recordsDir() + "/" + name + ".json"
	if !matters {
		return name, f.store.Add(p, data)
	}
	was, err := f.store.PutNew(p, data)
	switch {
	case err != nil:
		return "", err
	case was != nil && !sameManifest(was, data):
		return "", fmt.Errorf("%s exists and says something else; look at it, and run the command again", p)
	case was == nil:
		f.writes.Add(1)
	}
	return name, f.store.Announce()
}

// recordNames returns the existing records with the identities of their files.
func (f *Files) recordNames() (map[string]state.Identity, error) {
	out := map[string]state.Identity{}
	err := f.store.ListFolder(f.recordsDir(), func(file []byte, id state.Identity) {
		if name, ok := strings.CutSuffix(string(file), ".json"); ok && name != "" && name[0] != '.' && id.IsFile() {
			out[name] = id
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look at the memory's records in %s: %w", f.recordsDir(), err)
	}
	return out, nil
}

// knownRecord is a parsed record.
type knownRecord struct {
	id state.Identity
	schemas.MemoryRecord
	damaged string
}

// records reads records. It skips unreadable ones with a warning.
func (f *Files) records(names map[string]state.Identity) map[string]schemas.MemoryRecord {
	f.recordsMu.Lock()
	defer f.recordsMu.Unlock()
	if f.recordsRead == nil {
		f.recordsRead = map[string]knownRecord{}
		if len(names) > fewRecords {
			f.loadRecords()
		}
	}
	var missing []string
	for name, id := range names {
		if k, ok := f.recordsRead[name]; !ok || k.id != id {
			missing = append(missing, name+".json")
		}
	}
	f.store.ReadFiles(f.recordsDir(), fileLimit, missing, func(file string, data []byte, id state.Identity, err error) {
		f.take(strings.TrimSuffix(file, ".json"), data, id, err)
	})
	if len(missing) > fewRecords {
		f.saveRecords()
	}
	out := make(map[string]schemas.MemoryRecord, len(names))
	for name := range names {
		if k, ok := f.recordsRead[name]; ok && k.damaged == "" {
			out[name] = k.MemoryRecord
		}
	}
	return out
}

// fewRecords is the number of records up to which they are not cached.
const fewRecords = 64

func (f *Files) loadRecords() {
	for d := f.loadValues(recordsPath); len(d.B) > 0; {
		name, id := d.String(), decodeIdentity(&d)
		r, err := memory.ParseRecord(d.Bytes())
		if d.Bad {
			return
		}
		if err == nil {
			f.recordsRead[name] = knownRecord{id: id, MemoryRecord: r}
		}
	}
}

// saveRecords caches the records for the next process. Records are written once, so racy files need no care.
func (f *Files) saveRecords() {
	if f.o.NoCache {
		return
	}
	var e sections.Encoder
	for _, name := range slices.Sorted(maps.Keys(f.recordsRead)) {
		k := f.recordsRead[name]
		_, data, err := memory.EncodeRecord(k.MemoryRecord)
		if err != nil || k.damaged != "" {
			continue
		}
		e.String(name)
		encodeIdentity(&e, k.id)
		e.Bytes(data)
	}
	_ = f.saveValues(recordsPath, e.B)
}

// Records returns all records of the memory files by name: what happened to observations after they were stored. It
// skips unreadable ones with a warning.
func (f *Files) Records() (map[string]schemas.MemoryRecord, error) {
	names, err := f.recordNames()
	if err != nil {
		return nil, err
	}
	return f.records(names), nil
}

// unfoldedRecalls counts the recorded recalls that are not in the issue files yet.
func (f *Files) unfoldedRecalls() map[string]int {
	names, err := f.recordNames()
	if err != nil || len(names) == 0 {
		return nil
	}
	folded := f.folded()
	if folded == nil { // unknown: perhaps all are in the issue files
		return nil
	}
	names = recallNames(names)
	news := maps.Clone(names)
	maps.DeleteFunc(news, func(name string, id state.Identity) bool { return folded[name] == id })
	return memory.Uncounted(f.records(news), func(yield func(string, schemas.MemoryRecord) bool) {
		maps.DeleteFunc(names, func(name string, _ state.Identity) bool { _, is := news[name]; return is })
		for name := range folded { // those that a sum has replaced, too
			if _, is := names[name]; !is && !yield(name, schemas.MemoryRecord{Type: schemas.RecordRecalled}) {
				return
			}
		}
		for name, r := range f.records(names) {
			if !yield(name, r) {
				return
			}
		}
	})
}

// folded returns the records that are in the issue files; nil if unknown.
func (f *Files) folded() map[string]state.Identity {
	d := f.loadValues(foldedPath)
	out := map[string]state.Identity{}
	for range d.Count(2) {
		name := d.String()
		out[name] = decodeIdentity(&d)
	}
	if d.Bad {
		return nil
	}
	return out
}

// facts returns the facts of the records and of the ingested captures in the issue files, all as current.
func (f *Files) facts() (*memory.Facts, error) {
	var taken map[string]memory.Taken
	err := f.again(func() error {
		v, err := f.latest()
		if err == nil {
			taken, err = v.taken()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	names, err := f.recordNames()
	if err != nil {
		return nil, err
	}
	all := func(string) bool { return true }
	return memory.NewFacts(memory.Truth{Records: f.records(names), Taken: taken, Exists: all}), nil
}
