package state

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// How a Refresh finds out what became of files: all of them, or those that hints name.

// all looks at every file.
func (u *update) all(ctx context.Context, _ []string) error {
	s, m := u.store, u.model
	found, troubles, err := s.scanAll(ctx, false)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(found))
	asleep := m.dormant.files()
	var want []seen
	for _, f := range found {
		if u.asleep(f) {
			asleep--
			continue
		}
		there[f.path] = true
		if !m.files[f.path].current(f) {
			want = append(want, f)
		}
	}
	if u.rousing = u.rousing || asleep > 0; u.rousing {
		return nil
	}
	read, more, err := s.readFiles(ctx, s.root, want, m.files)
	if err != nil {
		return err
	}
	got := make(map[string]bool, len(read))
	for _, f := range read {
		got[f.path] = true
		u.put(f)
	}
	for _, w := range want {
		there[w.path] = got[w.path]
	}
	u.replaceTroubles(append(troubles, more...))
	for p := range m.files {
		if !there[p] {
			u.drop(p)
		}
	}
	return nil
}

// asleep reports whether a file is that of a dormant object. If it has changed, that is to be loaded.
func (u *update) asleep(f seen) bool {
	was, ok := u.model.dormant.owns(f.path)
	if ok {
		dir, name := splitPath(f.path)
		u.rousing = u.rousing || was.look != new(summer).look(dir, []byte(name), &f.stat)
	}
	return ok
}

func (u *update) replaceTroubles(now []trouble) {
	next := make(map[string]trouble, len(now))
	for _, t := range now {
		next[t.path] = t
		u.drop(t.path)
	}
	u.faulty = u.faulty || !maps.Equal(next, u.model.troubles)
	u.model.troubles = next
}

// unhide touches the objects whose specs something unreadable may hide, or no longer does.
func (u *update) unhide(before trouble) {
	if after, _ := u.model.obstacle(); after != before {
		u.touchSpecless()
	}
}

// touchSpecless touches the objects that have left traces and no spec: whether they are gone is to be told anew.
func (u *update) touchSpecless() {
	for ref, s := range u.model.slots {
		if len(s.specs) == 0 {
			u.touch(ref)
		}
	}
}

// paths looks at some files and folders.
func (u *update) paths(ctx context.Context, hints []string) error {
	var want []seen
	for _, p := range append(u.linked(), hints...) {
		if dir, ok := strings.CutSuffix(p, "/"); ok {
			want = append(want, u.newcomers(path.Clean(dir))...)
			continue
		}
		f, whole, err := u.path(ctx, path.Clean(p))
		if err != nil {
			return err
		}
		if whole {
			return u.all(ctx, nil)
		}
		want = append(want, f...)
	}
	slices.SortFunc(want, bySeenPath)
	want = slices.CompactFunc(want, func(a, b seen) bool { return a.path == b.path })
	read, troubles, err := u.store.readFiles(ctx, u.store.root, want, u.model.files)
	if err != nil {
		return err
	}
	got := map[string]bool{}
	for _, f := range read {
		got[f.path] = true
		u.put(f)
	}
	for _, w := range want {
		if !got[w.path] {
			u.drop(w.path)
		}
	}
	for _, t := range troubles {
		u.trouble(t)
	}
	return nil
}

// listed is a folder as it was when its names were read.
type listed struct {
	stat stat
	racy bool
}

