package state

import (
	"context"
	"path"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// A run looks at every file when it begins. Before it believes that nothing is left to do, it has to know what changed
// since, by its nodes or by others, and a second look at everything would cost as much as the first. So a run has the
// system tell what changes, and looks at that. Where the system cannot tell, everything is looked at.
//
// The watch is told of a change before the call that makes it returns, so that no change of a node that has ended is
// missed. It is not told of changes in the folders of records, through another name of a file, or through a mapping that
// is still in use. Those are for the next run, which looks at everything: what is settled is what this process knows.

// Watch has the system tell of changes from now on, if Fresh has just looked at everything, else from the next look at
// everything on. RefreshChanged makes use of it. To watch is not for a run with nothing to do: to end it takes the kernel
// some milliseconds.
func (s *Store) Watch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch != nil {
		return
	}
	s.watch = openWatch()
	if s.first != nil {
		s.watchSeen(s.first)
	}
}

// Unwatch ends what Watch began.
func (s *Store) Unwatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatch()
}

func (s *Store) unwatch() {
	s.watch.close()
	s.watch = nil
}

// RefreshChanged is Refresh for a caller that wants to know of all changes: of those that Watch was told of, or, where it
// is not told of all, by a look at every file.
func (s *Store) RefreshChanged(ctx context.Context, prev *Tree) (*Tree, []schemas.Ref, error) {
	return s.refresh(ctx, prev, nil, (*update).told)
}

// Told returns those of the hints, as Refresh takes them, where anything changed since the last look at everything: none
// where nothing did, and all of them where the system does not tell.
func (s *Store) Told(hints []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.hear()
	changed, ok := s.watch.told()
	if !ok {
		return hints
	}
	folders := map[string]bool{} // in which something changed
	for p, isFolder := range changed {
		if isFolder {
			return hints // what was in it is not named
		}
		folders[path.Dir(p)+"/"] = true
	}
	var out []string
	for _, p := range hints {
		if _, ok := changed[p]; ok || folders[p] {
			out = append(out, p)
		}
	}
	return out
}

// watchSeen watches the folders that Fresh saw.
func (s *Store) watchSeen(g *glance) {
	s.watch.restart()
	for i := range g.parts {
		for _, dir := range g.parts[i].folders {
			d, err := openFolder(s.root, dir)
			s.watch.add(d, dir)
			if err == nil {
				d.close()
			}
		}
	}
}

// told looks at what the watch was told of.
func (u *update) told(ctx context.Context, _ []string) error {
	changed, ok := u.store.watch.take()
	if !ok || u.uncovered(len(changed) > 0) {
		return u.all(ctx, nil)
	}
	var look []string
	was := map[string]*file{} // statuses
	for p, isFolder := range changed {
		a, _ := u.model.layout.classify(p)
		switch {
		case isFolder && !u.ownFolder(p):
			return u.all(ctx, nil)
		case isFolder, a == areaNone && u.nothing(p):
			continue
		case a == areaStatus:
			was[p] = u.model.files[p]
		}
		look = append(look, p)
	}
	if err := u.paths(ctx, look); err != nil {
		return err
	}
	for p, old := range was {
		if now := u.model.files[p]; (now == nil) != (old == nil) || now != nil && now.sum != old.sum {
			return u.all(ctx, nil) // another program writes statuses here, git perhaps, and then records, too
		}
	}
	return nil
}

// uncovered reports whether the folder of the specs, or of the state, was made since they were looked for. That of the
// state is made by this process, mostly; then it matters only if anything changed.
func (u *update) uncovered(changed bool) bool {
	s, l := u.store, u.model.layout
	made := func(dir string) bool {
		if s.watch.covers(dir) {
			return false
		}
		_, err := lstat(s.root, dir)
		return err == nil
	}
	return made(l.specs) || made(l.state) && (changed || !u.model.holds(l.state))
}

// ownFolder reports whether a folder that came or went bears on nothing: it is no part of the tree, or one for the records
// that this process wrote.
func (u *update) ownFolder(p string) bool {
	if hidden(path.Base(p)) {
		return true
	}
	key, ok := strings.CutPrefix(p, u.model.layout.state+"/"+runsFolder+"/")
	if !ok {
		return false
	}
	slot := u.model.slots[u.model.layout.ownerOf(key+"/any")]
	return slot != nil && len(slot.runs) > 0
}

// nothing reports whether a name that is no file of the tree bears on nothing: it is gone, or a file.
func (u *update) nothing(p string) bool {
	if u.model.troubles[p] != (trouble{}) {
		return false
	}
	st, err := lstat(u.store.root, p)
	return err != nil || st.form() == formFile
}
