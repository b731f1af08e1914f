package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"syscall"

	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/lock"
	"reconcile.dev/reconcile/state/regular"
)

// LockFile acquires the AgentX lock of the file at p, with the store's options. Third-party programs may also write the
// file. Callers that change a file's content use Fold; LockFile is for files that are derived from others.
func (s *Store) LockFile(ctx context.Context, p string) (*lock.Lock, error) {
	if err := s.ensureLocal(tmpDir); err != nil {
		return nil, err
	}
	return s.acquire(ctx, p, s.lockOptions())
}

// Replace atomically replaces the derived file at p with the concatenated parts, without a sync. Readers see the old or the
// new content; after a power loss the file may be lost. A file under .reconcile needs no lock; the caller holds that of a
// file under state/.
func (s *Store) Replace(p string, parts ...[]byte) error {
	if err := s.ensureLocal(tmpDir); err != nil {
		return err
	}
	return durable.Replace(s.root, tmpDir, p, parts...)
}

// Draft writes the parts to a temporary file, as a durable draft of the derived file at p, which the caller puts in place.
// It is the first half of Replace.
func (s *Store) Draft(p string, parts iter.Seq[[]byte]) (*durable.Draft, error) {
	if err := s.ensureLocal(tmpDir); err != nil {
		return nil, err
	}
	return durable.NewDraft(s.root, tmpDir, p, parts)
}

// Add creates the disposable file p under state/ with the given data, unless it exists. The error wraps fs.ErrExist if the
// file exists; then it is not changed.
func (s *Store) Add(p string, data []byte) error {
	if err := s.ensureLocal(tmpDir); err != nil {
		return err
	}
	return durable.Add(s.root, tmpDir, p, data)
}

// Change applies ops, durable changes of files under state/, in their order: after a crash a prefix of them is applied. The
// tree must be locked by this store.
func (s *Store) Change(ops []durable.Op) error {
	if err := s.ensureLocal(tmpDir); err != nil {
		return err
	}
	return durable.Apply(s.root, tmpDir, ops)
}

// PutNew puts data into a new file at p, durably, and returns the content that was there if the file exists already. The
// caller interprets that content. Announce notifies other processes of the tree.
func (s *Store) PutNew(p string, data []byte) (was []byte, err error) {
	return s.PutNewOnce(p, data, func() error { return nil })
}

// PutNewOnce is PutNew for content that may turn out to be wrong during the write: the file appears once ready has
// returned, and not at all if ready returns an error. ready is not called if the file exists.
func (s *Store) PutNewOnce(p string, data []byte, ready func() error) (was []byte, err error) {
	if was, err = s.readOrNil(p); err != nil || was != nil {
		return was, err
	}
	if err := s.ensureLocal(tmpDir); err != nil {
		return nil, err
	}
	staged, err := durable.Stage(s.root, tmpDir, p, data)
	if err != nil {
		return nil, err
	}
	if err := ready(); err != nil {
		staged.Discard()
		return nil, err
	}
	return nil, staged.Commit()
}

// Map maps the derived file at p into memory, and returns its data, which is valid until release is called. Such files are
// replaced and never truncated, so that mapped content stays valid. A missing or irregular file is an error of package fs;
// an empty file has no content and no error.
func (s *Store) Map(p string) (data []byte, release func(), err error) {
	f, fi, err := regular.Open(s.root, p)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if fi.Size() == 0 {
		return nil, func() {}, nil
	}
	return disk.Map(f, int(fi.Size()))
}

// Scratch returns a new file without a name, for data that is too large for memory; see [durable.Scratch]. For a
// read-only tree it is in the system's temporary folder.
func (s *Store) Scratch() (*os.File, error) {
	err := s.ensureLocal(tmpDir)
	if err == nil {
		var f *os.File
		if f, err = durable.Scratch(s.root, tmpDir); err == nil {
			return f, nil
		}
	}
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return nil, err
	}
	root, elsewhere := regular.Root(os.TempDir())
	if elsewhere != nil {
		return nil, err
	}
	defer root.Close()
	f, elsewhere := durable.Scratch(root, ".")
	if elsewhere != nil {
		return nil, err
	}
	return f, nil
}

// SweepTemp sweeps the tree's folder of temporary files, and removes those of killed processes.
func (s *Store) SweepTemp() error { return durable.Sweep(s.root, tmpDir) }

// MapScratch maps the scratch file f into memory, and returns its data, which is valid until release is called. forget frees
// the memory of the pages that were read; they are read again on the next use.
func MapScratch(f *os.File) (data []byte, forget, release func(), err error) {
	fi, err := f.Stat()
	if err != nil || fi.Size() == 0 {
		return nil, func() {}, func() {}, err
	}
	data, release, err = disk.Map(f, int(fi.Size()))
	return data, func() { disk.ForgetPages(data) }, release, err
}

// Fold folds the old content of the file at p into a new one, and writes that under the file's AgentX lock. Third-party
// programs may also write the file. fold returns the new content for the old one (nil: no file); it may be called several
// times and must depend only on old. If nothing changes, no lock is taken. Invalid JSON is read again under the lock:
// another program may be writing it.
func (s *Store) Fold(ctx context.Context, p string, fold func(old []byte) ([]byte, error)) error {
	old, err := s.readOrNil(p)
	switch {
	case errors.Is(err, disk.ErrNotFile):
		return fmt.Errorf("read %s: %w; move it away: no link is followed here, and nothing is written over one", p, err)
	case err != nil:
		return fmt.Errorf("read %s: %w", p, err)
	}
	next, err := fold(old)
	torn := err != nil && old != nil && !json.Valid(old)
	if err != nil && !torn {
		return fmt.Errorf("fold %s: %w", p, err)
	}
	if err := s.ensureLocal(tmpDir); err != nil {
		return err
	}
	if !torn && sameContent(withLF(old), next) {
		return s.sweepLock(ctx, p)
	}
	if err := s.SyncJournal(); err != nil {
		return err
	}
	last := next
	if err := s.ignoreLock(p); err != nil {
		return fmt.Errorf("fold %s: %w", p, err)
	}
	err = lock.Update(ctx, s.root, p, s.lockOptions(), func(now []byte) ([]byte, error) {
		if last = next; !torn && sameContent(now, old) {
			return last, nil // no other process changed it meanwhile
		}
		last, err = fold(now)
		return last, err
	})
	if err != nil {
		return fmt.Errorf("fold %s: %w", p, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	look := folderCache{root: s.root}
	defer look.close()
	s.noteWritten(&look, p, last, nil)
	return s.bumpGeneration()
}

// withLF returns the content with LF line ends, as this program writes it: a checkout may have converted it to CRLF,
// which is not a change.
func withLF(data []byte) []byte {
	if !bytes.Contains(data, []byte("\r\n")) {
		return data
	}
	return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
}

// sameContent reports whether two contents are the same; nil is a missing file.
func sameContent(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// readOrNil reads a regular file; nil if it does not exist.
func (s *Store) readOrNil(p string) ([]byte, error) {
	d, err := disk.OpenDir(s.root, path.Dir(p))
	if err == nil {
		defer d.Close()
		var data []byte
		if data, _, err = d.Read(path.Base(p), stateLimit); err == nil {
			return data, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return nil, err
}
