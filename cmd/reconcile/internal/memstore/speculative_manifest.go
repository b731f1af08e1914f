package memstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
)

// speculativeManifest is the expected next manifest of a capture into one issue. The manifest of a large store has many
// megabytes, and reading, checking and writing it takes longer than the rest of a capture: so this runs concurrently,
// without a lock. Under the lock, place checks that the expectation holds, and then only renames it; otherwise it is
// dropped, and putIntoManifest changes the manifest. Correctness does not depend on it: it is written with the lines that
// the issue will likely have, and they are compared with the actual ones.
//
// Its methods may be called on nil. They are for one goroutine at a time; the last call must be close.
type speculativeManifest struct {
	files *Files
	issue int

	read  chan struct{} // closed when was, id and basis are set
	was   []byte        // the manifest, in the buffer of takeRoom
	id    state.Identity
	basis *manifestState // nil: the manifest is not the recorded one

	lines   []schemas.ObservationIndex // of the issue
	written chan struct{}              // closed when next and hash are set; nil before write
	next    *durable.Draft
	hash    uint64

	agreed bool // the issue has these lines, by agree
	placed bool // next is the manifest
}

// speculate starts a speculation by reading the manifest; nil if another goroutine has one, because at most one succeeds.
func (f *Files) speculate(issue int) *speculativeManifest {
	if !f.speculating.TryLock() {
		return nil
	}
	d := &speculativeManifest{files: f, issue: issue, read: make(chan struct{})}
	go func() {
		defer close(d.read)
		var err error
		if d.was, d.id, err = f.store.ReadFileInto(f.takeRoom(), f.manifestPath(), fileLimit); err != nil {
			return
		}
		if s := f.loadManifestState(); s.trusts(d.id, d.was) && len(s.issues) > 0 {
			d.basis = s
		}
	}()
	return d
}

// write writes the manifest with the lines that the issue will have.
func (d *speculativeManifest) write(lines []schemas.ObservationIndex) {
	if d == nil {
		return
	}
	d.lines, d.written = lines, make(chan struct{})
	go func() {
		defer close(d.written)
		if <-d.read; d.basis == nil {
			return
		}
		parts, err := memory.SpliceParts(d.was, d.issue, lines)
		if err != nil {
			return
		}
		h := xxhash.New()
		if d.next, err = d.files.store.Draft(d.files.manifestPath(), hashedSegments(parts, h)); err == nil {
			d.hash = h.Sum64()
		}
	}()
}

// agree compares the actual lines of the issue with the expected ones. A manifest with other lines is not placed.
func (d *speculativeManifest) agree(lines []schemas.ObservationIndex) {
	if d == nil {
		return
	}
	if d.written == nil {
		d.write(lines)
	}
	d.agreed = slices.EqualFunc(d.lines, lines, func(a, b schemas.ObservationIndex) bool {
		same := a.Timestamp.Equal(b.Timestamp.Time)
		a.Timestamp = b.Timestamp
		return same && a == b
	})
}

// pieceSize is how many bytes of a large file are hashed and written at a time: they stay in a processor's cache. Writes at
// multiples of it are faster.
const pieceSize = 256 << 10

// place makes it the manifest. changed are the issue files as written. ok is false, and nothing changes, if they include
// other issues, or if the manifest changed since it was read. If another process wrote the issue file by now, it updates
// the manifest after this one, or, if it is killed before, the next run does: the recorded state names the content that
// this manifest was made from.
func (d *speculativeManifest) place(ctx context.Context, changed map[int][]byte) (ok bool, err error) {
	if d == nil || !d.agreed || len(changed) != 1 || changed[d.issue] == nil {
		return false, nil
	}
	if <-d.written; d.next == nil {
		return false, nil
	}
	d.files.manifestMu.Lock()
	defer d.files.manifestMu.Unlock()
	l, err := d.files.store.LockFile(ctx, d.files.manifestPath())
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, l.Release()) }()
	s := d.files.loadManifestState()
	id, err := d.files.store.Lstat(d.files.manifestPath())
	if err != nil || id != d.id || s == nil || s.id != id || s.hash != d.basis.hash {
		return false, nil
	}
	if err := l.Check(); err != nil {
		return false, err
	}
	// A change of the file within a tick gives it another modification time than this artificial one, so that the next
	// capture need not compare its content, of megabytes.
	at := time.Now().Add(-2 * tick)
	if d.next.SetTime(at) == nil {
		s.dated = at.UnixNano()
	}
	if err := d.next.Place(); err != nil {
		return false, err
	}
	d.placed = true
	d.files.writes.Add(1)
	s.issues[d.issue], s.hash = xxhash.Sum64(changed[d.issue]), d.hash
	if s.id, err = d.files.store.Lstat(d.files.manifestPath()); err == nil {
		d.files.saveManifestState(s)
	}
	return true, nil
}

// close waits for background work, and removes the temporary file, or the manifest that it replaced: only Close of the
// files waits for the latter. A second call does nothing.
func (d *speculativeManifest) close() {
	if d == nil || d.read == nil {
		return
	}
	if <-d.read; d.written != nil {
		switch <-d.written; {
		case d.placed:
			d.files.dropping.Go(d.next.Discard)
		case d.next != nil:
			d.next.Discard()
		}
	}
	d.files.giveRoom(d.was)
	d.read = nil
	d.files.speculating.Unlock()
}
