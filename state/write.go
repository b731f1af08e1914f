package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
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

// Write applies changes durably, in their order, and returns their number; it does not rewrite files with the same
// content. The tree must be locked by this store. A file that was not readable is moved aside before another replaces it.
// A removed record of a run also removes its log, afterwards.
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
			s.noteWritten(&look, c.Path, c.Data, body(c))
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
		held.Working()
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
	st, err := lstat(s.root, c.Path)
	if c.Data == nil || err != nil {
		return c.Data == nil && errors.Is(err, fs.ErrNotExist)
	}
	if st.Size != int64(len(c.Data)) || st.form() != formFile {
		return false
	}
	old, err := regular.Read(s.root, c.Path)
	return err == nil && bytes.Equal(old, c.Data)
}

// noteWritten updates the model for a file that this process wrote or removed. A status file is decoded again only if its
// entry is made again, which is rare: its writer has the decoded status.
func (s *Store) noteWritten(look *folderCache, p string, data []byte, body any) {
	a, _ := s.layout().classify(p)
	if a == areaLedgers && data != nil {
		body = s.noteLedgerWritten(p, data)
	}
	if s.model == nil {
		return
	}
	if _, asleep := s.model.dormant.owns(p); asleep {
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

// body returns the body of a change that is known without decoding it.
func body(c Change) any {
	if c.Status == nil {
		return nil
	}
	return newLazyStatus(c.Status)
}

// folderCache reads stats of files that are mostly in the same folder, which it keeps open.
type folderCache struct {
	root *os.Root
	path string
	dir  *folder
}

func (n *folderCache) lstat(p string) (stat, error) {
	parent, name := path.Dir(p), path.Base(p)
	if n.dir == nil || n.path != parent {
		n.close()
		d, err := openFolder(n.root, parent)
		if err != nil {
			return stat{}, err
		}
		n.path, n.dir = parent, d
	}
	var st stat
	err := n.dir.stat([]byte(name + "\x00")[:len(name)], &st)
	return st, err
}

func (n *folderCache) close() {
	if n.dir != nil {
		n.dir.close()
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

// Announce notifies the other processes of the tree that this one wrote files by other means than Write, for example
// specs: each scans all files at its next turn, regardless of its hints. It needs no lock.
func (s *Store) Announce() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(s.ensureLocal(tmpDir), s.bumpGeneration()); err != nil {
		return fmt.Errorf("tell of what was written to the tree %s: %w", s.dir, err)
	}
	return nil
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
