package gitrepo

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"reconcile.dev/reconcile/state/worktree"
)

// catchUp updates the index for commits that an earlier process, or an earlier attempt while the index was locked,
// recorded. Records of other work trees stay; those of branches that are no longer checked out are dropped, because
// git checkout updated the index.
func (n *native) catchUp(ctx context.Context, w *scratchDir, store *objectStore) error {
	list := w.readPending()
	if len(list) == 0 {
		return nil
	}
	head, err := readHead(n.layout)
	if err != nil {
		return err
	}
	now, err := store.treeOf(head.Hash)
	if err != nil {
		return err
	}
	var edits []edit
	var theirs []pending
	for _, p := range list {
		switch {
		case p.GitDir != n.gitDir && worktree.Exists(p.GitDir):
			theirs = append(theirs, p)
		case p.GitDir == n.gitDir && p.Ref == head.Ref:
			more, err := store.catchUpEdits(p, now)
			if err != nil {
				return err
			}
			edits = append(edits, more...)
		}
	}
	if len(edits) > 0 {
		if err := n.patchIndex(ctx, w, edits, nil, nil); err != nil {
			return err
		}
	}
	for _, p := range list {
		if p.GitDir == n.gitDir && p.Ref == head.Ref && p.Files && p.Old == head.Hash {
			if err := n.takeBack(ctx, w, store, p); err != nil {
				return err
			}
		}
	}
	if len(theirs) == 0 {
		return w.clearPending()
	}
	data, err := json.Marshal(theirs)
	if err != nil {
		return err
	}
	return w.replace(w.pendingPath(), data, 0)
}

// catchUpEdits returns the files that p's commit changed, from the old version to the branch's current one. A
// commit that does not exist was never made; for a commit that the branch never reached, the index is reverted.
func (s *objectStore) catchUpEdits(p pending, head plumbing.Hash) ([]edit, error) {
	var missing *needsGit
	was, err := s.treeOf(p.Old)
	if errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	made, err := s.treeOf(p.New)
	if errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	edits, _, err := s.difference(was, made)
	if err != nil {
		return nil, err
	}
	for i := range edits {
		was, made := edits[i].was, edits[i].now
		if edits[i].now, err = s.file(head, edits[i].path); err != nil {
			return nil, err
		}
		if edits[i].now.mode == modeTree {
			edits[i].now = blob{} // a folder has no entry in the index
		}
		if edits[i].now == was {
			edits[i].was = made
		}
	}
	return slices.DeleteFunc(edits, func(e edit) bool { return e.was == e.now }), nil
}

// followIndex updates the index entries that differ between two trees.
func (n *native) followIndex(ctx context.Context, w *scratchDir, store *objectStore, was, now plumbing.Hash,
	stats map[string]fileStat) error {
	edits, folders, err := store.difference(was, now)
	if err != nil {
		return err
	}
	return n.patchIndex(ctx, w, edits, folders, stats)
}

// nextIndex prepares followIndex for a commit that is about to be made: the index is replaced before the branch
// moves. A concurrent git command reads the branch before the index. If the branch moved first, that command could
// see the new branch and the old index, and its commit would revert ours; instead it sees an old branch, which
// moves before git can move it, and git refuses. After an error the result is nil, and the index follows the branch
// later.
func (n *native) nextIndex(ctx context.Context, w *scratchDir, store *objectStore, was, now plumbing.Hash,
	stats map[string]fileStat) (*nextIndex, error) {
	edits, folders, err := store.difference(was, now)
	if err != nil {
		return nil, err
	}
	return n.prepareIndex(ctx, w, edits, folders, stats)
}

// patchIndex exchanges index entries under git's own lock.
func (n *native) patchIndex(ctx context.Context, w *scratchDir, edits []edit, folders map[string]folderChange,
	stats map[string]fileStat) error {
	next, err := n.prepareIndex(ctx, w, edits, folders, stats)
	var pass *needsGit
	if errors.As(err, &pass) && n.git != "" {
		return (&command{layout: n.layout, git: n.git, lockTimeout: n.lockTimeout}).followIndex(ctx, asCommandEdits(edits))
	}
	if err != nil {
		return err
	}
	return errors.Join(next.place(), next.close())
}

