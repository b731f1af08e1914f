package index

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/state"
)

// FactStore stores the facts about a tree's nodes. Each statement is a separate file, named by its content, and each
// removal is another file: statements and removals from two clones or processes never change the same file.
type FactStore struct {
	Store *state.Store
	// Warn is called for unreadable files.
	Warn func(error)
}

// Fact is a statement and the file that holds it.
type Fact struct {
	Statement
	ID   string
	Path string
	// Own is set if the fact is alone in a file that the store wrote.
	Own bool
}

// ErrNoFact reports that no fact has the id.
var ErrNoFact = errors.New("there is no such fact")

func (b *FactStore) dir() string { return state.FactsDir(b.Store.Settings().Folders.State) }

// States reports whether the source of an edge is a .json file in the folder of the fact store.
func (b *FactStore) States(source string) bool {
	return path.Ext(source) == ".json" && path.Dir(source) == b.dir()
}

// tombstoneSuffix is the suffix of a tombstone's name. A fact's file is never changed or deleted, so git merges any
// changes of two clones to one fact, and a fact that one clone retracted does not return from another.
const tombstoneSuffix = "-removed.json"

// removed is the content of a tombstone. It does not depend on the process that writes it.
type removed struct {
	Removed string `json:"removed"` // name of the other file
}

// IsFactFile reports whether the base name of a path is that of a fact file which a store wrote below the folder of
// facts. The name is KIND-<12 digits of its key>-<6 digits of its content>.json, or that of its tombstone.
func IsFactFile(p string) bool { return factOf(path.Base(p)) != "" }

// FactsIn returns the sorted ids of the facts that have store-written files among the paths, and for each whether it is
// stated there, or only retracted.
func FactsIn(paths []string) (ids []string, stated map[string]bool) {
	stated = map[string]bool{}
	var names []string
	for _, p := range paths {
		if id := factOf(path.Base(p)); id != "" {
			names = append(names, path.Base(p))
			stated[id] = false
		}
	}
	slices.Sort(names)
	for _, name := range liveFacts(names) {
		stated[factOf(name)] = true
	}
	return slices.Sorted(maps.Keys(stated)), stated
}

// factOf returns the id of the fact in a file of that name; "" for other names.
func factOf(name string) string {
	stem, ok := strings.CutSuffix(name, tombstoneSuffix)
	if !ok {
		stem, ok = strings.CutSuffix(name, ".json")
	}
	parts := strings.Split(stem, "-")
	if !ok || len(parts) != 3 || !slices.Contains(Kinds, parts[0]) || !isHex(parts[1], 12) || !isHex(parts[2], 6) {
		return ""
	}
	return parts[0] + "-" + parts[1]
}

func isHex(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" }

// liveFacts returns the sorted names without tombstones and the files that they remove.
func liveFacts(names []string) []string {
	var out []string
	for _, name := range names {
		_, gone := slices.BinarySearch(names, tombstoneOf(name))
		if !gone && !(IsFactFile(name) && strings.HasSuffix(name, tombstoneSuffix)) {
			out = append(out, name)
		}
	}
	return out
}

func tombstoneOf(name string) string { return strings.TrimSuffix(name, ".json") + tombstoneSuffix }

// names returns the sorted names of all files of facts, including tombstones and the files that they remove.
func (b *FactStore) names() ([]string, error) {
	var out []string
	err := b.Store.ListFolder(b.dir(), func(name []byte, id state.Identity) {
		if id.IsFile() && path.Ext(string(name)) == ".json" {
			out = append(out, string(name))
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look at the facts in %s: %w", b.dir(), err)
	}
	slices.Sort(out)
	return out, nil
}

// List reads all facts, by file and in file order. It warns of unreadable files.
func (b *FactStore) List() ([]Fact, error) {
	names, err := b.names()
	if err != nil {
		return nil, err
	}
	names = liveFacts(names)
	byName := map[string][]Fact{}
	b.Store.ReadFiles(b.dir(), FactsLimit, names, func(name string, data []byte, _ state.Identity, err error) {
		p := b.dir() + "/" + name
		var all []Statement
		if err == nil {
			all, err = ParseFacts(data)
		}
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				b.Warn(statesNothing(p, err))
			}
			return
		}
		for i, s := range all {
			f := Fact{Statement: s, ID: s.name(""), Path: p, Own: IsFactFile(p) && len(all) == 1}
			if f.ID == "" {
				f.ID = fmt.Sprintf("%s#%d", name, i+1)
			}
			byName[name] = append(byName[name], f)
		}
	})
	var out []Fact
	for _, name := range names {
		out = append(out, byName[name]...)
	}
	return out, nil
}

// The results of Put.
const (
	Added     = "stated"
	Changed   = "changed"
	Unchanged = "unchanged" // it was stated before, verbatim
)

// PutResult is the result of storing a statement.
type PutResult struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Path   string `json:"path"`
	Change string `json:"change"` // stated, changed or unchanged
}

