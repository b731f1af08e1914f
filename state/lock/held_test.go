package lock

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	type state struct {
		l    *Lock
		c    *clocked
		root *os.Root
	}
	for name, row := range map[string]struct {
		happens func(*testing.T, state)
		ok      bool
	}{
		"nothing":             {func(*testing.T, state) {}, true},
		"14 s pass":           {func(_ *testing.T, s state) { s.c.now = s.c.now.Add(14 * time.Second) }, true},
		"15 s pass":           {func(_ *testing.T, s state) { s.c.now = s.c.now.Add(15 * time.Second) }, false},
		"asleep for an hour":  {func(_ *testing.T, s state) { s.c.now = s.c.now.Round(0).Add(time.Hour) }, false},
		"clock an hour back":  {func(_ *testing.T, s state) { s.c.now = s.c.now.Round(0).Add(-time.Hour) }, true},
		"clock ten years on":  {func(_ *testing.T, s state) { s.c.now = s.c.now.AddDate(10, 0, 0) }, false},
		"the file changes":    {func(t *testing.T, s state) { put(t, s.root, "f", "changed", 0) }, false},
		"the file is emptied": {func(t *testing.T, s state) { put(t, s.root, "f", "", 0) }, false},
		"the file is removed": {func(t *testing.T, s state) { _ = s.root.Remove("f") }, false},
		"the file is touched": {func(t *testing.T, s state) { put(t, s.root, "f", "content", time.Hour) }, true},
		"the lock is removed": {func(t *testing.T, s state) { _ = s.root.Remove("f.lock") }, false},
		"the lock is replaced by one that looks the same": {func(t *testing.T, s state) {
			data, _ := s.root.ReadFile("f.lock")
			_ = s.root.Remove("f.lock")
			put(t, s.root, "f.lock", string(data), 0)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := state{c: newClock(), root: openRoot(t)}
			put(t, s.root, "f", "content", 0)
			l, err := Acquire(t.Context(), s.root, "f", s.c.options())
			if err != nil {
				t.Fatal(err)
			}
			s.l = l
			if data, err := l.Read(); string(data) != "content" || err != nil {
				t.Errorf("Read = %q, %v", data, err)
			}
			row.happens(t, s)
			if err := l.Check(); (err == nil) != row.ok || err != nil && !errors.Is(err, ErrStolen) {
				t.Errorf("Check = %v, want ok: %v", err, row.ok)
			}
			_ = l.Release()
		})
	}
}

