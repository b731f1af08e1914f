package durable

import (
	"errors"
	"os"

	"reconcile.dev/reconcile/state/regular"
)

// few is the maximum number of files, or folders, that are synced individually: for more, one sync of the file system is
// faster.
const few = 16

// Op is one change of a batch.
type Op struct {
	Path string
	Data []byte // nil removes the file; a missing file is not an error
	// Stop, for a removal, is the folder below which folders that became empty are also removed. If it is empty, no
	// folder is removed.
	Stop string
}

// Apply stages and commits a batch of ops below root: it makes many changes durable for little more than the cost of one.
// Each file has its old or new content at any moment; the batch as a whole is not atomic: changes appear in order, and a
// crash or an error leaves a prefix of them. If one of the new contents cannot be written, nothing is changed.
func Apply(root *os.Root, tmpDir string, ops []Op) error {
	s, err := StageAll(root, tmpDir, ops)
	if err != nil {
		return err
	}
	return s.Commit()
}

// Staged holds the new contents of a batch on disk, not yet in place. Commit puts them in place; Discard removes them.
// The caller must call one of the two.
type Staged struct {
	w     *durableWriter
	ops   []Op
	temps []string // one for each of ops; "" for removals
}

// StageAll stages all ops in one batch: it writes and syncs their new contents, and changes no target. It is the first half
// of Apply.
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

// Begin returns an empty staged batch for changes below root, with its temporary files in tmpDir. It grows by Add. Before
// Commit it must be synced.
func Begin(root *os.Root, tmpDir string) *Staged { return &Staged{w: newWriter(root, tmpDir)} }

// Add stages one more op in the batch: it writes the op's new content to a temporary file, without a sync. After an error
// the batch is unchanged.
func (s *Staged) Add(op Op) error { return s.add(op, false) }

func (s *Staged) add(op Op, sync bool) error {
	temp := ""
	if op.Data == nil {
		if _, err := s.w.vet(op.Path); err != nil {
			return fail("remove", op.Path, err)
		}
	} else {
		var err error
		if temp, err = s.w.stage(op.Path, wholeWrite(op.Data), sync); err != nil {
			return err
		}
		s.w.temps = append(s.w.temps, temp)
	}
	s.ops, s.temps = append(s.ops, op), append(s.temps, temp)
	return nil
}

// Sync syncs the temporary files of the staged batch, each or all at once if they are many, so that their contents are
// durable. It drops the cached state of the folders, which may be out of date by now.
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

// Commit performs the staged batch: it renames the staged files into place, removes the files of removals, and syncs the
// folders. After an error the remaining files are unchanged.
func (s *Staged) Commit() error {
	err := s.w.perform(s.ops, s.temps)
	if err == nil {
		s.w.temps = nil
	}
	err = errors.Join(err, s.w.syncDirs())
	s.Discard()
	return err
}

// Discard removes the temporary files of the staged batch, and closes its folders. After Commit it does nothing.
func (s *Staged) Discard() {
	for _, temp := range s.w.temps {
		_ = s.w.root.Remove(temp)
	}
	s.w.temps = nil
	s.w.folders.close()
}

// syncTemps syncs the whole file system, or, if it does not support that, every temporary file.
func (w *durableWriter) syncTemps() error {
	err := syncTree(w.root, w.tmp)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return w.syncEach()
}

func (w *durableWriter) syncEach() error {
	for _, temp := range w.temps {
		if err := syncFile(w.root, temp); err != nil {
			return err
		}
	}
	return nil
}

func (w *durableWriter) perform(ops []Op, temps []string) error {
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

func syncFile(root *os.Root, name string) error {
	f, _, err := regular.OpenFile(root, name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Stage is StageAll for one file; nil data is an empty one.
func Stage(root *os.Root, tmpDir, path string, data []byte) (*Staged, error) {
	if data == nil {
		data = []byte{}
	}
	return StageAll(root, tmpDir, []Op{{Path: path, Data: data}})
}
