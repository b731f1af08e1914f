package durable

import (
	"errors"
	"io/fs"
	"os"
	"path"
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

// Staged are the new contents of a batch, on disk and synced, but not yet in place.
type Staged struct {
	w     *writer
	ops   []Op
	temps []string // of each of ops; "" for removals
}

// StageAll does the first half of Apply: it writes and syncs the new contents, and changes nothing. Commit puts them in
// place; Discard drops them. One of the two must be called.
func StageAll(root *os.Root, tmpDir string, ops []Op) (*Staged, error) {
	w := newWriter(root, tmpDir)
	temps, err := w.stageAll(ops)
	s := &Staged{w, ops, temps}
	if err != nil {
		s.Discard()
		return nil, err
	}
	return s, nil
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

// stageAll writes and syncs all new contents and returns their temporary names, "" for removals.
func (w *writer) stageAll(ops []Op) ([]string, error) {
	temps := make([]string, len(ops))
	many := len(ops) > few && canSyncTree
	for i, op := range ops {
		if op.Data == nil {
			if _, err := w.vet(op.Path); err != nil {
				return nil, fail("remove", op.Path, err)
			}
			continue
		}
		temp, err := w.stage(op.Path, whole(op.Data), !many)
		if err != nil {
			return nil, err
		}
		temps[i] = temp
		w.temps = append(w.temps, temp)
	}
	if many && len(w.temps) > 0 {
		return temps, w.syncTemps()
	}
	return temps, nil
}

// syncTemps syncs the whole file system, or, where it refuses, every temporary file.
func (w *writer) syncTemps() error {
	err := syncTree(w.root, w.tmp)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
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
	f, err := root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
