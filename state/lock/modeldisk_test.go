package lock

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/state/proc"
)

// world is the state that the processes share. Each call of a disk is one step: nothing happens within.
type world struct {
	now    time.Time
	names  [3]*inode // by role
	data   string    // F
	note   string
	holder *actor // of the guard
	actors []*actor
	inside *actor // one of us that is between Acquire and Release
	broken error  // the first violation
}

type inode struct {
	id    string // the same in every order of steps that does the same
	data  []byte
	mtime time.Time
}

// actor is a process. It runs until its next call of the disk, and goes on when it is resumed.
type actor struct {
	w       *world
	n       int
	next    func() (wish, bool)
	stop    func()
	yield   func(wish) bool
	wish    wish // what it does when it is resumed
	begun   bool // took a step
	ended   bool // returned or killed
	killed  bool
	peer    bool
	acked   bool
	past    uint64 // hash of all results so far: equal pasts are equal presents
	created int
}

// wish is the next step of an actor.
type wish struct {
	op    string
	until time.Time // of a sleep
}

// program is what an actor does: one update. nil says that it is acknowledged.
type program func(d *modelDisk) error

type killedError struct{}

func (w *world) start(n int, peer bool, p program) {
	a := &actor{w: w, n: n, peer: peer}
	w.actors = append(w.actors, a)
	a.next, a.stop = iter.Pull(func(yield func(wish) bool) {
		defer func() {
			if r := recover(); r != nil && r != any(killedError{}) {
				panic(r)
			}
			a.ended = true
		}()
		a.yield = yield
		a.acked = p(&modelDisk{a}) == nil
	})
	a.resume()
}

func (a *actor) resume() {
	if next, ok := a.next(); ok {
		a.wish = next
	}
}

// kill ends an actor where it stands: what it would do on its way out does not happen.
func (a *actor) kill() {
	a.killed = true
	if a.w.holder == a {
		a.w.holder = nil
	}
	if a.w.inside == a {
		a.w.inside = nil
	}
	a.stop()
	a.ended = true
}

// step waits for the scheduler, and then is the only one that runs. Its result is added by done.
func (a *actor) step(op string) {
	if a.killed {
		panic(killedError{})
	}
	if !a.yield(wish{op: op}) {
		panic(killedError{})
	}
}

func (a *actor) done(op, result string) {
	a.past = xxhash.Sum64String(strconv.FormatUint(a.past, 36) + op + " " + result)
}

// can reports whether the actor's next step is possible now.
func (a *actor) can() bool {
	switch {
	case a.ended:
		return false
	case a.wish.op == "lockGuard":
		return a.w.holder == nil
	case a.wish.op == "sleep":
		return !a.w.hurried()
	}
	return true
}

// hurried reports whether somebody is between two steps that follow each other at once, by the assumptions of the
// protocol: for us the fence and the rename, for a peer judging a lock and removing it. Time does not pass then.
func (w *world) hurried() bool {
	return slices.ContainsFunc(w.actors, func(a *actor) bool {
		return !a.ended && (a.wish.op == "commit" && !a.peer || a.wish.op == "steal")
	})
}

// busyPeer reports whether a peer is doing something. Peers are slow, but not by 30 seconds.
func (w *world) busyPeer() bool {
	return slices.ContainsFunc(w.actors, func(a *actor) bool { return !a.ended && a.peer && a.wish.op != "lookAgain" && a.begun })
}

func op(name string, roles ...role) string {
	for _, r := range roles {
		name += [...]string{" L", " N", " R"}[r]
	}
	return name
}

// modelDisk is the disk of one actor.
type modelDisk struct{ a *actor }

func (d *modelDisk) do(op string, f func() error) error {
	d.a.step(op)
	err := f()
	if err != nil {
		op += err.Error()
	}
	d.a.done(op, "")
	return err
}

func (d *modelDisk) lockGuard(context.Context, time.Duration) (guard, error) {
	err := d.do("lockGuard", func() error { d.a.w.holder = d.a; return nil })
	return d, err
}

func (d *modelDisk) note() string     { return d.a.w.note }
func (d *modelDisk) setNote(s string) { d.a.w.note = s }

