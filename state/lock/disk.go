package lock

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/filelock"
	"reconcile.dev/reconcile/state/proc"
	"reconcile.dev/reconcile/state/regular"
)

// osDisk is the disk of the protocol below an os.Root. It keeps the folder of F open, so that each step is one short
// call.
type osDisk struct {
	root *os.Root
	path string   // of F below root
	dir  *os.Root // the folder of F
	base string
	o    Options
}

func openDisk(root *os.Root, p string, o Options) (*osDisk, error) {
	if !fs.ValidPath(p) || p == "." || strings.HasSuffix(p, ".lock") {
		return nil, fmt.Errorf("%w: not the clean path of a file below the root", fs.ErrInvalid)
	}
	dir, err := descend(root, path.Dir(p))
	if err != nil {
		return nil, err
	}
	return &osDisk{root: root, path: p, dir: dir, base: path.Base(p), o: o}, nil
}

// descend opens a folder, and makes it if missing, without following a symbolic link.
func descend(root *os.Root, dir string) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	if dir == "." || err != nil {
		return at, err
	}
	for part := range strings.SplitSeq(dir, "/") {
		next, err := step(at, part)
		_ = at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func (d *osDisk) close() { _ = d.dir.Close() }

func (d *osDisk) name(r role) string {
	switch r {
	case newFile:
		return d.base + ".new.lock"
	case reapFile:
		return d.base + ".reap.lock"
	}
	return d.base + ".lock"
}

func (d *osDisk) self() proc.ID          { return proc.Self() }
func (d *osDisk) gone(id proc.ID) bool   { return id.Gone() }
func (d *osDisk) remove(r role) error    { return d.dir.Remove(d.name(r)) }
func (d *osDisk) link(a, b role) error   { return d.dir.Link(d.name(a), d.name(b)) }
func (d *osDisk) rename(a, b role) error { return d.dir.Rename(d.name(a), d.name(b)) }

func (d *osDisk) create(r role, data []byte) (file, error) {
	f, err := d.dir.OpenFile(d.name(r), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(data)
	if err == nil {
		var l *osFile
		if l, err = wrap(f); err == nil {
			return l, nil
		}
	}
	_ = f.Close()
	_ = d.remove(r)
	return nil, err
}

func (d *osDisk) open(r role) (file, error) {
	f, err := openRegular(d.dir, d.name(r))
	if err != nil {
		return nil, err
	}
	l, err := wrap(f)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return l, nil
}

func (d *osDisk) same(f file, r role) (bool, error) {
	fi, err := d.dir.Lstat(d.name(r))
	if err != nil {
		return false, ignore(err, fs.ErrNotExist)
	}
	return os.SameFile(f.(*osFile).fi, fi), nil
}

func (d *osDisk) read() ([]byte, error) {
	f, err := openRegular(d.dir, d.base)
	if err != nil {
		return nil, ignore(err, fs.ErrNotExist)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(make([]byte, 0, min(fi.Size(), maxPrealloc)+bytes.MinRead)) // not nil: the file exists
	if _, err := b.ReadFrom(f); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// maxPrealloc bounds the memory that is allocated for a file by its reported size.
const maxPrealloc = 16 << 20

func (d *osDisk) stage(data []byte) (staged, error) {
	return durable.Stage(d.root, d.o.TmpDir, d.path, data)
}

// openRegular opens a regular file for reading, without blocking or following links.
func openRegular(dir *os.Root, name string) (*os.File, error) {
	fi, err := dir.Lstat(name)
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is not a regular file: move it away", fs.ErrInvalid, name)
	}
	if err != nil {
		return nil, err
	}
	f, _, err := regular.Open(dir, name)
	return f, err
}

// osFile is an open lock file, with its stat at the time of opening.
type osFile struct {
	f  *os.File
	fi fs.FileInfo
}

func (f *osFile) modified() time.Time { return f.fi.ModTime() }
func (f *osFile) close()              { _ = f.f.Close() }

func (f *osFile) content() []byte {
	data, err := io.ReadAll(io.NewSectionReader(f.f, 0, maxBody))
	if err != nil {
		return nil
	}
	return data
}

func (f *osFile) writeAt(data []byte, offset int64) error {
	_, err := f.f.WriteAt(data, offset)
	return err
}

// lockGuard opens and locks G. If G was deleted meanwhile, the locked file is no longer the guard.
func (d *osDisk) lockGuard(ctx context.Context, budget time.Duration) (guard, error) {
	dir, err := descend(d.root, d.o.Dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	name := guardName(d.path)
	for {
		f, _, err := regular.OpenFile(dir, name, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		l, err := waitLock(ctx, f, budget)
		if errors.Is(err, filelock.ErrReplaced) {
			continue
		}
		if err != nil {
			return nil, err
		}
		mine, err := f.Stat()
		now, err2 := dir.Lstat(name)
		if err == nil && err2 == nil && os.SameFile(mine, now) {
			return &osGuard{f, l}, nil
		}
		(&osGuard{f, l}).unlock()
		if err := errors.Join(err, ignore(err2, fs.ErrNotExist)); err != nil {
			return nil, err
		}
	}
}

// waitLock locks f, and closes it if that fails. A wait in the kernel cannot be canceled: it continues in the background,
// and releases the lock as soon as it has it.
func waitLock(ctx context.Context, f *os.File, budget time.Duration) (*flock.Flock, error) {
	l, err := filelock.Try(f)
	switch {
	case err != nil:
		_ = f.Close()
		return nil, err
	case l != nil:
		return l, nil
	}
	type result struct {
		l   *flock.Flock
		err error
	}
	done := make(chan result, 1)
	go func() {
		l, err := filelock.Wait(f)
		done <- result{l, err}
	}()
	limit := time.NewTimer(budget)
	defer limit.Stop()
	var cause error
	select {
	case r := <-done:
		if r.err != nil {
			_ = f.Close()
		}
		return r.l, r.err
	case <-ctx.Done():
		cause = ctx.Err()
	case <-limit.C:
		cause = ErrBusy
	}
	go func() {
		if r := <-done; r.err == nil {
			_ = r.l.Unlock()
		}
		_ = f.Close()
	}()
	return nil, cause
}

// osGuard is a locked G.
type osGuard struct {
	f *os.File
	l *flock.Flock
}

func (g *osGuard) unlock() {
	_ = g.f.Close()
	_ = g.l.Unlock()
}

func (g *osGuard) note() string {
	data, err := io.ReadAll(io.NewSectionReader(g.f, 0, maxBody))
	if err != nil {
		return ""
	}
	return string(data)
}

// setNote may fail: then the age of the lock in the note is found out later.
func (g *osGuard) setNote(s string) {
	if g.f.Truncate(0) == nil {
		_, _ = g.f.WriteAt([]byte(s), 0)
	}
}

// guardName derives a file name from a path: readable, and different for different paths.
func guardName(p string) string {
	name := strings.NewReplacer("%", "%25", "+", "%2B", "/", "+").Replace(p)
	if len(name) > 150 {
		name = fmt.Sprintf("%s-%x", path.Base(p)[:min(50, len(path.Base(p)))], sha256.Sum256([]byte(p)))
	}
	return name + ".guard"
}
