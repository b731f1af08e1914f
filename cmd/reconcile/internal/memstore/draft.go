package memstore

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
)

// draft is the next manifest of a capture into one issue. The manifest of a large store has many megabytes, and to read,
// check and write it takes longer than all else of a capture: so that is done beside the rest, without a lock. Under the
// lock it is looked whether the draft is still what the manifest should become, and that is one exchange of names; if
// not, it is dropped, and the manifest is changed as putIntoManifest does it. Nothing depends on a draft: it is written of
// the lines that the issue will likely have, and those that it gets are compared with them.
//
// Its methods may be called on nil, which is no draft. They are for one goroutine at a time; the last one must call close.
type draft struct {
	*Files
	issue int

	read  chan struct{} // closed when was, id and basis are known
	was   []byte        // the manifest, in the room for it
	id    state.Identity
	basis *step // nil: the manifest is not the one that is remembered

	lines   []schemas.ObservationIndex // that the issue has in it
	written chan struct{}              // closed when next and hash are known; nil before write
	next    *durable.Draft
	hash    uint64

	agreed bool // the issue has these lines, as agree was told
	placed bool // next is the manifest
}

// draftOf begins a draft by reading the manifest; nil if another goroutine has one: of several at most one is of use.
func (f *Files) draftOf(issue int) *draft {
	if !f.drafting.TryLock() {
		return nil
	}
	d := &draft{Files: f, issue: issue, read: make(chan struct{})}
	go func() {
		defer close(d.read)
		var err error
		if d.was, d.id, err = f.store.ReadFileInto(f.takeRoom(), f.manifestPath(), fileLimit); err != nil {
			return
		}
		if s := f.loadStep(); s.trusts(d.id, d.was) && len(s.issues) > 0 {
			d.basis = s
		}
	}()
	return d
}

// write makes the draft of the lines that the issue will have.
func (d *draft) write(lines []schemas.ObservationIndex) {
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
		if d.next, err = d.store.Sketch(d.manifestPath(), hashed(parts, h)); err == nil {
			d.hash = h.Sum64()
		}
	}()
}

// agree tells of the lines that the issue has now. A draft of others is not placed.
func (d *draft) agree(lines []schemas.ObservationIndex) {
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

// pieceSize is how much of a large file is hashed and written at a time: so much stays in a processor's cache. A file is
// written faster by pieces that begin at multiples of it.
const pieceSize = 256 << 10

// hashed are the parts in pieces, each hashed just before it is taken.
func hashed(parts [][]byte, h *xxhash.Digest) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		at := 0
		for _, p := range parts {
			for len(p) > 0 {
				n := min(len(p), pieceSize-at%pieceSize)
				at += n
				_, _ = h.Write(p[:n]) // it has no errors
				if !yield(p[:n]) {
					return
				}
				p = p[n:]
			}
		}
	}
}

// place makes the draft the manifest. changed are the issue files as they were written. ok is false, and nothing has
// happened, if they are more than the draft is of, or if the manifest has become another one since it was read. Should
// another process have written into the issue file by now, it brings the manifest in step after us, and if it is killed
// before, the next run does: what is remembered is what the draft was made of.
func (d *draft) place(ctx context.Context, changed map[int][]byte) (ok bool, err error) {
	if d == nil || !d.agreed || len(changed) != 1 || changed[d.issue] == nil {
		return false, nil
	}
	if <-d.written; d.next == nil {
		return false, nil
	}
	d.manifestMu.Lock()
	defer d.manifestMu.Unlock()
	l, err := d.store.LockFile(ctx, d.manifestPath())
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, l.Release()) }()
	s := d.loadStep()
	id, err := d.store.LookAt(d.manifestPath())
	if err != nil || id != d.id || s == nil || s.id != id || s.hash != d.basis.hash {
		return false, nil
	}
	if err := l.Check(); err != nil {
		return false, err
	}
	// Who changes the file now, within a tick, gives it another modification time than this one, which no clock has: so
	// its content, of megabytes, need not be compared by the next capture.
	at := time.Now().Add(-2 * tick)
	if d.next.Date(at) == nil {
		s.dated = at.UnixNano()
	}
	if err := d.next.Place(); err != nil {
		return false, err
	}
	d.placed = true
	d.writes.Add(1)
	s.issues[d.issue], s.hash = xxhash.Sum64(changed[d.issue]), d.hash
	if s.id, err = d.store.LookAt(d.manifestPath()); err == nil {
		d.saveStep(s)
	}
	return true, nil
}

// close waits for what goes on, and drops the draft, or the manifest that it took the place of: nobody waits for the latter
// but Close of the files. A second call does nothing.
func (d *draft) close() {
	if d == nil || d.read == nil {
		return
	}
	if <-d.read; d.written != nil {
		switch <-d.written; {
		case d.placed:
			d.dropping.Go(d.next.Discard)
		case d.next != nil:
			d.next.Discard()
		}
	}
	d.giveRoom(d.was)
	d.read = nil
	d.drafting.Unlock()
}
