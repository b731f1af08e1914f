package state

import (
	"context"
	"os"
	"path"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
)

// A run scans every file when it begins. Before it ends, it must know the changes since then, by its nodes or by other
// programs, and a second full scan would cost as much as the first. So a run watches the folders, and reads the changed
// files. Without file notification it scans everything.
//
// The watch is notified of a change before the system call that makes it returns, so that no change by a finished node
// is missed. It is not notified of changes in the folders of records, through another name of a file, or through a
// mapping that is still in use, nor of statuses and archived specs that are written in place: every program of ours, and git,
// replaces them. The next run, which scans everything, finds those: only content that this process has
// read is settled.

// Watch starts the watch, if Fresh has just scanned everything, else with the next full scan. RefreshChanged uses it. A
// run with nothing to do must not watch: the kernel takes some milliseconds to end a watch.
func (s *Store) Watch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch != nil {
		return
	}
	w := disk.OpenWatch()
	s.watch = w
	if g := s.freshScan; g != nil {
		w.Restart()
		w.AddLater(func() { g.watch(s.root, w) }) // LoadChanged waits for it
	}
}

// Unwatch ends the watch.
func (s *Store) Unwatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatch()
}

func (s *Store) unwatch() {
	s.watch.Close()
	s.watch = nil
}

// RefreshChanged is Refresh for all changes: those that the watch reported, or, if that is incomplete, those that a full
// scan finds.
func (s *Store) RefreshChanged(ctx context.Context, prev *Tree) (*Tree, []schemas.Ref, error) {
	return s.refresh(ctx, prev, nil, (*update).watched)
}

// ChangedHints returns those of the hints for which the watch has seen a change, of the path or its folder, since the last
// full scan; all of them if the watch is incomplete. The hints are as for Refresh, of files below the folder of the specs; they are asked for
// if something changed there.
func (s *Store) ChangedHints(hints func() []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.ReadEvents()
	changed, ok := s.watch.Pending()
	if !ok {
		return hints()
	}
	specs := s.layout().specs
	folders := map[string]bool{} // folders with a change
	for p, isFolder := range changed {
		switch {
		case p != specs && !within(specs, p) && !within(p, specs): // what this process writes, most often
		case isFolder:
			return hints() // the names in it are not known
		default:
			folders[path.Dir(p)+"/"] = true
		}
	}
	if len(folders) == 0 {
		return nil
	}
	var out []string
	for _, p := range hints() {
		if _, ok := changed[p]; ok || folders[p] {
			out = append(out, p)
		}
	}
	return out
}

// watch adds the scanned folders to a watch.
func (g *freshScan) watch(root *os.Root, w *disk.Watch) {
	top, err := disk.OpenDir(root, ".")
	if err != nil {
		w.Lose()
		return
	}
	defer top.Close()
	for i := range g.parts {
		for _, dir := range g.parts[i].folders {
			d, err := top.Below(dir)
			w.Add(d, dir, g.layout.replaces(dir))
			if err == nil {
				d.Close()
			}
		}
	}
}

// watched scans the files that the watch reported.
func (u *update) watched(ctx context.Context, _ []string) error {
	changed, ok := u.store.watch.Take()
	if !ok || u.folderAppeared(len(changed) > 0) {
		return u.all(ctx, nil)
	}
	var look []string
	was := map[string]*file{} // statuses
	for p, isFolder := range changed {
		a, _ := u.model.layout.classify(p)
		switch {
		case isFolder && !u.ignorableFolder(p):
			return u.all(ctx, nil)
		case isFolder, a == areaNone && u.ignorableChange(p):
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
			return u.all(ctx, nil) // another program writes statuses, perhaps git, which then also writes records
		}
	}
	return nil
}

// folderAppeared reports whether the folder of the specs, or of the state, was created since the scan. Usually this
// process creates that of the state; then it matters only if something else changed.
func (u *update) folderAppeared(changed bool) bool {
	s, l := u.store, u.model.layout
	made := func(dir string) bool {
		if s.watch.Covers(dir) {
			return false
		}
		_, err := disk.Lstat(s.root, dir)
		return err == nil
	}
	return made(l.specs) || made(l.state) && (changed || !u.model.holds(l.state))
}

// ignorableFolder reports whether a folder that was added or removed has no effect: it is not part of the tree, or is one
// for the records that this process wrote.
func (u *update) ignorableFolder(p string) bool {
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

// ignorableChange reports whether a name that is not a file of the tree has no effect: it was removed, or is a file.
func (u *update) ignorableChange(p string) bool {
	if u.model.scanErrors[p] != (scanError{}) {
		return false
	}
	st, err := disk.Lstat(u.store.root, p)
	return err != nil || st.Form() == disk.File
}
