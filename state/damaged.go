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

// DamagedState is the Code of the problems of files that MoveAside would move.
const DamagedState = "damaged-state"

// RejectedRecordCode is the Code of the problems of records of a ledger that cannot be used, while the others can.
const RejectedRecordCode = "rejected-record"

// MoveAside moves every file under state/ that cannot be used to .reconcile/damaged/, so that it is decided again what
// belongs there, and returns their paths, sorted. The tree must be locked by this store. Refresh reports the objects.
//
// Ledgers are looked at again under their own lock: one that another program was just writing is not moved, and is read
// again by the next Refresh that is hinted at it. In the place of one that is moved comes what salvage makes of it, if
// that is not nil.
func (s *Store) MoveAside(ctx context.Context, salvage func(damaged []byte, issue int) []byte) ([]string, error) {
	if err := s.whole(ctx); err != nil {
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
		if err := s.putAside(ctx, p); err != nil {
			return moved, err
		}
		moved = append(moved, p)
	}
	return moved, nil
}

// damagedFiles are the paths of what cannot be used, sorted.
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

// SetAside moves a file that programs of other makes write, too, to .reconcile/damaged/, if under its lock it still is
// one that its owner can make nothing of. In its place comes what instead makes of it, if that is not nil; instead may be
// nil itself. The tree must be locked by this store.
func (s *Store) SetAside(ctx context.Context, p string, damaged func(data []byte) bool,
	instead func(data []byte) []byte) error {
	_, err := s.setAside(ctx, p, damaged, instead, nil)
	return err
}

// setAside is SetAside; it appends to moved what was moved.
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
			err = s.exchange(ctx, p, data, next)
		} else {
			err = s.putAside(ctx, p)
		}
		if err == nil {
			moved = append(moved, p)
		}
	} else {
		s.mu.Lock()
		s.unknown(p)
		s.mu.Unlock()
	}
	if err := errors.Join(err, l.Release()); err != nil {
		return moved, fmt.Errorf("set %s aside: %w", p, err)
	}
	return moved, nil
}

// putAside moves one file to .reconcile/damaged/.
func (s *Store) putAside(ctx context.Context, p string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	return errors.Join(s.moveAside(p), s.bump())
}

// MoveTornAside moves to .reconcile/damaged/ what the killed runs left of the outputs that they were making again, and
// returns the paths: half of a file must not count as an output, nor as what a person made of it. Nothing of the runs may
// be alive, and the tree must be locked by this store.
func (s *Store) MoveTornAside(ctx context.Context, orphans []Orphan) (moved []string, err error) {
	for _, o := range orphans {
		for _, p := range o.Again {
			if _, err := s.root.Lstat(p); err != nil {
				continue
			}
			if err := s.putAside(ctx, p); err != nil {
				return moved, err
			}
			moved = append(moved, p)
		}
	}
	return moved, nil
}

// exchange puts next in the place of a damaged file, of which a copy is in .reconcile/damaged/ first: whenever this is
// interrupted, nothing is lost.
func (s *Store) exchange(ctx context.Context, p string, damaged, next []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	if err := durable.WriteFile(s.root, tmpDir, s.freeAside(p), damaged); err != nil {
		return err
	}
	if err := durable.WriteFile(s.root, tmpDir, p, next); err != nil {
		return err
	}
	look := nearby{root: s.root}
	defer look.close()
	s.wrote(&look, p, next, nil)
	if s.model != nil {
		_, ref := s.layout().classify(p)
		s.moved = append(s.moved, ref)
	}
	return s.bump()
}

// freeAside is the first path for p below .reconcile/damaged/ that nothing has yet.
func (s *Store) freeAside(p string) string {
	for n := 1; ; n++ {
		free := damagedDir + "/" + p + "." + strconv.Itoa(n)
		if _, err := s.root.Lstat(free); err != nil {
			return free
		}
	}
}

// moveAside renames a file to .reconcile/damaged/<path>.<n>, durably.
func (s *Store) moveAside(p string) error {
	to := damagedDir + "/" + p
	if err := s.root.MkdirAll(path.Dir(to), 0o755); err != nil {
		return fmt.Errorf("set %s aside: %w", p, err)
	}
	free := s.freeAside(p)
	err := s.root.Rename(p, free)
	if errors.Is(err, syscall.EXDEV) {
		err = s.carry(p, free)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set %s aside: %w", p, err)
	}
	if s.model == nil {
		return errors.Join(syncFolder(s.root, path.Dir(to)), syncFolder(s.root, path.Dir(p)))
	}
	if s.model.drop(p) != nil || s.model.troubles[p] != (trouble{}) {
		delete(s.model.troubles, p)
		_, ref := s.layout().classify(p)
		s.moved = append(s.moved, ref)
	}
	return errors.Join(syncFolder(s.root, path.Dir(to)), syncFolder(s.root, path.Dir(p)))
}

// carry moves a file to another file system, as a copy that is durable before the original goes.
func (s *Store) carry(from, to string) error {
	data, err := regular.Read(s.root, from)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(s.root, tmpDir, to, data); err != nil {
		return err
	}
	return s.root.Remove(from)
}

// clear moves what is damaged at a path, or no file at all, out of the way.
func (s *Store) clear(p string) error {
	if st, err := lstat(s.root, p); err == nil && st.form() != formFile {
		return s.moveAside(p)
	}
	if s.model == nil {
		return nil
	}
	f, t := s.model.files[p], s.model.troubles[p]
	if f != nil {
		if _, bad := f.body.(*damage); !bad && !f.unread() {
			return nil
		}
		if h, ok := f.body.(*heldRun); ok && h.known() != nil {
			return nil
		}
	} else if t == (trouble{}) {
		return nil
	}
	return s.moveAside(p)
}
