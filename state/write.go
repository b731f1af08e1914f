package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"syscall"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// Change is a file to write or to remove.
type Change struct {
	Path string // slash path below the root
	Data []byte // nil removes the file
	// Status is the decoded Data of a status file, so that it need not be decoded again.
	Status schemas.Status
}

var errNotLocked = errors.New("the tree is not locked")

// Write durably writes and removes files of the tree as changes say, in their order, and returns the number of changes. It
// does not rewrite files with the same content. The tree must be locked by this store. A file that was not readable is moved
// aside before another replaces it. A removed record of a run also removes its log, afterwards.
func (s *Store) Write(ctx context.Context, changes []Change) (int, error) {
	if err := s.SyncJournal(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changes = slices.DeleteFunc(slices.Clone(changes), s.upToDate)
	if len(changes) == 0 {
		return 0, nil
	}
	if err := s.mayWrite(ctx); err != nil {
		return 0, err
	}
	ops := make([]durable.Op, len(changes))
	for i, c := range changes {
		if err := s.clearPath(c.Path); err != nil {
			return 0, err
		}
		ops[i] = durable.Op{Path: c.Path, Data: c.Data, Stop: s.layout().state}
	}
	if err := s.bumpGeneration(); err != nil {
		return 0, err
	}
	err := s.apply(ops)
	look := folderCache{root: s.root}
	defer look.close()
	for _, c := range changes {
		if err != nil {
			s.forgetFile(c.Path)
		} else {
			s.noteWritten(&look, c.Path, c.Data, runBody(c))
		}
	}
	if err := errors.Join(err, s.bumpGeneration()); err != nil {
		return 0, fmt.Errorf("write to the tree %s: %w", s.dir, err)
	}
	s.dropLogs(changes)
	return len(changes), nil
}

// Batch is the maximum number of files that Write makes durable at once.
const Batch = 2000

// apply writes files in their order, each batch while this store holds the lock.
func (s *Store) apply(ops []durable.Op) error {
	for part := range slices.Chunk(ops, Batch) {
		held := s.held.Load()
		if held == nil {
			return errNotLocked
		}
		if err := held.Check(); err != nil {
			return err
		}
		if err := durable.Apply(s.root, tmpDir, part); err != nil {
			return err
		}
		held.Working("write")
	}
	return nil
}

func (s *Store) mayWrite(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	held := s.held.Load()
	if held == nil {
		return fmt.Errorf("write to the tree %s: %w", s.dir, errNotLocked)
	}
	if err := held.Check(); err != nil {
		return fmt.Errorf("write to the tree %s: %w", s.dir, err)
	}
	return s.ensureLocal(tmpDir)
}

// upToDate reports whether a file already has its intended content.
func (s *Store) upToDate(c Change) bool {
	st, err := disk.Lstat(s.root, c.Path)
	if c.Data == nil || err != nil {
		return c.Data == nil && errors.Is(err, fs.ErrNotExist)
	}
	if st.Size != int64(len(c.Data)) || st.Form() != disk.File {
		return false
	}
	old, err := regular.Read(s.root, c.Path)
	return err == nil && bytes.Equal(old, c.Data)
}

// Announce announces to the other processes of the tree that files were written, by bumping its generation. It is for files
// that this process wrote by other means than Write, for example specs: each of the others scans all files at its next turn,
// regardless of its hints. It needs no lock.
func (s *Store) Announce() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(s.ensureLocal(tmpDir), s.bumpGeneration()); err != nil {
		return fmt.Errorf("tell of what was written to the tree %s: %w", s.dir, err)
	}
	return nil
}

// clearPath moves a damaged file, or anything that is not a file, away from a path.
func (s *Store) clearPath(p string) error {
	if st, err := disk.Lstat(s.root, p); err == nil && st.Form() != disk.File {
		return s.renameAside(p)
	}
	if s.model == nil {
		return nil
	}
	f, t := s.model.files[p], s.model.scanErrors[p]
	if f != nil {
		if _, bad := f.body.(*damage); !bad && !f.isDeferred() {
			return nil
		}
		if h, ok := f.body.(*lazyRun); ok && h.resolved() != nil {
			return nil
		}
	} else if t == (scanError{}) {
		return nil
	}
	return s.renameAside(p)
}

// renameAside renames a file to .reconcile/damaged/<path>.<n>, durably.
func (s *Store) renameAside(p string) error {
	to := damagedDir + "/" + p
	if err := s.root.MkdirAll(path.Dir(to), 0o755); err != nil {
		return fmt.Errorf("set %s aside: %w", p, err)
	}
	free := s.unusedAsidePath(p)
	err := s.root.Rename(p, free)
	if errors.Is(err, syscall.EXDEV) {
		err = s.copyAcross(p, free)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set %s aside: %w", p, err)
	}
	if s.model == nil {
		return errors.Join(durable.SyncDir(s.root, path.Dir(to)), durable.SyncDir(s.root, path.Dir(p)))
	}
	if s.model.drop(p) != nil || s.model.scanErrors[p] != (scanError{}) {
		delete(s.model.scanErrors, p)
		_, ref := s.layout().classify(p)
		s.moved = append(s.moved, ref)
	}
	return errors.Join(durable.SyncDir(s.root, path.Dir(to)), durable.SyncDir(s.root, path.Dir(p)))
}

