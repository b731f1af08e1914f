package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas"
)

// Refresh looks again at the files that hints name (slash paths below the root; a folder stands for all in it), or at
// all files when hints is nil, and always at the journals. It returns prev with what changed, and the objects whose
// entries differ, and the ledgers and files of the memory that do, sorted. A hint that ends in a slash asks only for specs
// that are new right in that folder. When another process wrote to the tree since
// the last look, everything is looked at, whatever the hints say: within a run, empty hints are enough.
//
// prev is the tree that Load or Refresh returned last, with the statuses that the caller replaced in it since. Such a
// status stands, written or not, until somebody else changes its file.
func (s *Store) Refresh(ctx context.Context, prev *Tree, hints []string) (*Tree, []schemas.Ref, error) {
	look := (*update).paths
	if hints == nil {
		look = (*update).all
	}
	return s.refresh(ctx, prev, hints, look)
}

func (s *Store) refresh(ctx context.Context, prev *Tree, hints []string, look looker) (*Tree, []schemas.Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.hear()
	prev = s.withFolded(prev)
	if s.model == nil || s.model.later != nil || s.roused.Load() || prev == nil || slices.Contains(hints, schemas.SettingsPath) || s.settingsChanged() {
		return s.reload(ctx, prev)
	}
	u := s.update()
	if err := u.run(ctx, hints, look); errors.Is(err, errRoused) {
		return s.reload(ctx, prev)
	} else if err != nil {
		s.model = nil // half of it is new: the next look starts afresh
		return nil, nil, fmt.Errorf("look at the tree %s: %w", s.dir, err)
	}
	s.cache.finish(s.model)
	s.folded = nil
	next, changed := u.apply(prev)
	return next, changed, nil
}

// looker finds out what became of files, of those that hints name or of all.
type looker func(u *update, ctx context.Context, hints []string) error

// run brings the model up to date.
func (u *update) run(ctx context.Context, hints []string, look looker) error {
	s := u.store
	u.journals()
	if gen := s.generation(); gen != s.seenGen {
		s.seenGen, hints = gen, nil
		look = (*update).all
	}
	obstacle, _ := u.model.obstacle()
	if err := look(u, ctx, hints); err != nil {
		return err
	}
	if u.rousing {
		return errRoused
	}
	u.unhide(obstacle)
	u.judge()
	if err := u.inputs(ctx, hints); err != nil {
		return err
	}
	u.outputs(hints)
	if err := u.written(ctx); err != nil {
		return err
	}
	for ref := range u.touched {
		u.rousing = u.rousing || u.model.dormant.has(ref)
	}
	if u.rousing {
		return errRoused
	}
	return nil
}

func (s *Store) settingsChanged() bool {
	st, err := lstat(s.root, schemas.SettingsPath)
	was := s.model.settings
	return (err == nil) != (was.stat != (stat{})) || err == nil && (st != was.stat || was.stat.racyAt(s.opts.FileNow()))
}

