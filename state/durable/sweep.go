package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/state/proc"
	"reconcile.dev/reconcile/state/regular"
)

const (
	tempSuffix = ".tmp"
	noteSuffix = ".at" // suffix of a file with the path of a temporary file next to its target

	// abandoned is the age from which on a temporary file of an unknown process is a leftover. A write takes
	// milliseconds.
	abandoned = time.Hour
)

var tempCount atomic.Uint64 // makes names unique within the process

// TempName returns a unique temporary name for a file of this process, which Sweep removes after the process has ended.
func TempName() string { return tempName() }

// tempName returns TAG-PID-START-COUNT.tmp: a unique name that identifies its creator.
func tempName() string {
	id := proc.Self()
	return fmt.Sprintf("%s-%d-%d-%d%s", id.Tag, id.PID, id.Start, tempCount.Add(1), tempSuffix)
}

// tempMaker parses a temporary name.
func tempMaker(name string) (proc.ID, bool) {
	name, _ = strings.CutSuffix(name, noteSuffix)
	name, ok := strings.CutSuffix(name, tempSuffix)
	f := strings.Split(name, "-")
	n := len(f)
	if !ok || n < 4 {
		return proc.ID{}, false
	}
	pid, err := strconv.Atoi(f[n-3])
	start, err2 := strconv.ParseInt(f[n-2], 10, 64)
	tag := strings.Join(f[:n-3], "-") // may contain dashes
	return proc.ID{Tag: tag, PID: pid, Start: start}, err == nil && err2 == nil
}

// Sweep removes leftover temporary files from tmpDir: those of processes that ended, were killed or lost power. Those of
// unknown processes (another container or boot) are removed after an hour. It does not touch other files. It is safe at any
// time, concurrently with any number of writers.
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
		if isLeftover(e, gone) {
			errs = append(errs, w.sweep(path.Join(w.tmp, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// Litter reports whether this process has left temporary files in tmpDir, as where one could not be removed. A folder that
// cannot be read has none.
func Litter(root *os.Root, tmpDir string) bool {
	entries, _ := regular.List(root, tmpDir)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		id, ok := tempMaker(e.Name())
		return ok && id == proc.Self()
	})
}

// isLeftover judges one file by its creator, else by age. It records in gone which creators have ended.
func isLeftover(e fs.DirEntry, gone map[proc.ID]bool) bool {
	id, ok := tempMaker(e.Name())
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

// sweep removes one file of a dead writer, and first the file next to a target that it refers to.
func (w *durableWriter) sweep(name string) error {
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

func (w *durableWriter) sweepBeside(note string) error {
	data, err := regular.Read(w.root, note)
	if err != nil {
		return ignoreMissing(err)
	}
	beside := string(data)
	ours := strings.TrimSuffix(path.Base(note), noteSuffix)
	if _, err := w.vet(beside); err != nil || !strings.HasSuffix(beside, "."+ours) {
		return nil // incomplete, or not written by reconcile
	}
	return ignoreMissing(w.root.Remove(beside))
}