// copyAcross moves a file to another file system: the copy is durable before the original is removed.
func (s *Store) copyAcross(from, to string) error {
	data, err := regular.Read(s.root, from)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(s.root, tmpDir, to, data); err != nil {
		return err
	}
	return s.root.Remove(from)
}

// unusedAsidePath returns the first path for p below .reconcile/damaged/ that does not exist yet.
func (s *Store) unusedAsidePath(p string) string {
	for n := 1; ; n++ {
		free := damagedDir + "/" + p + "." + strconv.Itoa(n)
		if _, err := s.root.Lstat(free); err != nil {
			return free
		}
	}
}

// dropLogs removes the logs of runs whose records the changes remove. It runs after the removal, so that a kill does not
// leave a record that names a missing log. OrphanLogs finds logs that stay.
func (s *Store) dropLogs(changes []Change) {
	for _, c := range changes {
		if a, _ := s.layout().classify(c.Path); c.Data != nil || a != areaRuns {
			continue
		}
		log := LogPath(s.layout().runKey(c.Path))
		if s.root.Remove(log) == nil {
			_ = s.root.Remove(path.Dir(log)) // fails, as intended, while the folder has other logs
		}
	}
}

// noteWritten updates the model for a file that this process wrote or removed. A status file is decoded again only if its
// entry is made again, which is rare: its writer has the decoded status.
func (s *Store) noteWritten(look *folderCache, p string, data []byte, body any) {
	a, _ := s.layout().classify(p)
	if a == areaLedgers && data != nil {
		body = s.noteLedgerWritten(p, data)
	}
	if a == areaCheckpoints && data != nil {
		body = s.layout().decodeCheckpoint(p, data)
	}
	if s.model == nil {
		return
	}
	if !s.wakeOwner(p) {
		s.needsFullLoad.Store(true)
		return
	}
	st, err := look.lstat(p)
	if data == nil || a == areaNone || err != nil || st.Size != int64(len(data)) {
		s.model.drop(p)
		return
	}
	s.model.put(&file{path: p, area: a, racy: true, stat: st, sum: xxhash.Sum64(data), body: body})
}

// folderCache reads stats of files that are mostly in the same folder, which it keeps open.
type folderCache struct {
	root *os.Root
	path string
	dir  *disk.Dir
}

func (n *folderCache) lstat(p string) (disk.Stat, error) {
	parent, name := path.Dir(p), path.Base(p)
	if n.dir == nil || n.path != parent {
		n.close()
		d, err := disk.OpenDir(n.root, parent)
		if err != nil {
			return disk.Stat{}, err
		}
		n.path, n.dir = parent, d
	}
	var st disk.Stat
	err := n.dir.Stat([]byte(name + "\x00")[:len(name)], &st)
	return st, err
}

func (n *folderCache) close() {
	if n.dir != nil {
		n.dir.Close()
		n.dir = nil
	}
}

// forgetFile makes the next scan read a file again.
func (s *Store) forgetFile(p string) {
	if s.model == nil || s.model.files[p] == nil {
		return
	}
	again := *s.model.files[p]
	again.racy = true
	s.model.put(&again)
}

// generation returns a number that grows with each write to the tree by a reconcile process.
func (s *Store) generation() int64 {
	fi, err := s.root.Lstat(generationPath)
	if err != nil {
		return 0
	}
	return fi.Size()
}

// bumpGeneration notifies other processes that the tree changed: it appends a byte, so that no notification is lost. This
// process knows its own writes.
func (s *Store) bumpGeneration() error {
	f, _, err := regular.OpenFile(s.root, generationPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("count a change: %w", err)
	}
	_, err = f.Write([]byte{'.'})
	s.seenGen++
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("count a change: %w", err)
	}
	return nil
}

// runBody returns the body of a change that is known without decoding it.
func runBody(c Change) any {
	if c.Status == nil {
		return nil
	}
	return newLazyStatus(c.Status)
}

// RefreshMemory updates the store's knowledge of the files in the memory's folder, its archive and its records, so that the
// next Refresh does not report as changes what this process wrote there by other means than Write and Fold.
func (s *Store) RefreshMemory() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil {
		return nil
	}
	there := map[string]bool{}
	dir := s.layout().memoryDir()
	for _, folder := range []string{dir, dir + "/" + archiveFolder, dir + "/" + recordsFolder} {
		if err := s.scanMemory(folder, there); err != nil {
			return fmt.Errorf("look at the memory in %s: %w", folder, err)
		}
	}
	for _, p := range slices.Collect(maps.Keys(s.model.files)) {
		if within(dir, p) && !there[p] {
			s.model.drop(p)
		}
	}
	return nil
}

// scanMemory updates the model's files in one folder of the memory.
func (s *Store) scanMemory(dir string, there map[string]bool) error {
	d, err := disk.OpenDir(s.root, dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	defer d.Close()
	return d.Each(new(disk.Listing), func(i int, l *disk.Listing) {
		name := l.Name(i)
		var st disk.Stat
		if hidden(name) || !jsonFile(name) || d.Stat(name, &st) != nil || st.Form() != disk.File {
			return
		}
		p := path.Join(dir, string(name))
		there[p] = true
		if old := s.model.files[p]; old == nil || old.stat != st {
			s.model.put(&file{path: p, area: areaOther, stat: st})
		}
	}, dir)
}
