package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo/message"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/lock"
	"reconcile.dev/reconcile/state/regular"
)

// checkOut checks the files of byGit out into a separate folder: those that need no program here, the others with git.
func (s *staged) checkOut(ctx context.Context) error {
	if err := s.root.RemoveAll(filepath.FromSlash(s.dir)); err != nil { // of a killed process
		return err
	}
	anew := slices.ContainsFunc(s.changes, func(c fileChange) bool { return path.Base(c.path) == ".gitattributes" }) // git reads the new ones
	var written []string
	var others []fileChange
	for _, c := range s.byGit {
		if c.now.mode == 0 {
			continue
		}
		how := s.g.rules.conversion(c.path)
		if anew || !plainCheckout(c.now) || !how.native() {
			others = append(others, c)
			continue
		}
		data, err := s.g.blob(ctx, c.now)
		if err == nil {
			data, err = how.smudge(data)
		}
		if err == nil {
			err = s.write(c, data)
		}
		if err != nil {
			return err
		}
		written = append(written, c.path)
	}
	return errors.Join(s.syncCheckout(written), s.checkOutByGit(ctx, others))
}

// write writes a file into the separate folder.
func (s *staged) write(c fileChange, data []byte) error {
	name, perm := filepath.FromSlash(path.Join(s.dir, c.path)), fs.FileMode(0o666)
	if c.now.mode == modeExec {
		perm = 0o777
	}
	if err := s.root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// checkOutByGit has git check files out, from an index that holds only them and the .gitattributes files that apply to them.
func (s *staged) checkOutByGit(ctx context.Context, files []fileChange) error {
	var names []string
	entries := map[string]blob{}
	for _, c := range files {
		if s.g.n.mode == readOnly && s.g.rules.conversion(c.path).filter {
			return fmt.Errorf("%s: a filter has to run; reconcile --commit does it", c.path)
		}
		names = append(names, c.path)
		entries[c.path] = c.now
		for _, dir := range foldersOf(c.path) {
			if p := path.Join(dir, ".gitattributes"); entries[p].mode == 0 {
				entries[p] = s.g.attributes(p, s.changes)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	if err := s.root.MkdirAll(filepath.FromSlash(s.dir), 0o777); err != nil {
		return err
	}
	f, err := s.g.w.temp("index")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return err
	}
	var info []string
	for p, b := range entries {
		if b.mode != 0 {
			info = append(info, fmt.Sprintf("%06o %s\t%s", b.mode, b.hash, p))
		}
	}
	apart := call{config: privateConfig, env: []string{"GIT_INDEX_FILE=" + f.Name(), "GIT_DIR=" + s.g.n.gitDir,
		"GIT_WORK_TREE=" + filepath.Join(s.g.n.worktree, filepath.FromSlash(s.dir))}, stdin: nulJoin(info)}
	if _, err := s.g.git().run(ctx, apart, "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	apart.stdin = nulJoin(names)
	if _, err := s.g.git().run(ctx, apart, "checkout-index", "--quiet", "-z", "--stdin"); err != nil {
		return fmt.Errorf("%w; nothing was changed; git checkout of these files must work: %s", err, message.Clip(strings.Join(names, ", "), 200))
	}
	return s.syncCheckout(names)
}

// syncCheckout syncs the files that git wrote, and checks that they are complete.
func (s *staged) syncCheckout(names []string) error {
	return parallel(len(names), func(i int) error {
		name := filepath.FromSlash(path.Join(s.dir, names[i]))
		fi, err := s.root.Lstat(name)
		if err != nil {
			return fmt.Errorf("git checkout-index left out %s; nothing was changed: %w", names[i], err)
		}
		if !fi.Mode().IsRegular() {
			return nil
		}
		f, _, err := regular.OpenFile(s.root, name, os.O_RDWR, 0)
		if errors.Is(err, os.ErrPermission) {
			return nil // it is read-only, and so is what the caller may do about it
		}
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// place puts all files in place, durably. A user's file that changed since it was classified is a *Conflict; the
// caller then reverts the files in place.
func (s *staged) place() error {
	for _, c := range s.byGit {
		if !sameFile(s.root, filepath.FromSlash(c.path), c.stat) {
			return &Conflict{Paths: []string{c.path}, What: "changed just now; run again"}
		}
	}
	dirs := map[string]bool{}
	err := s.shared.place(s.root, s.g.n.scratch)
	if err == nil {
		err = s.removeLinks(dirs)
	}
	if err == nil {
		err = s.ours.Commit()
	}
	if err == nil {
		err = s.moveIn(dirs)
	}
	if err == nil {
		err = s.finish()
	}
	if err != nil {
		return err
	}
	for dir := range dirs {
		if err := syncDir(filepath.Join(s.g.n.worktree, filepath.FromSlash(dir))); err != nil && !errors.Is(err, os.ErrNotExist) && !isNotDir(err) {
			return err
		}
	}
	return nil
}

// removeLinks removes deleted entries that are not regular files.
func (s *staged) removeLinks(dirs map[string]bool) error {
	for _, c := range s.byGit {
		if c.now.mode != 0 {
			continue
		}
		if err := s.root.Remove(filepath.FromSlash(c.path)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		dirs[path.Dir(c.path)] = true
	}
	return nil
}

// moveIn renames the files that git wrote into place.
func (s *staged) moveIn(dirs map[string]bool) error {
	for _, c := range s.byGit {
		if c.now.mode == 0 {
			continue
		}
		dir := path.Dir(c.path)
		if err := s.root.MkdirAll(filepath.FromSlash(dir), 0o777); err != nil {
			return err
		}
		for ; ; dir = path.Dir(dir) {
			if dirs[dir] = true; dir == "." {
				break
			}
		}
		if c.in {
			if err := removeFolders(s.root, c.path); err != nil {
				return &Conflict{Paths: []string{c.path}, What: "changed just now; run again: " + err.Error()}
			}
		}
		if err := s.root.Rename(filepath.FromSlash(path.Join(s.dir, c.path)), filepath.FromSlash(c.path)); err != nil {
			return err
		}
	}
	return nil
}

// removeFolders removes a folder for staged objects in which only empty folders are left. It accepts a path without a folder.
func removeFolders(root *os.Root, dir string) error {
	var all []string
	err := fs.WalkDir(regular.FS(root), dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, p)
		}
		return err
	})
	for _, p := range slices.Backward(all) {
		if err == nil {
			err = root.Remove(filepath.FromSlash(p))
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// finish updates everything except contents: executable bits, and the folders of submodules.
func (s *staged) finish() error {
	for _, c := range s.changes {
		name := filepath.FromSlash(c.path)
		switch {
		case c.stay && c.now.mode == modeModule:
			if err := s.root.MkdirAll(name, 0o777); err != nil {
				return err
			}
		case c.raw && !c.stay && !c.shared && c.now.mode != 0 && s.g.fileMode:
			fi, err := s.root.Lstat(name)
			if err != nil {
				return err
			}
			want := fi.Mode().Perm() &^ 0o111
			if c.now.mode == modeExec {
				want |= fi.Mode().Perm() & 0o444 >> 2
			}
			if want != fi.Mode().Perm() {
				if err := s.root.Chmod(name, want); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// stats returns the stat data of the files, after they are in place.
func (s *staged) stats() map[string]fileStat {
	out := map[string]fileStat{}
	for _, c := range s.changes {
		if c.now.mode == 0 || c.now.mode == modeModule || c.shared && s.shared.differ(c.path) {
			continue
		}
		if fi, err := s.root.Lstat(filepath.FromSlash(c.path)); err == nil {
			out[c.path] = statOf(fi)
		}
	}
	return out
}

// changed lists the files that changed.
func (s *staged) changed() []string {
	var out []string
	for _, c := range s.changes {
		if !c.stay {
			out = append(out, c.path)
		}
	}
	return out
}

// drop removes prepared files that are not in place.
func (s *staged) drop() {
	s.shared.release()
	if s.ours != nil {
		s.ours.Discard()
	}
	s.root.RemoveAll(filepath.FromSlash(s.dir)) // otherwise the next call removes it
	s.root.Close()                              // only a handle
}

// mkdirLike makes a folder with the permissions of its parent, which is how git shares a repository.
func mkdirLike(parent, dir string) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil
		}
		return err
	}
	fi, err := os.Stat(parent)
	if err != nil {
		return err
	}
	return os.Chmod(dir, fi.Mode()&(os.ModePerm|os.ModeSetgid))
}

// discardStaged removes unused temporary files.
func discardStaged(files []*os.File) error {
	var err error
	for _, f := range files {
		if f == nil {
			continue
		}
		f.Close() // already closed if it was finished
		if rm := os.Remove(f.Name()); rm != nil && !errors.Is(rm, os.ErrNotExist) {
			err = errors.Join(err, rm)
		}
	}
	return err
}

// notDir reports whether some parent of path is a file, so that path cannot exist.
func notDir(path string) bool {
	fi, err := os.Stat(filepath.Dir(path))
	return err == nil && !fi.IsDir()
}

// sameFile reports whether a file still has the given stat data.
func sameFile(root *os.Root, path string, st fileStat) bool {
	fi, err := root.Lstat(path)
	return err == nil && statOf(fi) == st || err != nil && st == fileStat{}
}

// staged holds the new contents of files before they are in place.
type staged struct {
	g       *checkout
	root    *os.Root
	changes []fileChange
	ours    *durable.Staged
	dir     string // folder of git's files, below the work tree
	byGit   []fileChange
	shared  sharedFiles
}

// sharedFile is a Shared file before its replacement. Its lock is held.
type sharedFile struct {
	path  string // below the work tree
	lock  *lock.Lock
	there []byte
	next  []byte // the remote's content
	data  []byte // the new content
}

// sharedFiles are sorted by path.
type sharedFiles []*sharedFile

// lockShared locks the Shared files among the changes, and computes their new contents. All slow work is done
// before: other writers wait from now until place.
func (a *adoption) lockShared(ctx context.Context, changes []fileChange) (_ sharedFiles, err error) {
	var shared []fileChange
	for _, c := range changes {
		if c.shared {
			shared = append(shared, c)
		}
	}
	if len(shared) == 0 {
		return nil, nil
	}
	slices.SortFunc(shared, func(a, b fileChange) int { return strings.Compare(a.path, b.path) })
	versions, err := a.versions(ctx, shared)
	if err != nil {
		return nil, err
	}
	var held sharedFiles
	defer func() {
		if err != nil {
			held.release()
		}
	}()
	for i, c := range shared {
		own := strings.TrimPrefix(c.path, a.m.repo.prefix)
		j := &sharedFile{path: c.path, next: versions[i].Next}
		if j.lock, err = a.owners.Lock(ctx, own); err != nil {
			return nil, err
		}
		held = append(held, j)
		if j.there, err = j.lock.Read(); err != nil {
			return nil, err
		}
		versions[i].There = j.there
		if j.data, err = a.owners.Join(own, versions[i]); err != nil {
			return nil, fmt.Errorf("%s: unite what is there with what %s has: %w", c.path, a.m, err)
		}
	}
	return held, nil
}

// place replaces the files, if no other process intervened, and releases the locks.
func (all sharedFiles) place(root *os.Root, scratch string) error {
	var ops []durable.Op
	for _, j := range all {
		if err := j.lock.Check(); errors.Is(err, lock.ErrStolen) {
			return fmt.Errorf("%w: %w", errMoved, err)
		} else if err != nil {
			return err
		}
		if !same(j.there, j.data) {
			ops = append(ops, durable.Op{Path: j.path, Data: j.data})
		}
	}
	if err := durable.Apply(root, scratch, ops); err != nil {
		return err
	}
	all.release()
	return nil
}

// release releases the locks that are still held. Check already reported a stolen lock.
func (all sharedFiles) release() {
	for _, j := range all {
		_ = j.lock.Release()
	}
}

// differ reports whether a file's content differs from the remote's.
func (all sharedFiles) differ(path string) bool {
	return slices.ContainsFunc(all, func(j *sharedFile) bool { return j.path == path && !same(j.data, j.next) })
}
