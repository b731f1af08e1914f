package lock

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"
)

// This file runs the protocol, as it is, on a model of a file system, through every order in which the steps of several
// processes can happen, with kills and pauses at every point. mutants_test.go has protocols that this must catch.

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
	if testing.Short() {
		scenarios = scenarios[:1]
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
