package state

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/state/durable"
)

// MoveAside moves every damaged file under state/ aside, to .reconcile/damaged/, so that its content is decided again, and
// returns the moved paths, sorted. The tree must be locked by this store. Refresh reports the objects.
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

// SetAside sets the file at p aside, to .reconcile/damaged/, if damaged is still true for its data under its lock.
// Third-party programs also write the file. The result of instead replaces it, unless that is nil; instead itself may be
// nil. The tree must be locked by this store.
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

// MoveTornAside moves the partly written outputs of killed runs, the orphans, to .reconcile/damaged/, and returns the moved
// paths. Half of a file must not count as an output, nor as an edit by a person. No process of the runs may be alive, and
// the tree must be locked by this store.
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
