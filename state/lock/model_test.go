package lock

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/state/proc"
)

// This file runs the protocol, as it is, on a model of a file system, through every order in which the steps of several
// processes can happen, with kills and pauses at every point. mutants_test.go has protocols that this must catch.

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

// scenario is what is explored. Every actor adds its own line to F.
type scenario struct {
	ours, peers   int
	kills, pauses int
	leftover      bool // F is locked by a peer that died long ago
	patient       bool // nobody is in the way for long: each of ours must succeed
	program       program
}

func (s scenario) String() string {
	text := fmt.Sprintf("%d of ours, %d peers, %d kills, %d pauses", s.ours, s.peers, s.kills, s.pauses)
	if s.leftover {
		text += ", a stale lock"
	}
	return text
}

const modelStale = 30 * time.Second

func (s scenario) world() *world {
	w := &world{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	if s.leftover {
		w.names[lockFile] = &inode{"leftover", []byte(`{"pid":99,"timestamp":"2020-01-01T00:00:00Z"}`), w.now.AddDate(-9, 0, 0)}
	}
	for n := range s.ours {
		w.start(n, false, s.program)
	}
	for n := range s.peers {
		w.start(s.ours+n, true, peer)
	}
	return w
}

func line(a *actor) string { return fmt.Sprintf("line of %d\n", a.n) }

// mutate adds the actor's line, and watches that nobody else of us is inside.
func (d *modelDisk) mutate(old []byte) ([]byte, error) {
	w := d.a.w
	if w.inside != nil && w.inside != d.a && !d.a.peer {
		w.broken = fmt.Errorf("%d is inside while %d is", d.a.n, w.inside.n)
	}
	if !d.a.peer {
		w.inside = d.a
	}
	if bytes.Contains(old, []byte(line(d.a))) {
		return old, nil
	}
	return append(slices.Clone(old), line(d.a)...), nil
}

func (d *modelDisk) leave() {
	if d.a.w.inside == d.a {
		d.a.w.inside = nil
	}
}

func (d *modelDisk) options() Options {
	now := func() time.Time {
		d.a.done("now", d.a.w.now.Format(stampLayout))
		return d.a.w.now
	}
	o := Options{Now: now, Sleep: d.sleep, Rand: func() float64 { return 0.5 }, Tries: 2}
	return o.withDefaults()
}

// real is the protocol under test.
func real(d *modelDisk) error {
	o := d.options()
	return update(o.Tries, func() (*Lock, error) { return acquire(context.Background(), d, "F", o) }, d.mutate)
}

// peer keeps to the agreed lock in the obvious way, and is never slow: it makes L empty, then writes it, removes an
// old one without looking again, and removes L when it is done.
func peer(d *modelDisk) error {
	for range 3 {
		f, err := d.create(lockFile, nil)
		if err == nil {
			return peerInside(d, f)
		}
		old, err := d.open(lockFile)
		if err != nil {
			continue
		}
		at := parseBody(old.content()).Timestamp
		if at.IsZero() || d.options().Now().Sub(at) <= modelStale {
			d.a.step("lookAgain")
			d.a.done("lookAgain", "")
			continue
		}
		_ = d.do("steal", func() error { d.a.w.names[lockFile] = nil; return nil })
	}
	return ErrBusy
}

func peerInside(d *modelDisk, f file) error {
	_ = d.do("write", func() error {
		return f.writeAt([]byte(`{"pid":99,"timestamp":"`+stamp(d.options().Now())+`"}`), 0)
	})
	old, _ := d.read()
	data, _ := d.mutate(old)
	s, _ := d.stage(data)
	_ = s.Commit()
	return d.remove(lockFile)
}

// verdict on a world in which nobody has anything left to do.
func (w *world) lost(s scenario) error {
	for _, a := range w.actors {
		if a.acked && !strings.Contains(w.data, line(a)) {
			return fmt.Errorf("the update of %d was acknowledged, and is lost; F is %q", a.n, w.data)
		}
		if !a.acked && !a.killed && !a.peer && s.patient {
			return fmt.Errorf("%d gave up, with nobody in the way", a.n)
		}
	}
	return w.broken
}

// choice is what the scheduler does: let an actor take a step, kill it, or let time pass.
type choice struct {
	what  byte // r, k, p
	actor int8
}

func (c choice) String() string { return fmt.Sprintf("%c%d", c.what, c.actor) }

func (w *world) do(c choice) string {
	switch c.what {
	case 'p':
		w.now = w.now.Add(modelStale + time.Second)
		return "31 s pass"
	case 'k':
		w.actors[c.actor].kill()
		return fmt.Sprintf("%d is killed before %s", c.actor, w.actors[c.actor].wish.op)
	}
	a := w.actors[c.actor]
	a.begun = true
	did := fmt.Sprintf("%d: %s", c.actor, a.wish.op)
	a.resume()
	return did
}

func (w *world) choices(s scenario, path []choice) []choice {
	var kills, pauses int
	for _, c := range path {
		switch c.what {
		case 'k':
			kills++
		case 'p':
			pauses++
		}
	}
	var out []choice
	for n, a := range w.actors {
		if n > 0 && n < s.ours && !w.actors[n-1].begun {
			continue // ours are all alike: let them begin in order
		}
		if a.can() {
			out = append(out, choice{'r', int8(n)})
		}
		if a.begun && !a.ended && kills < s.kills && !a.peer && (a.wish.op != "sleep" || !w.hurried()) {
			out = append(out, choice{'k', int8(n)})
		}
	}
	if len(out) > 0 && pauses < s.pauses && !w.hurried() && !w.busyPeer() {
		out = append(out, choice{'p', 0})
	}
	return out
}

// key is equal for worlds that have the same future.
func (w *world) key(kills, pauses int) [16]byte {
	b := fnv.New128a()
	fmt.Fprint(b, kills, pauses, w.now.UnixNano(), w.data, w.note)
	for _, n := range w.names {
		if n != nil {
			fmt.Fprint(b, " ", n.id, n.mtime.UnixNano(), len(n.data))
		}
		fmt.Fprint(b, ",")
	}
	for _, a := range w.actors {
		fmt.Fprint(b, " ", a.past, a.killed, a == w.holder, a == w.inside)
	}
	return [16]byte(b.Sum(nil))
}

func (w *world) drop() {
	for _, a := range w.actors {
		if !a.ended {
			a.kill()
		}
	}
}

var errTooMany = errors.New("too many states")

// explore looks for an order of steps that breaks a promise, and tells it. Orders with fewer interruptions come first,
// since nearly all faults show with two or three. Worlds cannot be copied: to come back to one, its choices are made
// again.
func explore(s scenario, limit int) (states int, err error) {
	seen := map[[16]byte]bool{}
	todo := [][][]choice{{nil}} // paths by number of interruptions
	for cost := 0; cost < len(todo); cost++ {
		for len(todo[cost]) > 0 {
			last := len(todo[cost]) - 1
			path := todo[cost][last]
			todo[cost] = todo[cost][:last]
			branches, err := s.follow(path, seen)
			if err == nil && len(seen) > limit {
				err = errTooMany
			}
			if err != nil {
				return len(seen), err
			}
			for _, b := range branches {
				for len(todo) <= cost+b.cost {
					todo = append(todo, nil)
				}
				todo[cost+b.cost] = append(todo[cost+b.cost], b.path)
			}
		}
	}
	return len(seen), nil
}

// branch is a path that was not followed, and how many more interruptions it has.
type branch struct {
	path []choice
	cost int
}

// follow goes along a path and on from there, interrupting nobody, until it meets a state that was seen.
func (s scenario) follow(path []choice, seen map[[16]byte]bool) (branches []branch, err error) {
	w := s.world()
	defer w.drop()
	for _, c := range path {
		w.do(c)
	}
	for {
		key := w.key(count(path, 'k'), count(path, 'p'))
		if seen[key] {
			return branches, nil
		}
		seen[key] = true
		choices := w.choices(s, path)
		if err := w.lost(s); w.broken != nil || len(choices) == 0 && err != nil {
			return nil, fmt.Errorf("%w\n%s", err, s.tell(path))
		}
		if len(choices) == 0 {
			return branches, nil
		}
		on := w.onward(choices, path)
		for i, c := range choices {
			if i != on {
				branches = append(branches, branch{append(slices.Clone(path), c), 1})
			}
		}
		path = append(slices.Clone(path), choices[on])
		w.do(choices[on])
	}
}

// onward picks the choice that interrupts nobody: who ran last runs on, or else the first that can.
func (w *world) onward(choices, path []choice) int {
	last := int8(-1)
	if len(path) > 0 {
		last = path[len(path)-1].actor
	}
	if i := slices.Index(choices, choice{'r', last}); i >= 0 {
		return i
	}
	return max(0, slices.IndexFunc(choices, func(c choice) bool { return c.what == 'r' }))
}

func count(path []choice, what byte) int {
	n := 0
	for _, c := range path {
		if c.what == what {
			n++
		}
	}
	return n
}

// tell replays a path in words.
func (s scenario) tell(path []choice) string {
	w := s.world()
	defer w.drop()
	var lines []string
	for _, c := range path {
		lines = append(lines, "  "+w.do(c))
	}
	return strings.Join(lines, "\n")
}

// exhaustive asks for what takes minutes: go test ./state/lock -run InEveryOrder -exhaustive
var exhaustive = flag.Bool("exhaustive", false, "explore large scenarios too")

func TestProtocolInEveryOrder(t *testing.T) {
	scenarios := []scenario{
		{ours: 2, kills: 1, pauses: 1, patient: true},
		{ours: 3, kills: 2, patient: true},
		{ours: 2, kills: 1, pauses: 1, leftover: true},
		{ours: 1, peers: 1, pauses: 1},
		{ours: 1, peers: 1, leftover: true},
	}
	if *exhaustive {
		scenarios = append(scenarios, []scenario{
			{ours: 1, peers: 1, pauses: 2},
			{ours: 1, peers: 1, kills: 1, pauses: 1, leftover: true},
			{ours: 2, peers: 1, kills: 1},
			{ours: 2, kills: 2, pauses: 2},
			{ours: 3, kills: 3, pauses: 1},
			{ours: 4, kills: 2, patient: true},
			{ours: 3, kills: 1, pauses: 1, leftover: true},
			{ours: 2, peers: 1, pauses: 1, leftover: true},
			{ours: 2, peers: 1, kills: 1, pauses: 1},
		}...)
	}
	total := 0
	for _, s := range scenarios {
		s.program = real
		states, err := explore(s, 20_000_000)
		if err != nil {
			t.Errorf("%v: after %d states: %v", s, states, err)
		}
		t.Logf("%v: %d states", s, states)
		total += states
	}
	t.Logf("%d states in all", total)
}
