package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/lock"
)

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