// prepareIndex locks the index with git's lock and writes, synced, a new index with the edits next to it. The
// result owns both.
func (n *native) prepareIndex(ctx context.Context, w *scratchDir, edits []edit, folders map[string]folderChange,
	stats map[string]fileStat) (*nextIndex, error) {
	next, err := n.lockIndex(ctx, w)
	if err == nil {
		err = next.fill(n, w, edits, folders, stats)
	}
	if err != nil {
		return nil, errors.Join(err, next.close())
	}
	return next, nil
}

// lockIndex locks the index with git's lock and reads it. The result owns the lock, also after an error.
func (n *native) lockIndex(ctx context.Context, w *scratchDir) (*nextIndex, error) {
	path := filepath.Join(n.gitDir, "index")
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	lock, err := w.lock(ctx, path)
	if err != nil {
		return nil, err
	}
	next := &nextIndex{lock: lock}
	data, perm, written, err := readIndex(path)
	if err != nil {
		return next, err
	}
	next.perm, next.written = perm, written
	next.now, err = parseIndex(data)
	return next, err
}

// fill writes the edited index, if any entry changes.
func (x *nextIndex) fill(n *native, w *scratchDir, edits []edit, folders map[string]folderChange, stats map[string]fileStat) (err error) {
	slices.SortStableFunc(edits, func(a, b edit) int { return strings.Compare(a.path, b.path) })
	if !x.now.follow(edits, stats) {
		return nil
	}
	x.now.folders.follow("", folders)
	if folders == nil {
		x.now.folders = nil
	}
	x.now.guardRacy(x.written, n.lstat)
	x.temp, err = w.prepared(x.now.encode(), x.perm)
	return err
}

// nextIndex is a prepared index with the lock on its path; nil changes nothing. The lock is held for heldBeyond after the
// exchange, so that a git command that read the old index, as git commit does before it locks it, finds it locked and ends.
// It would write the old index back, and the next commit of the user would revert ours.
type nextIndex struct {
	lock    *lockFile
	now     *index   // as it was read
	written fileTime // its mtime
	perm    fs.FileMode
	temp    string    // "" when nothing changes, or after the rename
	put     time.Time // of the exchange
}

// heldBeyond is more than git takes from reading a small index to locking it; for that of a large tree it can take longer, and
// nothing can keep it from writing that back. Most disks take as long to sync the exchange.
const heldBeyond = 10 * time.Millisecond

// place renames the index into place; close makes that durable.
func (x *nextIndex) place() error {
	if x == nil || x.temp == "" {
		return nil
	}
	if err := os.Rename(x.temp, x.lock.path); err != nil {
		return err
	}
	x.temp, x.put = "", time.Now()
	return nil
}

// close releases the lock, and removes an index that was not put in place.
func (x *nextIndex) close() (err error) {
	if x == nil {
		return nil
	}
	if x.temp != "" {
		os.Remove(x.temp) // otherwise sweep removes it
	}
	if !x.put.IsZero() {
		err = syncDir(filepath.Dir(x.lock.path))
		time.Sleep(heldBeyond - time.Since(x.put))
	}
	if err = errors.Join(err, x.lock.release()); err != nil {
		err = fmt.Errorf("%s: %w", x.lock.path, err)
	}
	return err
}

func (n *native) settle(ctx context.Context) error {
	if settledIndex(n.layout) {
		return nil
	}
	w, err := openScratchDir(ctx, n.layout, n.lockTimeout)
	if err != nil {
		return err
	}
	store := newObjectStore(n.layout)
	defer store.close()
	return errors.Join(n.catchUp(ctx, w, store), w.close())
}

