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
)

// DamagedState is the Code of the problems of files that MoveAside would move.
const DamagedState = "damaged-state"

// MoveAside moves every file under state/ that cannot be used to .reconcile/damaged/, so that it is decided again what
// belongs there, and returns their paths, sorted. The tree must be locked by this store. Refresh reports the objects.
func (s *Store) MoveAside(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil {
		return nil, nil
	}
	var bad []string
	for p, f := range s.model.files {
		if _, ok := f.body.(*damage); ok {
			bad = append(bad, p)
		}
	}
	if len(bad) == 0 {
		return nil, nil
	}
	slices.Sort(bad)
	if err := s.mayWrite(ctx); err != nil {
		return nil, err
	}
	for _, p := range bad {
		if err := s.moveAside(p); err != nil {
			return nil, err
		}
	}
	return bad, s.bump()
}

// SetAside moves one file that its owner cannot make sense of to .reconcile/damaged/. The tree must be locked by this
// store.
func (s *Store) SetAside(ctx context.Context, p string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	return errors.Join(s.moveAside(p), s.bump())
}

// moveAside renames a file to .reconcile/damaged/<path>.<n>, durably.
func (s *Store) moveAside(p string) error {
	to := damagedDir + "/" + p
	if err := s.root.MkdirAll(path.Dir(to), 0o755); err != nil {
		return fmt.Errorf("set %s aside: %w", p, err)
	}
	for n := 1; ; n++ {
		free := to + "." + strconv.Itoa(n)
		if _, err := s.root.Lstat(free); err == nil {
			continue
		}
		err := s.root.Rename(p, free)
		if errors.Is(err, syscall.EXDEV) {
			err = s.carry(p, free)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set %s aside: %w", p, err)
		}
		break
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
	data, err := s.root.ReadFile(from)
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
		if _, bad := f.body.(*damage); !bad {
			return nil
		}
	} else if t == (trouble{}) {
		return nil
	}
	return s.moveAside(p)
}
