package durable

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"reconcile.dev/reconcile/state/regular"
)

// few is up to how many files, or folders, are synced one by one: beyond it, one sync of the file system is quicker.
const few = 16

// Op is one change of a batch.
type Op struct {
	Path string
	Data []byte // nil removes the file; removing a file that does not exist is no error
	// Stop, for a removal, is the folder below which folders that became empty are removed too. When it is empty, no
	// folder is removed.
	Stop string
}

// Apply makes many changes durable for little more than the price of one. Each file is old or new at any moment; the
// batch as a whole is not atomic: changes appear in order, and a crash or an error leaves a first part of them.
// Nothing is changed when one of the new contents cannot be written.
func Apply(root *os.Root, tmpDir string, ops []Op) error {
	s, err := StageAll(root, tmpDir, ops)
	if err != nil {
		return err
	}
	return s.Commit()
}

// Staged are the new contents of a batch, on disk, but not yet in place. Commit puts them in place; Discard drops them.
// One of the two must be called.
type Staged struct {
	w     *writer
	ops   []Op
	temps []string // of each of ops; "" for removals
}

// StageAll does the first half of Apply: it writes and syncs the new contents, and changes nothing.
func StageAll(root *os.Root, tmpDir string, ops []Op) (*Staged, error) {
	s := Begin(root, tmpDir)
	many := len(ops) > few && canSyncTree
	var err error
	for i := 0; i < len(ops) && err == nil; i++ {
		err = s.add(ops[i], !many)
	}
	if err == nil && many {
		err = s.Sync()
	}
	if err != nil {
		s.Discard()
		return nil, err
	}
	return s, nil
}

// Begin starts a batch that grows by Add. Before Commit it must be synced.
func Begin(root *os.Root, tmpDir string) *Staged { return &Staged{w: newWriter(root, tmpDir)} }

// Add writes the new content of one more file, and syncs nothing. After an error the batch is what it was.
func (s *Staged) Add(op Op) error { return s.add(op, false) }

func (s *Staged) add(op Op, sync bool) error {
	temp := ""
	if op.Data == nil {
		if _, err := s.w.vet(op.Path); err != nil {
			return fail("remove", op.Path, err)
		}
	} else {
		var err error
		if temp, err = s.w.stage(op.Path, whole(op.Data), sync); err != nil {
			return err
		}
		s.w.temps = append(s.w.temps, temp)
	}
	s.ops, s.temps = append(s.ops, op), append(s.temps, temp)
	return nil
}

// Sync makes the contents durable. What was known of the folders is forgotten: it may be some time since the first of
// them was written.
func (s *Staged) Sync() error {
	s.w.forget()
	if len(s.w.temps) == 0 {
		return nil
	}
	if len(s.w.temps) > few && canSyncTree {
		return s.w.syncTemps()
	}
	return s.w.syncEach()
}

// Commit renames the contents into place, removes what is to be removed, and syncs the folders. After an error what was
// not changed yet is as it was.
func (s *Staged) Commit() error {
	err := s.w.perform(s.ops, s.temps)
	if err == nil {
		s.w.temps = nil
	}
	err = errors.Join(err, s.w.syncDirs())
	s.Discard()
	return err
}

// Discard removes the temporary files. After Commit it does nothing.
func (s *Staged) Discard() {
	for _, temp := range s.w.temps {
		_ = s.w.root.Remove(temp)
	}
	s.w.temps = nil
	s.w.folders.close()
}

// syncTemps syncs the whole file system, or, where it refuses, every temporary file.
func (w *writer) syncTemps() error {
	err := syncTree(w.root, w.tmp)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return w.syncEach()
}

func (w *writer) syncEach() error {
	for _, temp := range w.temps {
		if err := syncFile(w.root, temp); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) perform(ops []Op, temps []string) error {
	for i, op := range ops {
		var err error
		if op.Data == nil {
			err = w.remove(op)
		} else {
			err = w.place(op.Path, temps[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) remove(op Op) error {
	err := w.root.Remove(op.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail("remove", op.Path, err)
	}
	w.touch(path.Dir(op.Path))
	if op.Stop == "" {
		return nil
	}
	if err := w.prune(path.Dir(op.Path), path.Clean(op.Stop)); err != nil {
		return fail("remove the folder of", op.Path, err)
	}
	return nil
}

func syncFile(root *os.Root, name string) error {
	f, _, err := regular.OpenFile(root, name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