// Put writes statements to the fact store, durably, after a check of each; each replaces older ones with the same key.
// If one of them is invalid, nothing is written. A statement that differs only in its time changes nothing. The error
// wraps [state.ErrBusy] if there are many statements and the tree is busy.
func (b *FactStore) Put(ctx context.Context, all []Statement) (taken []PutResult, err error) {
	last := map[string]int{} // by id: the last of several with one key wins
	for i, s := range all {
		last[s.name(idOf(s))] = i
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Kind(), err)
		}
	}
	err = b.write(ctx, func(names []string) ([]state.Change, error) {
		var add, remove []state.Change
		for i, s := range all {
			if last[s.name("")] != i {
				continue
			}
			t, data, old, err := b.compare(s, names)
			if err != nil {
				return nil, err
			}
			taken = append(taken, t)
			if t.Change == Unchanged {
				continue
			}
			add = append(add, state.Change{Path: t.Path, Data: data})
			for _, p := range old {
				if p == t.Path {
					continue
				}
				c, err := tombstone(p)
				if err != nil {
					return nil, err
				}
				remove = append(remove, c)
			}
		}
		return append(add, remove...), nil // if killed in between, both files remain, and the next statement of the key removes the older one
	})
	return taken, err
}

// tombstone returns the change that retracts a fact's file.
func tombstone(p string) (state.Change, error) {
	data, err := state.Encode(removed{path.Base(p)})
	return state.Change{Path: tombstoneOf(p), Data: data}, err
}

// few is the maximum number of files that are written individually.
const few = 16

// write applies changes computed from the existing names. All changes are new files whose names follow from their contents:
// writing them needs no lock, and processes that change the same fact concurrently leave both files. More than a few are
// written in one batch, which is faster, under the tree's lock.
func (b *FactStore) write(ctx context.Context, changes func(names []string) ([]state.Change, error)) error {
	names, err := b.names()
	if err != nil {
		return err
	}
	files, err := changes(names)
	if err != nil || len(files) == 0 {
		return err
	}
	if len(files) > few {
		lock, err := b.Store.Lock(ctx)
		if err != nil {
			return err
		}
		_, err = b.Store.Write(ctx, files)
		return errors.Join(err, lock.Release())
	}
	for _, f := range files {
		if _, err := b.Store.PutNew(f.Path, f.Data); err != nil {
			return err
		}
	}
	return b.Store.Announce()
}

// compare returns the result of a statement, the content of its file, and the files that it replaces.
func (b *FactStore) compare(s Statement, names []string) (t PutResult, data []byte, old []string, err error) {
	t = PutResult{ID: s.name(""), Kind: s.Kind(), Change: Added}
	old = b.filesOf(t.ID, names)
	for _, p := range old {
		t.Change = Changed
		is, _, err := b.Store.ReadFile(p, FactsLimit)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return t, nil, nil, err
		}
		if was, err := ParseFacts(is); err == nil && len(was) == 1 && len(old) == 1 && saysSame(was[0], s) {
			t.Path, t.Change = p, Unchanged
			return t, nil, old, nil
		}
	}
	for try := 0; ; try++ { // a retracted statement gets a new name
		var f factsFile
		s.put(&f)
		f.Again = try
		if data, err = state.Encode(f); err != nil {
			return t, nil, nil, err
		}
		sum := sha256.Sum256(data)
		name := t.ID + "-" + hex.EncodeToString(sum[:3]) + ".json"
		if _, gone := slices.BinarySearch(names, tombstoneOf(name)); !gone {
			t.Path = b.dir() + "/" + name
			return t, data, old, nil
		}
	}
}

