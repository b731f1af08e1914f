package state

import (
	"context"
	"errors"
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
)

func (s *Store) settingsChanged() bool {
	st, err := disk.Lstat(s.root, schemas.SettingsPath)
	was := s.model.settings
	return (err == nil) != (was.stat != (disk.Stat{})) || err == nil && (st != was.stat || was.stat.RacyAt(s.opts.FileNow(), s.tick))
}

func (s *Store) update() *update {
	s.wakeAsked()
	return &update{store: s, model: s.model, touched: map[schemas.Ref]bool{}, moved: map[schemas.Ref]bool{}}
}

// wakeAffected wakes the dormant objects that a file which was added, changed or removed concerns.
func (u *update) wakeAffected(f *file) {
	d := u.model.dormant
	if d == nil {
		return
	}
	indices := d.affected(f)
	if i := d.find(u.model.refOf(f)); i >= 0 {
		indices = append(indices, i)
	}
	u.wake(indices...)
}

func (u *update) wake(indices ...int) {
	u.needsFullLoad = u.needsFullLoad || !u.model.wake(indices...)
}

// put adds a file that is new or changed.
func (u *update) put(f *file) {
	u.store.settledScan = nil
	old := u.model.files[f.path]
	if old != nil && old.body == f.body && old.area == f.area && f.body != nil {
		lacks, related := u.model.missing[f.path], u.model.related[f.path]
		u.model.put(f) // read again, and the same
		if lacks {
			u.model.missing[f.path] = true
		}
		if related {
			u.model.related[f.path] = true
		}
		return
	}
	if old != nil && old.area == areaOther && f.area == areaOther && old.stat == f.stat {
		u.model.put(f) // its content is not known
		return
	}
	if u.wakeAffected(f); old != nil {
		u.wakeAffected(old)
	}
	ref := u.model.refOf(f)
	if old != nil && old.area == f.area && u.model.refOf(old) == ref {
		u.replace(old, f, ref)
		return
	}
	u.drop(f.path)
	u.rereadStatus(f)
	if f.area == areaSpecs {
		u.appeared = u.appeared || !u.model.exists(ref)
		u.renamed = true
	}
	u.model.put(f)
	u.touch(ref)
	u.faulty = u.faulty || isFaulty(f)
}

// replace replaces in the loaded tree a file by its new version of the same object: no object was added or removed, so only touched objects are validated.
func (u *update) replace(old, f *file, ref schemas.Ref) {
	u.faulty = u.faulty || isFaulty(old) || isFaulty(f)
	u.rereadStatus(f)
	u.model.drop(f.path)
	u.model.put(f)
	u.touch(ref)
}

// drop drops a file.
func (u *update) drop(p string) {
	u.store.settledScan = nil
	if _, bad := u.model.scanErrors[p]; bad {
		delete(u.model.scanErrors, p)
		u.faulty = true
	}
	f := u.model.drop(p)
	if f == nil {
		return
	}
	u.rereadStatus(f)
	u.wakeAffected(f)
	ref := u.model.refOf(f)
	u.touch(ref)
	u.faulty = u.faulty || isFaulty(f)
	if f.area == areaSpecs {
		u.renamed = true
		u.vanished = u.vanished || !u.model.exists(ref)
	}
}

// rereadStatus records that a status in the caller's tree is out of date.
func (u *update) rereadStatus(f *file) {
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

func (u *update) setScanError(t scanError) {
	u.drop(t.path)
	u.model.scanErrors[t.path] = t
	u.faulty = true
}

// crossCheck computes the cross problems that may have changed.
func (u *update) crossCheck() {
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
		m.clearSuggestions()
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
		if u.store.crossCheck(m, f) {
			u.touch(m.refOf(f))
			u.faulty = true
		}
	}
}

// lost reports whether an object refers to a touched object that does not exist.
func (u *update) lost(b *specBody) bool {
	return slices.ContainsFunc(b.references(), func(r schemas.Reference) bool {
		return u.touched[r.To] && !u.model.exists(r.To)
	})
}

// written reads the files of touched objects that this process wrote without passing their decoded content.
func (u *update) written(ctx context.Context) error {
	var want []scanEntry
	for ref := range u.touched {
		s := u.model.slots[ref]
		if s == nil {
			continue
		}
		for _, f := range append(slices.Clone(s.runs), s.status) {
			if f != nil && f.body == nil {
				want = append(want, scanEntry{f.path, f.area, f.stat})
			}
		}
	}
	slices.SortFunc(want, bySeenPath)
	files, troubles, err := u.store.readFiles(ctx, u.store.root, want, nil)
	for _, f := range files {
		u.put(f)
	}
	for _, t := range troubles {
		u.setScanError(t)
	}
	return err
}

// apply makes the next tree.
func (u *update) apply(prev *Tree) (*Tree, []schemas.Ref) {
	var entries []*Entry
	var changed []schemas.Ref
	noted := false // a checkpoint changed
	for _, ref := range slices.SortedFunc(maps.Keys(u.touched), schemas.Ref.Compare) {
		if ref.Kind == LedgerKind {
			continue
		}
		if ref.Kind == MemoryKind || ref.Kind == CheckpointKind {
			noted = noted || ref.Kind == CheckpointKind
			changed = append(changed, ref)
			continue
		}
		e, was := u.model.entry(ref), prev.Entry(ref)
		if was != nil {
			e.runs.reuseSorted(was.runs)
		}
		if was != nil && !u.statuses[e.StatusPath] {
			e.status = was.status // the caller's, which may be newer than the file
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
		next = next.withSettings(u.model.settings.spec, u.model.problems())
	}
	if noted {
		with := *next
		with.checkpoints = u.model.checkpoints()
		next = &with
	}
	next, ledgers := u.ledgers(next)
	if len(ledgers) > 0 {
		changed = append(changed, ledgers...)
		slices.SortFunc(changed, schemas.Ref.Compare)
	}
	return next, changed
}

// errNeedsFullLoad says that a change affects dormant objects: all of them must be loaded.
var errNeedsFullLoad = errors.New("dormant objects are to be loaded")
