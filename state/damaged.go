package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"syscall"

	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// DamagedState is the Code of problems of files that MoveAside would move.
const DamagedState = "damaged-state"

// RejectedRecordCode is the Code of problems of unusable records in a ledger that is otherwise usable.
const RejectedRecordCode = "rejected-record"

// MoveAside moves every unusable file under state/ to .reconcile/damaged/, so that its content is decided again,
// and returns their paths, sorted. The tree must be locked by this store. Refresh reports the objects.
//
// Ledgers are checked again under their own lock: one that another program was just writing is not moved, and is read
// again by the next Refresh with a hint for it. A ledger that is moved is replaced by the result of salvage, unless
// that is nil.
func (s *Store) MoveAside(ctx context.Context, salvage func(damaged []byte, issue int) []byte) ([]string, error) {
	if err := s.loadDeferred(ctx); err != nil {
		return nil, err
	}
	bad := s.damagedFiles()
	if len(bad) == 0 {
		return nil, nil
	}
	var moved []string
	for _, p := range bad {
		var err error
		if _, ref := s.layout().classify(p); ref.Kind == LedgerKind {
			still := func(data []byte) bool {
				_, damaged := decodeLedgerFile(p, data).(*damage)
				return damaged
			}
			issue, _ := LedgerIssue(ref)
			instead := func(damaged []byte) []byte { return salvage(damaged, issue) }
			if moved, err = s.setAside(ctx, p, still, instead, moved); err != nil {
				return moved, err
			}
			continue
		}
		if err := s.moveFileAside(ctx, p); err != nil {
			return moved, err
		}
		moved = append(moved, p)
	}
	return moved, nil
}

// damagedFiles returns the paths of the unusable files, sorted.
func (s *Store) damagedFiles() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil {
		return nil
	}
	var bad []string
	for p, f := range s.model.files {
		if _, ok := f.body.(*damage); ok {
			bad = append(bad, p)
		}
	}
	slices.Sort(bad)
	return bad
}

// SetAside moves a file that third-party programs also write to .reconcile/damaged/, if it is still damaged under its
// lock. The result of instead replaces it, unless that is nil; instead itself may be nil. The tree must be locked by this
// store.
func (s *Store) SetAside(ctx context.Context, p string, damaged func(data []byte) bool,
	instead func(data []byte) []byte) error {
	_, err := s.setAside(ctx, p, damaged, instead, nil)
	return err
}

// setAside is SetAside; it appends the moved path to moved.
func (s *Store) setAside(ctx context.Context, p string, damaged func([]byte) bool, instead func([]byte) []byte,
	moved []string) ([]string, error) {
	if err := s.ensureLocal(tmpDir); err != nil {
		return moved, err
	}
	l, err := s.acquire(ctx, p, s.lockOptions())
	if err != nil {
		return moved, fmt.Errorf("set %s aside: %w", p, err)
	}
	data, err := s.readOrNil(p)
	if err != nil || data != nil && damaged(data) {
		var next []byte
		if err == nil && instead != nil {
			next = instead(data)
		}
		if next != nil {
			err = s.replaceDamaged(ctx, p, data, next)
		} else {
			err = s.moveFileAside(ctx, p)
		}
		if err == nil {
			moved = append(moved, p)
		}
	} else {
		s.mu.Lock()
		s.forgetFile(p)
		s.mu.Unlock()
	}
	if err := errors.Join(err, l.Release()); err != nil {
		return moved, fmt.Errorf("set %s aside: %w", p, err)
	}
	return moved, nil
}

// moveFileAside moves one file to .reconcile/damaged/.
func (s *Store) moveFileAside(ctx context.Context, p string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	return errors.Join(s.renameAside(p), s.bumpGeneration())
}

// MoveTornAside moves partly written outputs of killed runs to .reconcile/damaged/, and returns the paths: half of a file
// must not count as an output, nor as an edit by a person. No process of the runs may be alive, and the tree must be
// locked by this store.
func (s *Store) MoveTornAside(ctx context.Context, orphans []Orphan) (moved []string, err error) {
	for _, o := range orphans {
		for _, p := range o.Again {
			if _, err := s.root.Lstat(p); err != nil {
				continue
			}
			if err := s.moveFileAside(ctx, p); err != nil {
				return moved, err
			}
			moved = append(moved, p)
		}
	}
	return moved, nil
}

// replaceDamaged copies a damaged file to .reconcile/damaged/ and then replaces it by next: an interruption at any point
// loses nothing.
func (s *Store) replaceDamaged(ctx context.Context, p string, damaged, next []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	if err := durable.WriteFile(s.root, tmpDir, s.unusedAsidePath(p), damaged); err != nil {
		return err
	}
	if err := durable.WriteFile(s.root, tmpDir, p, next); err != nil {
		return err
	}
	look := folderCache{root: s.root}
	defer look.close()
	s.noteWritten(&look, p, next, nil)
	if s.model != nil {
		_, ref := s.layout().classify(p)
		s.moved = append(s.moved, ref)
	}
	return s.bumpGeneration()
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
		return errors.Join(syncFolder(s.root, path.Dir(to)), syncFolder(s.root, path.Dir(p)))
	}
	if s.model.drop(p) != nil || s.model.scanErrors[p] != (scanError{}) {
		delete(s.model.scanErrors, p)
		_, ref := s.layout().classify(p)
		s.moved = append(s.moved, ref)
	}
	return errors.Join(syncFolder(s.root, path.Dir(to)), syncFolder(s.root, path.Dir(p)))
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

// clearPath moves a damaged file, or anything that is not a file, away from a path.
func (s *Store) clearPath(p string) error {
	if st, err := lstat(s.root, p); err == nil && st.form() != formFile {
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