// saysSame reports whether two statements differ only in their time.
func saysSame(a, b Statement) bool {
	if a.Kind() != b.Kind() || a.By() != b.By() || a.Said() != b.Said() {
		return false
	}
	c, ok := a.(*Conflict)
	return !ok || c.ResolvedBy == b.(*Conflict).ResolvedBy
}

// filesOf returns the live files of a fact.
func (b *FactStore) filesOf(id string, names []string) []string {
	var out []string
	for _, name := range liveFacts(names) {
		if factOf(name) == id {
			out = append(out, b.dir()+"/"+name)
		}
	}
	return out
}

// Retract retracts facts by their ids. Nothing is retracted if one of them never existed, or is in a hand-written file. A
// fact that is already retracted is not an error.
func (b *FactStore) Retract(ctx context.Context, ids []string) error {
	return b.write(ctx, func(names []string) ([]state.Change, error) {
		var out []state.Change
		for _, id := range ids {
			if id == "" || !slices.ContainsFunc(names, func(name string) bool { return factOf(name) == id }) {
				return nil, b.notOwn(id)
			}
			for _, p := range b.filesOf(id, names) {
				c, err := tombstone(p)
				if err != nil {
					return nil, err
				}
				out = append(out, c)
			}
		}
		return out, nil
	})
}

// notOwn returns the error for an id that cannot be retracted.
func (b *FactStore) notOwn(id string) error {
	all, err := b.List()
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(f Fact) bool { return f.ID == id }); i >= 0 {
		return fmt.Errorf("%s stands in %s, which was written by hand: edit that file", id, all[i].Path)
	}
	return fmt.Errorf("%.100q: %w; reconcile get facts shows the ids", id, ErrNoFact)
}

// Conflict finds the conflict with an id among the statements of the fact store.
func (b *FactStore) Conflict(id string) (*Conflict, error) {
	all, err := b.List()
	if err != nil {
		return nil, err
	}
	var found *Conflict
	for _, f := range all {
		c, ok := f.Statement.(*Conflict)
		if !ok || f.ID != id {
			continue
		}
		if !f.Own {
			return nil, b.notOwn(id)
		}
		if found == nil || found.Resolution == "" {
			found = c
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%.100q: %w among the conflicts; reconcile get facts --kind conflict shows the ids", id, ErrNoFact)
	}
	return found, nil
}

// Sign fills in missing authors, times and notes.
func Sign(s Statement, by string, at time.Time, note string) {
	fill := func(author *string, when *time.Time, why *string) {
		*author, *why = cmp.Or(*author, by), cmp.Or(*why, note)
		if when.IsZero() {
			*when = at.UTC().Truncate(time.Second)
		}
	}
	switch s := s.(type) {
	case *Relation:
		fill(&s.Author, &s.At, &s.Note)
	case *Provenance:
		fill(&s.Verifier, &s.VerifiedAt, &s.Note)
	case *Conflict:
		fill(&s.Author, &s.DetectedAt, &s.Note)
	case *Review:
		fill(&s.Author, &s.At, &s.Note)
	case *Trust:
		fill(&s.Author, &s.At, &s.Note)
	}
}

// idOf returns the kind, and 12 digits of a digest of the key.
func idOf(s Statement) string {
	var key []byte
	for _, part := range s.key() {
		key = fmt.Appendf(key, "%q ", fmt.Sprint(part))
	}
	sum := sha256.Sum256(key)
	return s.Kind() + "-" + hex.EncodeToString(sum[:6])
}
