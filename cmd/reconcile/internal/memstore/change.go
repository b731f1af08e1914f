package memstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/lock"
)

// tmpDir is where new contents are written before they get their names.
const tmpDir = ".reconcile/tmp"

// folding makes the files of an issue of what they are. It may be called several times.
type folding func(file, archive []byte) (memory.Folded, error)

// steals bounds how often a fold begins again because another program took the lock or wrote without it.
const steals = 5

// change changes the files of an issue under the issue's lock, durably. wrote is false when they are as they should be.
// first, which may be nil, is what has to be done before: the files are changed after it returned, and not at all after an
// error of it, but they are written beside it under other names.
func (f *Files) change(ctx context.Context, issue int, first func() error, fold folding) (out memory.Folded, wrote bool, err error) {
	for range steals {
		var now bool
		out, now, err = f.changeOnce(ctx, issue, first, fold)
		wrote = wrote || now
		if !errors.Is(err, lock.ErrStolen) {
			break
		}
	}
	if wrote && err == nil {
		f.wrote(issue, out.File)
	}
	return out, wrote, lostIsBusy(err)
}

func (f *Files) changeOnce(ctx context.Context, issue int, first func() error, fold folding) (out memory.Folded, wrote bool, err error) {
	l, err := f.store.LockFile(ctx, f.issuePath(issue))
	if err != nil {
		return out, false, err
	}
	defer func() { err = errors.Join(err, l.Release()) }()
	file, err := l.Read()
	if err != nil {
		return out, false, err
	}
	archive, err := f.readOrNil(f.archivePath(issue))
	if err != nil {
		return out, false, err
	}
	if out, err = fold(file, archive); err != nil {
		return out, false, fmt.Errorf("fold %s: %w", f.issuePath(issue), err)
	}
	ops := f.changes(issue, file, archive, &out)
	if len(ops) == 0 {
		return out, false, nil
	}
	staged, err := durable.StageAll(f.store.Root(), tmpDir, ops)
	if err != nil {
		return out, false, err
	}
	defer staged.Discard()
	if first != nil {
		err = first()
	}
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		return out, false, err
	}
	f.writes.Add(int64(len(ops)))
	return out, true, staged.Commit()
}

// changes are the files to write. An observation that moves from one file to the other is in both for a moment rather
// than in none: what moves to the archive is written there first, and what comes back is dropped there last.
func (f *Files) changes(issue int, file, archive []byte, out *memory.Folded) []durable.Op {
	var ops []durable.Op
	if !same(archive, out.Archive) {
		ops = append(ops, durable.Op{Path: f.archivePath(issue), Data: out.Archive, Stop: f.dir()})
	}
	if !same(file, out.File) {
		ops = append(ops, durable.Op{Path: f.issuePath(issue), Data: out.File})
	}
	if len(ops) > 1 && losesAny(archive, out.Archived) {
		slices.Reverse(ops)
	}
	return ops
}

// losesAny reports whether an archive has an observation that the next one has not.
func losesAny(archive []byte, next []schemas.Observation) bool {
	was, err := memory.Parse(archive)
	if archive == nil || err != nil {
		return false
	}
	return slices.ContainsFunc(was.Observations, func(o schemas.Observation) bool {
		return !slices.ContainsFunc(next, func(n schemas.Observation) bool { return n.ID == o.ID })
	})
}

// same reports whether two contents are the same; nil is that of no file.
func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// readOrNil reads a file of the memory; nil when there is none.
func (f *Files) readOrNil(p string) ([]byte, error) {
	data, _, err := f.store.ReadFile(p, fileLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, f.noFile(p, err)
}

// noFile makes memory.ErrDamaged of the error of reading what is a link, a folder or the like: it is in the way, and is
// moved aside like a file that cannot be read.
func (f *Files) noFile(p string, err error) error {
	if err == nil {
		return nil
	}
	if id, lost := f.store.LookAt(p); lost != nil || id.IsFile() {
		return err
	}
	return fmt.Errorf("%w: %w", memory.ErrDamaged, err)
}
