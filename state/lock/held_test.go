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

func TestTouch(t *testing.T) {
	c := newClock()
	root := openRoot(t)
	l, err := Acquire(t.Context(), root, "f", c.options())
	if err != nil {
		t.Fatal(err)
	}
	before, _ := root.ReadFile("f.lock")
	for range 4 {
		c.now = c.now.Add(10 * time.Second)
		if err := l.Touch(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	after, _ := root.ReadFile("f.lock")
	was, is := parseBody(before), parseBody(after)
	if d := is.Timestamp.Sub(was.Timestamp); d != 40*time.Second || len(before) != len(after) || is.Nonce != was.Nonce {
		t.Errorf("%s became %s", before, after)
	}
	c.now = c.now.Add(20 * time.Second)
	if err := l.Touch(); !errors.Is(err, ErrStolen) {
		t.Errorf("Touch of an old lock: %v", err)
	}
	_ = l.Release()
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