// newcomers returns the spec files right in a folder that are not known yet. It looks at none of those that are, and at
// no names where none came or went since the last time.
func (u *update) newcomers(dir string) []seen {
	s, now := u.store, u.store.opts.FileNow()
	st, err := lstat(s.root, dir)
	if was, ok := s.listed[dir]; err != nil || ok && was.stat == st && !was.racy {
		return nil
	}
	d, err := openFolder(s.root, dir)
	if err != nil {
		return nil // the look at everything tells
	}
	defer d.close()
	if s.listed == nil {
		s.listed = map[string]listed{}
	}
	s.listed[dir] = listed{st, st.racyAt(now)}
	var out []seen
	var l listing
	for more := true; more; {
		l.reset()
		if more, err = d.list(&l); err != nil {
			delete(s.listed, dir)
			return out
		}
		for i := range l.len() {
			if f, ok := u.newcomer(d, dir, l.name(i)); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

func (u *update) newcomer(d *folder, dir string, name []byte) (seen, bool) {
	p := dir + "/" + string(name)
	if a, _ := u.model.layout.classify(p); a != areaSpecs || u.model.files[p] != nil {
		return seen{}, false
	}
	if _, asleep := u.model.dormant.owns(p); asleep {
		return seen{}, false
	}
	var st stat
	if d.stat(name, &st) != nil || st.form() != formFile {
		return seen{}, false
	}
	return seen{p, areaSpecs, st}, true
}

func bySeenPath(a, b seen) int {
	return cmp.Or(strings.Compare(path.Dir(a.path), path.Dir(b.path)), strings.Compare(a.path, b.path))
}

// path returns the files to read for a hint, and drops what is gone. whole says that only a look at everything tells
// what became of it: it holds the tree's folders, or is none of what a tree has.
func (u *update) path(ctx context.Context, p string) (want []seen, whole bool, err error) {
	l := u.model.layout
	a, _ := l.classify(p)
	st, err := lstat(u.store.root, p)
	if _, asleep := u.model.dormant.owns(p); asleep && err != nil {
		u.rousing = true
		return nil, false, nil
	}
	switch below := within(l.specs, p) || within(l.state, p); {
	case err == nil && st.form() == formLink && a == areaSpecs:
		return u.link(p), false, nil
	case err == nil && st.form() == formFile:
		f := seen{p, a, st}
		if u.asleep(f) {
			return nil, false, nil
		}
		if a == areaNone || u.model.files[p].current(f) {
			return nil, u.model.troubles[p] != (trouble{}), nil
		}
		return []seen{f}, false, nil
	case err != nil && u.model.files[p] != nil:
		u.drop(p)
		return nil, false, nil
	case below && u.model.dormant != nil && (err != nil || st.form() == formFolder):
		return nil, true, nil // dormant files may have been in it
	case below && errors.Is(err, fs.ErrNotExist):
		u.dropBelow(p, nil)
		return nil, false, nil
	case below && err == nil && st.form() == formFolder:
		return u.folder(ctx, p)
	default:
		return nil, below || p == "." || p == l.specs || p == l.state || within(p, l.specs) || within(p, l.state), nil
	}
}

// folder returns the files in a folder that are to be read, and drops what is gone there.
func (u *update) folder(ctx context.Context, dir string) (want []seen, whole bool, err error) {
	found := &gather{watch: u.store.watch}
	s := newScanner(u.store.root, u.model.layout, false)
	from := s.placeOf(dir, found)
	if from == nil {
		return nil, true, nil
	}
	if err := s.scanFrom(ctx, []*place{from}, found); err != nil {
		return nil, false, err
	}
	there := map[string]bool{}
	for _, f := range found.appendTo(nil) {
		there[f.path] = true
		if !u.model.files[f.path].current(f) {
			want = append(want, f)
		}
	}
	u.dropBelow(dir, there)
	for _, t := range found.troubles {
		u.trouble(t)
	}
	return want, false, nil
}

// dropBelow forgets a folder, but for some files in it.
func (u *update) dropBelow(dir string, keep map[string]bool) {
	for p := range u.model.files {
		if within(dir, p) && !keep[p] {
			u.drop(p)
		}
	}
	for p := range u.model.troubles {
		if p == dir || within(dir, p) {
			u.drop(p)
		}
	}
}

// link returns a linked spec to be read, or notes what is wrong with the link.
func (u *update) link(p string) []seen {
	st, err := followLink(u.store.root, p)
	if err != nil {
		u.trouble(trouble{p, "symlink", err.Error()})
		return nil
	}
	return []seen{{p, areaSpecs, st}}
}

// linked are the links whose targets may have changed.
func (u *update) linked() []string {
	out := slices.Collect(maps.Keys(u.model.links))
	for p, t := range u.model.troubles {
		if t.code == "symlink" {
			out = append(out, p)
		}
	}
	return out
}

// holds reports whether a file is known in the folder p.
func (m *model) holds(p string) bool {
	for q := range m.files {
		if within(p, q) {
			return true
		}
	}
	return false
}
