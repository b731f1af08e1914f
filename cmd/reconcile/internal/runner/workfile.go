package runner

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// workFiles manages the files that runs read. The file of an ended run is reused for a later one, with another name and
// content: on some file systems creating and removing a file costs more than everything else around a quick command.
type workFiles struct {
	root *os.Root // the tree

	mu    sync.Mutex // guards the fields below
	dir   *os.Root   // state.WorkDir; nil until there is a spare
	spare []*workFile
}

// workFile is such a file.
type workFile struct {
	file *os.File
	name string // in state.WorkDir
}

// write creates a file in state.WorkDir.
func (w *workFiles) write(name string, data []byte) (*workFile, error) {
	if f := w.again(name, data); f != nil {
		return f, nil
	}
	if err := w.root.MkdirAll(state.WorkDir, 0o755); err != nil {
		return nil, err
	}
	file, _, err := regular.OpenFile(w.root, path.Join(state.WorkDir, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	f := &workFile{file, name}
	if _, err := file.WriteAt(data, 0); err != nil {
		return nil, errors.Join(err, w.remove(f))
	}
	return f, nil
}

// again uses a spare file; nil if none is usable.
func (w *workFiles) again(name string, data []byte) *workFile {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.spare) == 0 {
		return nil
	}
	f := w.spare[len(w.spare)-1]
	w.spare = w.spare[:len(w.spare)-1]
	_, err := f.file.WriteAt(data, 0)
	if err == nil {
		err = f.file.Truncate(int64(len(data)))
	}
	if err == nil {
		err = w.dir.Rename(f.name, name)
	}
	if err != nil || !w.named(f, name) {
		_ = w.remove(f) // a new file reports the error, if any
		return nil
	}
	f.name = name
	return f
}

// release takes a file back from an ended run. It is reused only if no process can still have it: the run may have moved
// it, or created links to it.
func (w *workFiles) release(f *workFile) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == nil {
		w.dir, _ = w.root.OpenRoot(state.WorkDir) // otherwise the file is removed
	}
	if spare := durable.TempName(); w.named(f, f.name) && w.dir.Rename(f.name, spare) == nil {
		f.name = spare
		w.spare = append(w.spare, f)
		return nil
	}
	return w.remove(f)
}

// named reports whether a file has this name, and no other.
func (w *workFiles) named(f *workFile, name string) bool {
	if w.dir == nil {
		return false
	}
	is, err := f.file.Stat()
	if err != nil || !onlyName(is) {
		return false
	}
	there, err := w.dir.Lstat(name)
	return err == nil && os.SameFile(is, there)
}

func (w *workFiles) remove(f *workFile) error {
	_ = f.file.Close()
	return removeIfThere(w.root, path.Join(state.WorkDir, f.name))
}

// close removes the spare files.
func (w *workFiles) close() (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.spare {
		err = errors.Join(err, w.remove(f))
	}
	w.spare = nil
	if w.dir != nil {
		err = errors.Join(err, w.dir.Close())
		w.dir = nil
	}
	return err
}

// writeWork writes a file for a run.
func (a *attempt) writeWork(name string, data []byte) error {
	f, err := a.runner.files.write(name, data)
	if err == nil {
		a.work = append(a.work, f)
	}
	return err
}

// removeWorkOf removes the files of the run with that key. That with its token stays until it is on record that the run began.
func (r *Runner) removeWorkOf(key string) (err error) {
	for _, name := range []string{needsName(key), memoryName(key)} {
		err = errors.Join(err, removeIfThere(r.root, path.Join(state.WorkDir, name)))
	}
	return errors.Join(err, removeTree(r.root, path.Join(state.WorkDir, scratchName(key))))
}

func removeIfThere(root *os.Root, p string) error {
	err := root.Remove(p)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

func (a *attempt) removeWork() {
	for _, f := range a.work {
		if a.runner.files.release(f) != nil {
			a.runner.leave(a.job.effect.Key)
		}
	}
	a.work = nil
}

// leave records a file of a key that could not be removed; Close tries again.
func (r *Runner) leave(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leftovers = append(r.leftovers, key)
}

func (r *Runner) removeLeftovers() error {
	err := errors.Join(r.files.close(), r.removeSessions(), r.sweepPrograms(programsAge, programsBytes))
	for _, key := range r.leftovers {
		err = errors.Join(err, r.removeWorkOf(key), removeIfThere(r.root, state.TokenFile(key)))
	}
	return err
}
