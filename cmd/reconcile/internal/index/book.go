package index

import (
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

	"reconcile.dev/reconcile/state"
)

// Book is what is stated of a tree's nodes. Each statement that it writes is a file of its own, whose name follows from
// the statement, and each removal is another one: what is stated and taken back in two clones, or by two processes, never
// meets in one file.
type Book struct {
	Store *state.Store
	// Warn hears of files that cannot be read.
	Warn func(error)
}

// Fact is a statement and where it stands.
type Fact struct {
	Statement
	ID   string
	Path string
	// Own reports whether it stands alone in a file that the book wrote.
	Own bool
}

// ErrNoFact says that there is no fact of an id.
var ErrNoFact = errors.New("there is no such fact")

func (b *Book) dir() string { return state.FactsDir(b.Store.Settings().Folders.State) }

// States reports whether a source of an edge is a file of facts, and not what else an edge is found in.
func (b *Book) States(source string) bool {
	return path.Ext(source) == ".json" && path.Dir(source) == b.dir()
}

// removal ends the name of a file that says that another one is taken back. No file of a fact is ever changed or deleted:
// so whatever two clones do to one fact, git merges it, and what one of them took back does not come back from another.
const removal = "-removed.json"

// removed is the content of such a file. It is the same whoever removes.
type removed struct {
	Removed string `json:"removed"` // name of the other file
}

// IsFactFile reports whether a path is that of a file that a book wrote below the folder of facts:
// KIND-<12 digits of its key>-<6 digits of its content>.json, or its removal.
func IsFactFile(p string) bool { return factOf(path.Base(p)) != "" }

// FactsIn tells of which facts there are files that a book wrote among the paths, by id, sorted, and whether each of them is
// stated there, or only taken back.
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
	for _, name := range standing(names) {
		stated[factOf(name)] = true
	}
	return slices.Sorted(maps.Keys(stated)), stated
}

// factOf is the id of the fact that a file of that name is about; "" for files of other names.
func factOf(name string) string {
	stem, ok := strings.CutSuffix(name, removal)
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

// standing are those of the names, which are sorted, that state something: no removals, and nothing that was removed.
func standing(names []string) []string {
	var out []string
	for _, name := range names {
		_, gone := slices.BinarySearch(names, removalOf(name))
		if !gone && !(IsFactFile(name) && strings.HasSuffix(name, removal)) {
			out = append(out, name)
		}
	}
	return out
}

func removalOf(name string) string { return strings.TrimSuffix(name, ".json") + removal }

// names are the files of facts, with removals and what they remove, sorted.
func (b *Book) names() ([]string, error) {
	var out []string
	err := b.Store.LookInto(b.dir(), func(name []byte, id state.Identity) {
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

// List reads all facts, by file and their order there. Files that cannot be read are told of.
func (b *Book) List() ([]Fact, error) {
	names, err := b.names()
	if err != nil {
		return nil, err
	}
	names = standing(names)
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

// How a statement was taken.
const (
	Added     = "stated"
	Changed   = "changed"
	Unchanged = "unchanged" // it was stated before, word by word
)

// Taken is what came of a statement.
type Taken struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Path   string `json:"path"`
	Change string `json:"change"` // stated, changed or unchanged
}

// State writes statements durably, each in the place of an older one with the same key. Nothing is written if one of
// them is wrong. A time that differs alone changes nothing. The error wraps [state.ErrBusy] when there are many and the
// tree is busy.
func (b *Book) State(ctx context.Context, all []Statement) (taken []Taken, err error) {
	last := map[string]int{} // by id: of two with one key the later counts
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
				c, err := takeBack(p)
				if err != nil {
					return nil, err
				}
				remove = append(remove, c)
			}
		}
		return append(add, remove...), nil // killed between, both stand; the next statement of the key removes the older
	})
	return taken, err
}

// takeBack is the change that takes a file of a fact back.
func takeBack(p string) (state.Change, error) {
	data, err := state.Encode(removed{path.Base(p)})
	return state.Change{Path: removalOf(p), Data: data}, err
}

// few are so few files that each is written by itself.
const few = 16

// write makes changes of the names of the files that there are. All are new files whose names follow from their contents:
// no lock is needed to write them, and processes that change the same fact at once leave both. Many are written as one,
// which is faster, under the lock of the tree.
func (b *Book) write(ctx context.Context, changes func(names []string) ([]state.Change, error)) error {
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

// compare says what is to become of a statement: the content of its file, and the files that it takes the place of.
func (b *Book) compare(s Statement, names []string) (t Taken, data []byte, old []string, err error) {
	t = Taken{ID: s.name(""), Kind: s.Kind(), Change: Added}
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
	for try := 0; ; try++ { // what was removed is stated again under another name
		var f factsFile
		s.put(&f)
		f.Again = try
		if data, err = state.Encode(f); err != nil {
			return t, nil, nil, err
		}
		sum := sha256.Sum256(data)
		name := t.ID + "-" + hex.EncodeToString(sum[:3]) + ".json"
		if _, gone := slices.BinarySearch(names, removalOf(name)); !gone {
			t.Path = b.dir() + "/" + name
			return t, data, old, nil
		}
	}
}

// saysSame reports whether two statements differ in nothing but when they were made.
func saysSame(a, b Statement) bool {
	if a.Kind() != b.Kind() || a.By() != b.By() || a.Said() != b.Said() {
		return false
	}
	c, ok := a.(*Conflict)
	return !ok || c.ResolvedBy == b.(*Conflict).ResolvedBy
}

// filesOf are the files that state what has an id.
func (b *Book) filesOf(id string, names []string) []string {
	var out []string
	for _, name := range standing(names) {
		if factOf(name) == id {
			out = append(out, b.dir()+"/"+name)
		}
	}
	return out
}

// Withdraw takes facts back by their ids. Nothing is taken back if one of them never was, or stands in a file that
// somebody wrote by hand; of what was before, nothing is left to do.
func (b *Book) Withdraw(ctx context.Context, ids []string) error {
	return b.write(ctx, func(names []string) ([]state.Change, error) {
		var out []state.Change
		for _, id := range ids {
			if id == "" || !slices.ContainsFunc(names, func(name string) bool { return factOf(name) == id }) {
				return nil, b.notOwn(id)
			}
			for _, p := range b.filesOf(id, names) {
				c, err := takeBack(p)
				if err != nil {
					return nil, err
				}
				out = append(out, c)
			}
		}
		return out, nil
	})
}

// notOwn says why what has an id cannot be removed.
func (b *Book) notOwn(id string) error {
	all, err := b.List()
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(f Fact) bool { return f.ID == id }); i >= 0 {
		return fmt.Errorf("%s stands in %s, which was written by hand: edit that file", id, all[i].Path)
	}
	return fmt.Errorf("%.100q: %w; reconcile fact list shows the ids", id, ErrNoFact)
}

// Conflict is the conflict that has an id.
func (b *Book) Conflict(id string) (*Conflict, error) {
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
		return nil, fmt.Errorf("%.100q: %w among the conflicts; reconcile fact list --kind conflict shows the ids", id, ErrNoFact)
	}
	return found, nil
}
