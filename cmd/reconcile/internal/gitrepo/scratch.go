package gitrepo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// lockTimeout is how long to wait for a held lock before the commit gives up, or leaves the index for later.
const lockTimeout = 3 * time.Second

// scratchDir is <common>/reconcile while this process holds its guard: the only folder for temporary files.
type scratchDir struct {
	dir         string
	guard       *flock.Flock
	lockTimeout time.Duration
	seq         atomic.Int64 // numbers temporary files; used by several goroutines
}

// openScratchDir takes the guard, which excludes other reconcile processes and is released by the kernel when its
// holder dies, and sweeps the leftover files of a dead holder.
func openScratchDir(ctx context.Context, l layout, patience time.Duration) (*scratchDir, error) {
	w := &scratchDir{dir: filepath.Join(l.common, "reconcile"), lockTimeout: patience}
	if err := os.MkdirAll(w.dir, 0o777); err != nil {
		return nil, err
	}
	w.guard = flock.New(filepath.Join(w.dir, "guard"))
	wait, cancel := context.WithTimeout(ctx, 5*patience)
	defer cancel()
	if _, err := w.guard.TryLockContext(wait, 5*time.Millisecond); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("%s: %w: another reconcile commits since more than %v; run again", w.dir, ErrBusy, 5*patience)
		}
		return nil, fmt.Errorf("%s: %w", w.guard.Path(), err)
	}
	if err := w.sweep(l); err != nil {
		return nil, errors.Join(err, w.guard.Unlock())
	}
	return w, nil
}

func (w *scratchDir) close() error { return w.guard.Unlock() }

// temp creates a file; kind is its purpose, and part of its name.
func (w *scratchDir) temp(kind string) (*os.File, error) {
	return os.OpenFile(filepath.Join(w.dir, fmt.Sprintf("%s.%d.tmp", kind, w.seq.Add(1))), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
}

// replace replaces the content of path, durably: temporary file, sync, rename, sync of the folder.
func (w *scratchDir) replace(path string, data []byte, perm fs.FileMode) error {
	name, err := w.prepared(data, perm)
	if err != nil {
		return err
	}
	if err := os.Rename(name, path); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return syncDir(filepath.Dir(path))
}

// prepared writes data, synced, to a new file and returns its name.
func (w *scratchDir) prepared(data []byte, perm fs.FileMode) (string, error) {
	f, err := w.temp("file")
	if err != nil {
		return "", err
	}
	if err := finishScratch(f, data, perm); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// finishScratch writes data to f, syncs and closes it.
func finishScratch(f *os.File, data []byte, perm fs.FileMode) error {
	_, err := f.Write(data)
	if err == nil && perm != 0 {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes names in a folder durable. Windows has no such call; its renames are durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := regular.FolderPath(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// sweep removes the leftover files of a dead holder of the guard: stale lock files (hard links to our temporary
// files), packs whose index was never renamed, and the temporary files themselves.
func (w *scratchDir) sweep(l layout) error {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return err
	}
	var twins []os.FileInfo
	var litter []string
	for _, e := range entries {
		if !strings.HasSuffix(strings.TrimSuffix(e.Name(), ".lock"), ".tmp") { // a git command locks an index of ours
			continue
		}
		litter = append(litter, filepath.Join(w.dir, e.Name()))
		if fi, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), "lock.") {
			twins = append(twins, fi)
		}
	}
	if len(twins) > 0 {
		if err := removeTwins(l, twins); err != nil {
			return err
		}
	}
	for _, name := range litter {
		if err := sweepPack(filepath.Join(l.common, "objects", "pack"), filepath.Base(name)); err != nil {
			return err
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// sweepPack removes the pack that "pack-<hash>.idx.tmp" belongs to, if the pack has no index.
func sweepPack(dir, name string) error {
	pack, ok := strings.CutSuffix(name, ".idx.tmp")
	if !ok || !strings.HasPrefix(pack, "pack-") {
		return nil
	}
	base := filepath.Join(dir, pack)
	if worktree.Exists(base + ".idx") {
		return nil
	}
	if err := os.Remove(base + ".pack"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// removeTwins removes every lock file of the repository that is the same file as one of twins.
func removeTwins(l layout, twins []os.FileInfo) error {
	var locks []string
	for _, dir := range append(linkedGitDirs(l.common), l.common, l.gitDir) {
		locks = append(locks, filepath.Join(dir, "HEAD.lock"), filepath.Join(dir, "index.lock"))
	}
	err := filepath.WalkDir(filepath.Join(l.common, "refs"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".lock") {
			locks = append(locks, p)
		}
		return nil
	})
	for _, lock := range locks {
		fi, statErr := os.Lstat(lock)
		if statErr != nil {
			continue
		}
		for _, twin := range twins {
			if os.SameFile(fi, twin) {
				err = errors.Join(err, os.Remove(lock))
			}
		}
	}
	return err
}

// lockFile is a git lock file that we hold: <path>.lock, whose content commit moves to path.
type lockFile struct {
	path string
	twin *os.File // the same file, under its name in the scratch directory; or the lock file itself without hard links
}

// lock takes git's lock on path. It waits at most the scratch directory's lock timeout; then the error wraps
// ErrBusy.
func (w *scratchDir) lock(ctx context.Context, path string) (*lockFile, error) {
	twin, err := w.temp("lock")
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(w.lockTimeout)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		l, err := linkLock(twin, path)
		if err == nil {
			return l, nil
		}
		if errors.Is(err, os.ErrExist) && time.Now().Before(deadline) {
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(pause):
				continue
			}
		} else if errors.Is(err, os.ErrExist) {
			err = fmt.Errorf("%s: %w: a git command holds it; when none runs any more, remove it and run again",
				path+".lock", ErrBusy)
		}
		return nil, errors.Join(err, twin.Close(), os.Remove(twin.Name()))
	}
}

// linkLock creates path.lock exclusively: as a hard link to twin, or as a separate file where the file system has no
// hard links.
func linkLock(twin *os.File, path string) (*lockFile, error) {
	err := os.Link(twin.Name(), path+".lock")
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return nil, err
		}
		err = os.Link(twin.Name(), path+".lock")
	}
	switch {
	case err == nil:
		return &lockFile{path: path, twin: twin}, nil
	case errors.Is(err, os.ErrExist):
		return nil, err
	}
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(twin.Close(), os.Remove(twin.Name())); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path+".lock"))
	}
	return &lockFile{path: path, twin: f}, nil
}

