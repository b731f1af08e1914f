package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/state/proc"
	"reconcile.dev/reconcile/state/regular"
)

const (
	tempSuffix = ".tmp"
	noteSuffix = ".at" // of a file that holds the path of a temporary file beside its target

	// abandoned is the age after which the temporary file of a process that we cannot judge is litter. A write takes
	// milliseconds.
	abandoned = time.Hour
)

var tempCount atomic.Uint64 // makes names unique within the process

// TempName is a name that nobody else uses, for a file that Sweep is to remove once this process has ended.
func TempName() string { return tempName() }

// tempName is TAG-PID-START-COUNT.tmp: a name that no other process or call uses, and that tells its maker.
func tempName() string {
	id := proc.Self()
	return fmt.Sprintf("%s-%d-%d-%d%s", id.Tag, id.PID, id.Start, tempCount.Add(1), tempSuffix)
}

// maker reads a temporary name back.
func maker(name string) (proc.ID, bool) {
	name, _ = strings.CutSuffix(name, noteSuffix)
	name, ok := strings.CutSuffix(name, tempSuffix)
	f := strings.Split(name, "-")
	n := len(f)
	if !ok || n < 4 {
		return proc.ID{}, false
	}
	pid, err := strconv.Atoi(f[n-3])
	start, err2 := strconv.ParseInt(f[n-2], 10, 64)
	tag := strings.Join(f[:n-3], "-") // may have dashes itself
	return proc.ID{Tag: tag, PID: pid, Start: start}, err == nil && err2 == nil
}

// Sweep removes the temporary files of processes that ended, whether they were killed or lost power. Those of a
// process that cannot be judged (another container or boot) go after an hour. Other files are left alone. It may run at any time, beside any number of writers.
func Sweep(root *os.Root, tmpDir string) error {
	w := newWriter(root, tmpDir)
	if err := w.vetDir(w.tmp); err != nil {
		return fail("sweep", tmpDir, err)
	}
	entries, err := regular.List(root, w.tmp)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail("sweep", tmpDir, err)
	}
	var errs []error
	gone := map[proc.ID]bool{}
	for _, e := range entries {
		if litter(e, gone) {
			errs = append(errs, w.sweep(path.Join(w.tmp, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// litter judges one file by its maker, else by age. It remembers in gone which makers are gone.
func litter(e fs.DirEntry, gone map[proc.ID]bool) bool {
	id, ok := maker(e.Name())
	if !ok || !e.Type().IsRegular() {
		return false
	}
	if id.Tag == proc.Self().Tag && id.Tag != "" {
		is, known := gone[id]
		if !known {
			is = id.Gone()
			gone[id] = is
		}
		return is
	}
	fi, err := e.Info()
	return err == nil && time.Since(fi.ModTime()) > abandoned
}

// sweep removes one file of a dead writer, and first the one beside a target that it is a note of.
func (w *writer) sweep(name string) error {
	if strings.HasSuffix(name, noteSuffix) {
		if err := w.sweepBeside(name); err != nil {
			return err
		}
	}
	if err := w.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail("remove", name, err)
	}
	return nil
}

func (w *writer) sweepBeside(note string) error {
	data, err := regular.Read(w.root, note)
	if err != nil {
		return ignoreMissing(err)
	}
	beside := string(data)
	ours := strings.TrimSuffix(path.Base(note), noteSuffix)
	if _, err := w.vet(beside); err != nil || !strings.HasSuffix(beside, "."+ours) {
		return nil // torn, or not written by us
	}
	return ignoreMissing(w.root.Remove(beside))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
