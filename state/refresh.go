package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
)

// How a Refresh finds changed files: all of them, or those that hints name.

// all scans every file.
func (u *update) all(ctx context.Context, _ []string) error {
	s, m := u.store, u.model
	found, troubles, err := s.scanAll(ctx, false)
	if err != nil {
		return err
	}
	var there map[string]bool
	var want []scanEntry
	for asleep, was := 1, (*dormantSet)(nil); asleep > 0; { // again where objects were woken, some of whose files were passed
		if was = m.dormant; u.needsFullLoad {
			return nil
		}
		there, want, asleep = map[string]bool{}, nil, m.dormant.files()
		for _, f := range found {
			if u.isDormant(f) {
				asleep--
				continue
			}
			there[f.path] = true
			if !m.files[f.path].current(f) {
				want = append(want, f)
			}
		}
		u.needsFullLoad = u.needsFullLoad || asleep > 0 && was == m.dormant // a file is gone
	}
	if u.needsFullLoad {
		return nil
	}
	read, more, err := s.readFiles(ctx, s.root, want, m.files)
	if err != nil {
		return err
	}
	got := make(map[string]bool, len(read))
	for _, f := range read {
		got[f.path] = true
	}
	for _, w := range want {
		there[w.path] = got[w.path]
	}
	var gone []string // before others are woken
	for p := range m.files {
		if !there[p] {
			gone = append(gone, p)
		}
	}
	for _, f := range read {
		u.put(f)
	}
	u.replaceScanErrors(append(troubles, more...))
	for _, p := range gone {
		if m.files[p] != nil { // else it has a scan error now
			u.drop(p)
		}
	}
	return nil
}

// isDormant reports whether a file belongs to a dormant object. If the file changed, the object is woken.
func (u *update) isDormant(f scanEntry) bool {
	was, ok := u.model.dormant.owns(f.path)
	if !ok {
		return false
	}
	dir, name := splitPath(f.path)
	if was.statHash == new(fingerprinter).statHash(dir, []byte(name), &f.stat) {
		return true
	}
	u.wake(int(was.owner) - 1)
	return false
}

func (u *update) replaceScanErrors(now []scanError) {
	next := make(map[string]scanError, len(now))
	for _, t := range now {
		next[t.path] = t
		u.drop(t.path)
	}
	u.faulty = u.faulty || !maps.Equal(next, u.model.scanErrors)
	u.model.scanErrors = next
}

// unhide touches the objects whose specs may be hidden by an unreadable file or folder, or no longer are.
func (u *update) unhide(before scanError) {
	if after, _ := u.model.firstUnreadable(); after != before {
		u.touchSpecless()
	}
}

// touchSpecless touches the objects with traces but without a spec: whether their specs were deleted must be decided
// again.
func (u *update) touchSpecless() {
	for ref, s := range u.model.slots {
		if len(s.specs) == 0 {
			u.touch(ref)
		}
	}
}