// prepare writes and syncs the content that commit will put in place. perm 0 leaves the mode to the umask.
func (l *lockFile) prepare(data []byte, perm fs.FileMode) error {
	return finishScratch(l.twin, data, perm)
}

// commit renames the prepared lock file over its path, durably, and so releases the lock. An error that wraps
// errAfterMove occurred when the new content was in place.
func (l *lockFile) commit() error {
	err := os.Rename(l.path+".lock", l.path)
	if err != nil && removeEmptyDirs(l.path) {
		err = os.Rename(l.path+".lock", l.path)
	}
	if err != nil {
		return errors.Join(err, l.release())
	}
	os.Remove(l.twin.Name()) // otherwise sweep removes it
	if err := syncDir(filepath.Dir(l.path)); err != nil {
		return fmt.Errorf("%s: %w: %w", l.path, errAfterMove, err)
	}
	return nil
}

// release releases the lock without any change. If that fails, the twin stays, so that sweep can remove the lock.
func (l *lockFile) release() error {
	l.twin.Close() // closed already when prepare ran
	if err := os.Remove(l.path + ".lock"); err != nil {
		return err
	}
	os.Remove(l.twin.Name()) // otherwise sweep removes it
	return nil
}

// pending is a commit whose index entries have yet to follow. It is on disk before the branch moves, so that a
// process that is killed in between does not leave an index that reverts the commit.
type pending struct {
	GitDir string `json:"gitDir"`
	Ref    string `json:"ref"` // "" for a detached HEAD
	Old    string `json:"old"` // "" for a first commit
	New    string `json:"new"`
	// Files is set if the work tree follows, too, and is reverted if the branch never moved.
	Files bool `json:"files,omitempty"`
}

func (w *scratchDir) pendingPath() string { return filepath.Join(w.dir, "pending.json") }

// readPending reads the record. A corrupt record is empty: it is replaced atomically, so only foreign damage
// corrupts it, and the loss is harmless.
func (w *scratchDir) readPending() []pending {
	data, err := regular.ReadPath(w.pendingPath())
	if err != nil {
		return nil
	}
	var list []pending
	if json.Unmarshal(data, &list) != nil {
		return nil
	}
	return list
}

// recordPending adds a commit to the record, durably, if wanted.
func (w *scratchDir) recordPending(wanted bool, p pending) error {
	if !wanted {
		return nil
	}
	data, err := json.Marshal(append(w.readPending(), p))
	if err != nil {
		return err
	}
	return w.replace(w.pendingPath(), data, 0)
}

// clearPending deletes the record: the index has followed.
func (w *scratchDir) clearPending() error {
	err := os.Remove(w.pendingPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func escapeGlob(p string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(p)
}

// borrowingGit creates an object folder in dir that uses a repository's objects as alternates.
func borrowingGit(dir, common string) (string, error) {
	objects := filepath.Join(dir, "objects")
	info := filepath.Join(objects, "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return "", err
	}
	return objects, os.WriteFile(filepath.Join(info, "alternates"), []byte(filepath.Join(common, "objects")+"\n"), 0o600)
}