// readIndex reads the current index; an index that only git can read is empty.
func (n *native) readIndex() (*index, error) {
	data, _, _, err := readIndex(filepath.Join(n.gitDir, "index"))
	if err != nil {
		return nil, err
	}
	ix, err := parseIndex(data)
	if err != nil {
		ix = &index{version: 2}
	}
	return ix, nil
}

// settledIndex reports whether there is certainly nothing to sweep and nothing to catch up with, without writing
// anything.
func settledIndex(l layout) bool {
	entries, err := os.ReadDir(filepath.Join(l.common, "reconcile"))
	return errors.Is(err, os.ErrNotExist) || err == nil && (len(entries) == 0 || len(entries) == 1 && entries[0].Name() == "guard")
}

// follow updates the entries of the edited paths (sorted) to a commit, and reports whether any changed. An entry
// follows if it matches the old or the new commit; entries that the user staged differently, and conflicts, stay.
// stats holds the stat data of the files that were read for the commit.
func (x *index) follow(edits []edit, stats map[string]fileStat) bool {
	changed := false
	out := make([]indexEntry, 0, len(x.entries)+len(edits))
	at := 0
	goes := x.removed(edits)
	for _, e := range edits {
		i, found := slices.BinarySearchFunc(x.entries[at:], e.path, comparePath)
		out = append(out, x.entries[at:at+i]...)
		at += i
		old, conflict := indexEntry{}, false
		if found {
			old, conflict = x.entries[at], x.entries[at].stage() != 0
		}
		if conflict || !follows(old, e) || !found && x.blocked(e.path, goes) {
			continue
		}
		if found {
			at++
		}
		if e.now.mode != 0 {
			next := newEntry(e.path, e.now, stats[e.path], old)
			changed = changed || !bytes.Equal(next.fixed, old.fixed)
			out = append(out, next)
		} else {
			changed = changed || found
		}
	}
	x.entries = append(out, x.entries[at:]...)
	return changed
}

// follows reports whether the entry (zero: absent) matches the file in the old or the new commit.
func follows(old indexEntry, e edit) bool {
	if old.fixed == nil {
		return e.was.mode == 0 || e.now.mode == 0
	}
	return old.extended()&flagIntent != 0 || old.blob() == e.was || old.blob() == e.now
}

// removed returns the paths whose entries follow an edit that removes them.
func (x *index) removed(edits []edit) map[string]bool {
	goes := map[string]bool{}
	for _, e := range edits {
		if e.now.mode == 0 {
			old, conflict := x.find(e.path)
			goes[e.path] = !conflict && follows(old, e)
		}
	}
	return goes
}

// blocked reports whether the index, without the given paths, holds a file where path needs a folder, or files below path: a
// new entry would contradict the user's staged changes.
func (x *index) blocked(path string, without map[string]bool) bool {
	for i, c := range path {
		if c == '/' && !without[path[:i]] {
			if e, _ := x.find(path[:i]); e.fixed != nil {
				return true
			}
		}
	}
	return slices.ContainsFunc(x.below(path+"/"), func(e indexEntry) bool { return !without[e.path] })
}

// guardRacy keeps git from trusting stale stat data. Git rereads a file if its mtime is not older than the index;
// writing the index makes the index newer, so every such entry is marked with size 0 unless it is certainly clean.
// written is the old index's mtime, lookup returns a path's stat data.
func (x *index) guardRacy(written fileTime, lookup func(path string) (fileStat, bool)) {
	for i, e := range x.entries {
		mtime := mtimeOf(e.fixed)
		if mtime.sec < written.sec || e.stage() != 0 || binary.BigEndian.Uint32(e.fixed[sizeOffset:]) == 0 {
			continue
		}
		if st, ok := lookup(e.path); ok && mtime.nsec != 0 && mtime.before(written) && st.matches(e.fixed) {
			continue
		}
		x.entries[i].fixed = slices.Clone(e.fixed)
		binary.BigEndian.PutUint32(x.entries[i].fixed[sizeOffset:], 0)
	}
}