// paths scans some files and folders.
func (u *update) paths(ctx context.Context, hints []string) error {
	var want []scanEntry
	for _, p := range append(u.linked(), hints...) {
		if dir, ok := strings.CutSuffix(p, "/"); ok {
			want = append(want, u.newSpecs(path.Clean(dir))...)
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
	want = slices.CompactFunc(want, func(a, b scanEntry) bool { return a.path == b.path })
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
		u.setScanError(t)
	}
	return nil
}

// newSpecs returns the unknown spec files that are directly in a folder. It reads no stat of known ones, and no names if
// the folder did not change since the last time.
func (u *update) newSpecs(dir string) []scanEntry {
	s, now := u.store, u.store.opts.FileNow()
	st, err := disk.Lstat(s.root, dir)
	if was, ok := s.listed[dir]; err != nil || ok && was.stat == st && !was.racy {
		return nil
	}
	d, err := disk.OpenDir(s.root, dir)
	if err != nil {
		return nil // the full scan reports it
	}
	defer d.Close()
	if s.listed == nil {
		s.listed = map[string]listedFolder{}
	}
	s.listed[dir] = listedFolder{st, st.RacyAt(now, s.tick)}
	var out []scanEntry
	var l disk.Listing
	for more := true; more; {
		l.Reset()
		if more, err = d.List(&l); err != nil {
			delete(s.listed, dir)
			return out
		}
		for i := range l.Len() {
			if f, ok := u.newSpec(d, dir, l.Name(i)); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

func (u *update) newSpec(d *disk.Dir, dir string, name []byte) (scanEntry, bool) {
	p := dir + "/" + string(name)
	if a, _ := u.model.layout.classify(p); a != areaSpecs || u.model.files[p] != nil {
		return scanEntry{}, false
	}
	if _, asleep := u.model.dormant.owns(p); asleep {
		return scanEntry{}, false
	}
	var st disk.Stat
	if d.Stat(name, &st) != nil || st.Form() != disk.File {
		return scanEntry{}, false
	}
	return scanEntry{p, areaSpecs, st}, true
}

// path returns the files to read for a hint, and drops removed files. whole says that only a full scan can handle the
// hint: it contains the tree's folders, or is not a path of a tree.
func (u *update) path(ctx context.Context, p string) (want []scanEntry, whole bool, err error) {
	l := u.model.layout
	a, _ := l.classify(p)
	st, err := disk.Lstat(u.store.root, p)
	if was, asleep := u.model.dormant.owns(p); asleep && err != nil {
		u.wake(int(was.owner) - 1)
	}
	switch below := within(l.specs, p) || within(l.state, p); {
	case err == nil && st.Form() == disk.Link && a == areaSpecs:
		return u.link(p), false, nil
	case err == nil && st.Form() == disk.File:
		f := scanEntry{p, a, st}
		if u.isDormant(f) {
			return nil, false, nil
		}
		if a == areaNone || u.model.files[p].current(f) {
			return nil, u.model.scanErrors[p] != (scanError{}), nil
		}
		return []scanEntry{f}, false, nil
	case err != nil && u.model.files[p] != nil:
		u.drop(p)
		return nil, false, nil
	case below && u.model.dormant != nil && (err != nil || st.Form() == disk.Folder):
		return nil, true, nil // it may have held dormant files
	case below && errors.Is(err, fs.ErrNotExist):
		u.dropBelow(p, nil)
		return nil, false, nil
	case below && err == nil && st.Form() == disk.Folder:
		return u.folder(ctx, p)
	default:
		return nil, below || p == "." || p == l.specs || p == l.state || within(p, l.specs) || within(p, l.state), nil
	}
}

// folder returns the files in a folder to read, and drops removed ones.
func (u *update) folder(ctx context.Context, dir string) (want []scanEntry, whole bool, err error) {
	found := &fileCollector{watch: u.store.watch, layout: u.model.layout}
	s := newScanner(u.store.root, u.model.layout, false)
	from := s.placeOf(dir, found)
	if from == nil {
		return nil, true, nil
	}
	if err := s.scanFrom(ctx, []*scanFolder{from}, found); err != nil {
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
	for _, t := range found.scanErrors {
		u.setScanError(t)
	}
	return want, false, nil
}

// dropBelow drops the files below a folder, except some.
func (u *update) dropBelow(dir string, keep map[string]bool) {
	for p := range u.model.files {
		if within(dir, p) && !keep[p] {
			u.drop(p)
		}
	}
	for p := range u.model.scanErrors {
		if p == dir || within(dir, p) {
			u.drop(p)
		}
	}
}

// link returns a linked spec to read, or records the problem of the link.
func (u *update) link(p string) []scanEntry {
	st, err := followLink(u.store.root, p)
	if err != nil {
		u.setScanError(scanError{p, "symlink", err.Error()})
		return nil
	}
	return []scanEntry{{p, areaSpecs, st}}
}

// linked returns the links whose targets may have changed.
func (u *update) linked() []string {
	out := slices.Collect(maps.Keys(u.model.links))
	for p, t := range u.model.scanErrors {
		if t.code == "symlink" {
			out = append(out, p)
		}
	}
	return out
}

// holds reports whether the folder p has a known file.
func (m *model) holds(p string) bool {
	for q := range m.files {
		if within(p, q) {
			return true
		}
	}
	return false
}

// Refresh scans the files that hints name (slash paths below the root; a folder means all files in it), or all files if
// hints is nil, and always the journals. It returns prev with the changes, and the objects whose entries differ, and
// the changed ledgers and files of the memory, sorted. A hint with a trailing slash asks only for new specs directly in
// that folder. If another process wrote to the tree since the last scan, Refresh scans all files regardless of the
// hints: within a run, empty hints are enough.
//
// prev is the tree that Load or Refresh returned last, with the statuses that the caller replaced in it since. Such a
// status, written or not, stays until another process changes its file.
func (s *Store) Refresh(ctx context.Context, prev *Tree, hints []string) (*Tree, []schemas.Ref, error) {
	look := (*update).paths
	if hints == nil {
		look = (*update).all
	}
	return s.refresh(ctx, prev, hints, look)
}

// run updates the model.
func (u *update) run(ctx context.Context, hints []string, look looker) error {
	s := u.store
	u.journals()
	if gen := s.generation(); gen != s.seenGen {
		s.seenGen, hints = gen, nil
		look = (*update).all
	}
	obstacle, _ := u.model.firstUnreadable()
	if err := look(u, ctx, hints); err != nil {
		return err
	}
	if u.needsFullLoad {
		return errNeedsFullLoad
	}
	u.unhide(obstacle)
	u.crossCheck()
	u.touchExpanding()
	if err := u.inputs(ctx, hints); err != nil {
		return err
	}
	u.outputs(hints)
	if err := u.written(ctx); err != nil {
		return err
	}
	for ref := range u.touched {
		if i := u.model.dormant.find(ref); i >= 0 {
			u.wake(i)
		}
	}
	if u.needsFullLoad {
		return errNeedsFullLoad
	}
	return nil
}

func (s *Store) refresh(ctx context.Context, prev *Tree, hints []string, look looker) (*Tree, []schemas.Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.ReadEvents()
	prev = s.withFolded(prev)
	if s.model == nil || s.model.deferred != nil || s.needsFullLoad.Load() || prev == nil || slices.Contains(hints, schemas.SettingsPath) || s.settingsChanged() {
		return s.reload(ctx, prev)
	}
	u := s.update()
	s.model.callers = prev
	if err := u.run(ctx, hints, look); errors.Is(err, errNeedsFullLoad) {
		return s.reload(ctx, prev)
	} else if err != nil {
		s.model = nil // half of it is new: the next call loads everything
		return nil, nil, fmt.Errorf("look at the tree %s: %w", s.dir, err)
	}
	s.cache.finishLoad(s.model)
	s.folded = nil
	next, changed := u.apply(prev)
	return next, changed, nil
}

// looker finds changed files: those that hints name, or all.
type looker func(u *update, ctx context.Context, hints []string) error