// Release after the lock was lost removes nothing of others, and says so.
func TestReleaseOfALostLock(t *testing.T) {
	root := openRoot(t)
	for what, lose := range map[string]func(){
		"replaced": func() { put(t, root, "f.lock", "another's", 0) },
		"removed":  func() {},
	} {
		l, err := Acquire(t.Context(), root, "f", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := root.Remove("f.lock"); err != nil {
			t.Fatal(err)
		}
		lose()
		before := names(t, root)
		if err := l.Release(); !errors.Is(err, ErrStolen) {
			t.Errorf("%s: Release = %v", what, err)
		}
		if after := names(t, root); after != before {
			t.Errorf("%s: %q became %q", what, before, after)
		}
		_ = root.Remove("f.lock")
	}
}

func TestReleaseOfAnOldLockWaits(t *testing.T) {
	c := newClock()
	root := openRoot(t)
	l, err := Acquire(t.Context(), root, "f", c.options())
	if err != nil {
		t.Fatal(err)
	}
	c.now = c.now.Add(old)
	if err := l.Release(); err != nil || !slices.Equal(c.slept, backoff(100)) {
		t.Errorf("Release = %v, waited %v", err, c.slept)
	}
}

// renewed is a lock whose renewals happen when the test says so.
type renewed struct {
	*Lock
	c    *clocked
	root *os.Root
	next func() // nil: no renewal is to come
}

func newRenewed(t *testing.T) *renewed {
	r := &renewed{c: newClock(), root: openRoot(t)}
	o := r.c.options()
	o.After = func(d time.Duration, f func()) func() bool {
		if d != 5*time.Second {
			t.Errorf("a renewal after %v, want 5 s", d)
		}
		r.next = f
		return func() bool { r.next = nil; return true }
	}
	var err error
	if r.Lock, err = Acquire(t.Context(), r.root, "f", o); err != nil {
		t.Fatal(err)
	}
	return r
}

// pass lets time pass, with a renewal every five seconds.
func (r *renewed) pass(d time.Duration) {
	for ; d > 0; d -= 5 * time.Second {
		r.c.now = r.c.now.Add(5 * time.Second)
		if f := r.next; f != nil {
			r.next = nil
			f()
		}
	}
}

func (r *renewed) body() body {
	data, _ := r.root.ReadFile("f.lock")
	return parseBody(data)
}

// A lock stays young while its holder gets on, for however long that is.
func TestRenewedWhileWorking(t *testing.T) {
	r := newRenewed(t)
	was := r.body()
	for range 20 {
		r.pass(50 * time.Second)
		r.Working("decide")
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	if is := r.body(); is.Timestamp.Sub(was.Timestamp) != 1000*time.Second || is.Nonce != was.Nonce ||
		!is.Since.Equal(was.Since) || is.Doing != "decide" {
		t.Errorf("%+v became %+v", was, is)
	}
	if err := r.Release(); err != nil || r.next != nil {
		t.Errorf("Release = %v; another renewal to come: %v", err, r.next != nil)
	}
}

// A holder that hangs gives no sign: after a minute its lock ages, and what it decided is not written any more.
func TestNotRenewedForOneThatHangs(t *testing.T) {
	r := newRenewed(t)
	was := r.body()
	r.pass(2 * time.Minute)
	if is := r.body(); is.Timestamp.Sub(was.Timestamp) != time.Minute {
		t.Errorf("renewed for %v, want a minute", is.Timestamp.Sub(was.Timestamp))
	}
	r.Working("write")
	r.pass(5 * time.Second)
	if err := r.Check(); !errors.Is(err, ErrStolen) {
		t.Errorf("Check when it goes on: %v", err)
	}
	_ = r.Release()
}

// What was lost is not renewed: neither a lock that is too old, nor one of somebody else.
func TestRenewalOfALostLock(t *testing.T) {
	for what, lose := range map[string]func(*renewed){
		"asleep for 20 s": func(r *renewed) { r.c.now = r.c.now.Add(20 * time.Second) },
		"replaced": func(r *renewed) {
			data, _ := r.root.ReadFile("f.lock")
			_ = r.root.Remove("f.lock")
			put(t, r.root, "f.lock", string(data), 0)
		},
	} {
		r := newRenewed(t)
		before, _ := r.root.ReadFile("f.lock")
		lose(r)
		r.pass(5 * time.Second)
		if after, _ := r.root.ReadFile("f.lock"); string(after) != string(before) {
			t.Errorf("%s: %s became %s", what, before, after)
		}
		if err := r.Check(); !errors.Is(err, ErrStolen) || r.next != nil {
			t.Errorf("%s: Check = %v; another renewal to come: %v", what, err, r.next != nil)
		}
		_ = r.Release()
	}
}

// Two judged a stale lock; the slower of them removes ours. It must be noticed before the lock is trusted.
func TestRobbedWhileSettling(t *testing.T) {
	c := newClock()
	root := openRoot(t)
	put(t, root, "f.lock", "", old)
	c.during = func() { _ = root.Remove("f.lock") }
	l, err := Acquire(t.Context(), root, "f", c.options())
	if err != nil || !slices.Equal(c.slept, backoff(100, 100)) {
		t.Fatalf("%v, waited %v", err, c.slept)
	}
	if err := errors.Join(l.Check(), l.Release()); err != nil {
		t.Error(err)
	}
}

func TestForeignLockIsWaitedFor(t *testing.T) {
	c := newClock()
	root := openRoot(t)
	put(t, root, "f.lock", fmt.Sprintf(`{"pid":1,"timestamp":%q}`, stamp(c.now)), 0)
	c.during = func() { _ = root.Remove("f.lock") }
	l, err := Acquire(t.Context(), root, "f", c.options())
	if err != nil || !slices.Equal(c.slept, backoff(200)) {
		t.Fatalf("%v, waited %v", err, c.slept)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

func TestWaits(t *testing.T) {
	for r, want := range map[float64]time.Duration{0: 150 * time.Millisecond, 0.5: 200 * time.Millisecond, 0.999: 249 * time.Millisecond} {
		o := Options{Rand: func() float64 { return r }}.withDefaults()
		if got := o.jittered(0); got < want || got > want+time.Millisecond {
			t.Errorf("jitter of %v: %v, want %v", r, got, want)
		}
	}
	o := Options{}.withDefaults()
	if o.wait(10) != 5*time.Second || o.wait(1000) != 5*time.Second || o.budget() != 6200*time.Millisecond {
		t.Errorf("longest wait %v, budget %v", o.wait(10), o.budget())
	}
}

// Who waits for a lock is told who holds it, since when and at what, and that it goes on: until the holder has not renewed it for 15 s.
func TestBusyTellsWhoWorks(t *testing.T) {
	r := newRenewed(t)
	r.Working("decide")
	r.pass(20 * time.Second)
	o := r.c.options()
	o.Backoff = time.Millisecond
	for _, row := range []struct {
		later, held time.Duration
		works       bool
	}{{0, 20 * time.Second, true}, {14 * time.Second, 34 * time.Second, true}, {2 * time.Second, 36 * time.Second, false}} {
		r.c.now = r.c.now.Add(row.later)
		_, err := Acquire(t.Context(), r.root, "f", o)
		busy, ok := errors.AsType[*BusyError](err)
		if !ok || busy.Works() != row.works || busy.PID != os.Getpid() || busy.Held.Round(time.Second) != row.held || busy.Doing != "decide" {
			t.Errorf("after %v: %v, %+v, want works: %v", row.held, err, busy, row.works)
		}
	}
	_ = r.Release()
}