// reload loads everything and compares.
func (s *Store) reload(ctx context.Context, prev *Tree) (*Tree, []schemas.Ref, error) {
	next, err := s.load(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	changed := diff(prev, next)
	if prev != nil {
		for o := range prev.dormant.each() {
			changed = append(changed, o.Ref) // whether it changed is not known
		}
	}
	for _, ref := range s.moved {
		if ref.Kind == LedgerKind {
			changed = append(changed, ref)
		}
	}
	s.moved = nil
	slices.SortFunc(changed, schemas.Ref.Compare)
	return next, slices.Compact(changed), nil
}

// update is one Refresh.
type update struct {
	store              *Store
	model              *model
	touched            map[schemas.Ref]bool // objects of which a file, or something that it depends on, changed
	appeared, vanished bool                 // some object came to exist, or ceased to
	renamed            bool                 // a spec file was added or removed
	faulty             bool                 // problems may have changed
	statuses           map[string]bool      // status files that were read anew, or went
	moved              map[schemas.Ref]bool // what was moved aside
	rousing            bool                 // something bears on dormant objects
}

func (s *Store) update() *update {
	return &update{store: s, model: s.model, touched: map[schemas.Ref]bool{}, moved: map[schemas.Ref]bool{}}
}

func (u *update) touch(ref schemas.Ref) {
	if ref != (schemas.Ref{}) {
		u.touched[ref] = true
	}
}

// bears notes what a file that came, changed or went has to do with dormant objects.
func (u *update) bears(f *file) {
	d := u.model.dormant
	u.rousing = u.rousing || d != nil && (d.has(u.model.refOf(f)) || d.bearsOn(f))
}

// put takes a file that is new or was changed.
func (u *update) put(f *file) {
	old := u.model.files[f.path]
	if old != nil && old.body == f.body && old.area == f.area && f.body != nil {
		lacks, related := u.model.missing[f.path], u.model.related[f.path]
		u.model.put(f) // looked at again, and the same
		if lacks {
			u.model.missing[f.path] = true
		}
		if related {
			u.model.related[f.path] = true
		}
		return
	}
	if old != nil && old.area == areaOther && f.area == areaOther && old.stat == f.stat {
		u.model.put(f) // nothing is known of its content
		return
	}
	if u.bears(f); old != nil {
		u.bears(old)
	}
	ref := u.model.refOf(f)
	if old != nil && old.area == f.area && u.model.refOf(old) == ref {
		u.replace(old, f, ref)
		return
	}
	u.drop(f.path)
	u.reread(f)
	if f.area == areaSpecs {
		u.appeared = u.appeared || !u.model.exists(ref)
		u.renamed = true
	}
	u.model.put(f)
	u.touch(ref)
	u.faulty = u.faulty || isFaulty(f)
}

// replace takes a file that still is about the same object: no object came or went, so only what is touched is judged.
func (u *update) replace(old, f *file, ref schemas.Ref) {
	u.faulty = u.faulty || isFaulty(old) || isFaulty(f)
	u.reread(f)
	u.model.drop(f.path)
	u.model.put(f)
	u.touch(ref)
}

// drop forgets a file.
func (u *update) drop(p string) {
	if _, bad := u.model.troubles[p]; bad {
		delete(u.model.troubles, p)
		u.faulty = true
	}
	f := u.model.drop(p)
	if f == nil {
		return
	}
	u.reread(f)
	u.bears(f)
	ref := u.model.refOf(f)
	u.touch(ref)
	u.faulty = u.faulty || isFaulty(f)
	if f.area == areaSpecs {
		u.renamed = true
		u.vanished = u.vanished || !u.model.exists(ref)
	}
}

// reread notes that a status in the tree that the caller holds is no longer to be believed.
func (u *update) reread(f *file) {
	if f.area != areaStatus {
		return
	}
	if u.statuses == nil {
		u.statuses = map[string]bool{}
	}
	u.statuses[f.path] = true
}

func isFaulty(f *file) bool {
	switch b := f.body.(type) {
	case *specBody:
		return len(b.problems) > 0 || len(b.cross) > 0
	case *damage:
		return true
	case *Ledger:
		return len(b.Rejected) > 0
	}
	return false
}

func (u *update) trouble(t trouble) {
	u.drop(t.path)
	u.model.troubles[t.path] = t
	u.faulty = true
}

// judge computes anew the cross problems that may have changed.
func (u *update) judge() {
	m := u.model
	again := map[*file]bool{}
	if u.renamed {
		was := m.cased
		m.indexCase()
		for _, cased := range []map[string][]string{was, m.cased} {
			for _, ps := range cased {
				for _, p := range ps {
					if f := m.files[p]; f != nil {
						again[f] = true
					}
				}
			}
		}
	}
	if u.appeared || u.vanished {
		m.forgetNames()
		for p := range m.missing {
			again[m.files[p]] = true
		}
	}
	if u.vanished {
		for _, f := range m.files {
			if b, ok := f.body.(*specBody); ok && u.lost(b) {
				again[f] = true
			}
		}
	}
	for ref := range u.touched {
		if s := m.slots[ref]; s != nil {
			for _, f := range s.specs {
				again[f] = true
			}
		}
	}
	for p := range m.related {
		if f := m.files[p]; u.touchedBy(f.body.(*specBody)) {
			again[f] = true
		}
	}
	for f := range again {
		if u.store.judge(m, f) {
			u.touch(m.refOf(f))
			u.faulty = true
		}
	}
}

// lost reports whether an object refers to something touched that does not exist.
func (u *update) lost(b *specBody) bool {
	return slices.ContainsFunc(b.references(), func(r schemas.Reference) bool {
		return u.touched[r.To] && !u.model.exists(r.To)
	})
}

// touchedBy reports whether an object refers to something touched.
func (u *update) touchedBy(b *specBody) bool {
	return slices.ContainsFunc(b.references(), func(r schemas.Reference) bool { return u.touched[r.To] })
}

// written reads the files of touched objects that this process wrote without having been told what they hold.
func (u *update) written(ctx context.Context) error {
	var want []seen
	for ref := range u.touched {
		s := u.model.slots[ref]
		if s == nil {
			continue
		}
		for _, f := range append(slices.Clone(s.runs), s.status) {
			if f != nil && f.body == nil {
				want = append(want, seen{f.path, f.area, f.stat})
			}
		}
	}
	slices.SortFunc(want, bySeenPath)
	files, troubles, err := u.store.readFiles(ctx, u.store.root, want, nil)
	for _, f := range files {
		u.put(f)
	}
	for _, t := range troubles {
		u.trouble(t)
	}
	return err
}

// apply makes the next tree.
func (u *update) apply(prev *Tree) (*Tree, []schemas.Ref) {
	var entries []*Entry
	var changed []schemas.Ref
	for _, ref := range slices.SortedFunc(maps.Keys(u.touched), schemas.Ref.Compare) {
		if ref.Kind == LedgerKind {
			continue
		}
		if ref.Kind == MemoryKind {
			changed = append(changed, ref)
			continue
		}
		e, was := u.model.entry(ref), prev.Entry(ref)
		if was != nil {
			e.runs.follow(was.runs)
		}
		if was != nil && !u.statuses[e.StatusPath] {
			e.status = was.status // the caller's, which may be ahead of the file
		}
		if was != nil {
			e.Accepted = was.Accepted
		}
		switch {
		case was == nil && empty(e):
		case was == nil || !sameEntry(was, e):
			entries, changed = append(entries, e), append(changed, ref)
		}
	}
	next := prev
	if len(entries) > 0 {
		next = prev.With(entries...)
	}
	if u.faulty {
		next = next.WithSettings(u.model.settings.spec, u.model.problems())
	}
	next, ledgers := u.ledgers(next)
	if len(ledgers) > 0 {
		changed = append(changed, ledgers...)
		slices.SortFunc(changed, schemas.Ref.Compare)
	}
	return next, changed
}