func (d *modelDisk) unlock() {
	d.leave()
	if !d.a.killed && d.a.w.holder == d.a {
		d.a.w.holder = nil
	}
}

func (d *modelDisk) create(r role, data []byte) (file, error) {
	f := &modelFile{w: d.a.w}
	return f, d.do(op("create", r), func() error {
		if d.a.w.names[r] != nil {
			return fs.ErrExist
		}
		d.a.created++
		f.inode = &inode{fmt.Sprint(d.a.n, "-", d.a.created), data, d.a.w.now}
		f.mtime = d.a.w.now
		d.a.done("", f.mtime.Format(stampLayout))
		d.a.w.names[r] = f.inode
		return nil
	})
}

func (d *modelDisk) open(r role) (file, error) {
	f := &modelFile{w: d.a.w}
	return f, d.do(op("open", r), func() error {
		f.inode = d.a.w.names[r]
		if f.inode == nil {
			return fs.ErrNotExist
		}
		f.mtime = f.inode.mtime
		d.a.done(f.inode.id, f.mtime.Format(stampLayout))
		return nil
	})
}

func (d *modelDisk) link(from, to role) error {
	return d.do(op("link", from, to), func() error {
		switch n := &d.a.w.names; {
		case n[from] == nil:
			return fs.ErrNotExist
		case n[to] != nil:
			return fs.ErrExist
		default:
			n[to] = n[from]
			return nil
		}
	})
}

func (d *modelDisk) rename(from, to role) error {
	return d.do(op("rename", from, to), func() error {
		switch n := &d.a.w.names; {
		case n[from] == nil:
			return fs.ErrNotExist
		case n[from] == n[to]: // POSIX: two names of one file both stay
			return nil
		default:
			n[to], n[from] = n[from], nil
			return nil
		}
	})
}

func (d *modelDisk) remove(r role) error {
	return d.do(op("remove", r), func() error {
		if d.a.w.names[r] == nil {
			return fs.ErrNotExist
		}
		d.a.w.names[r] = nil
		return nil
	})
}

func (d *modelDisk) same(f file, r role) (ok bool, err error) {
	err = d.do(op("same", r), func() error {
		ok = d.a.w.names[r] == f.(*modelFile).inode
		d.a.done("", strconv.FormatBool(ok))
		return nil
	})
	return ok, err
}

func (d *modelDisk) read() (data []byte, err error) {
	err = d.do("read", func() error {
		data = []byte(d.a.w.data)
		d.a.done("", d.a.w.data)
		return nil
	})
	return data, err
}

func (d *modelDisk) stage(data []byte) (staged, error) { return &modelStaged{d, string(data)}, nil }

func (d *modelDisk) self() proc.ID { return proc.ID{Tag: "us", PID: d.a.n + 1, Start: 1} }

func (d *modelDisk) gone(id proc.ID) bool {
	return id.Tag == "us" && (id.PID > len(d.a.w.actors) || d.a.w.actors[id.PID-1].ended)
}

func (d *modelDisk) close() {}

func (d *modelDisk) sleep(_ context.Context, t time.Duration) error {
	until := d.a.w.now.Add(t)
	if d.a.killed || !d.a.yield(wish{op: "sleep", until: until}) {
		panic(killedError{})
	}
	if d.a.w.now.Before(until) {
		d.a.w.now = until
	}
	return nil
}

type modelFile struct {
	w *world
	*inode
	mtime time.Time // when it was opened
}

func (f *modelFile) content() []byte     { return f.inode.data }
func (f *modelFile) modified() time.Time { return f.mtime }
func (f *modelFile) close()              {}

func (f *modelFile) writeAt(data []byte, at int64) error {
	f.inode.data = append(slices.Clone(f.inode.data[:at]), data...)
	f.inode.mtime = f.w.now
	return nil
}

type modelStaged struct {
	d    *modelDisk
	data string
}

func (s *modelStaged) Commit() error {
	return s.d.do("commit", func() error { s.d.a.w.data = s.data; return nil })
}

func (s *modelStaged) Discard() { s.d.leave() }
