package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/state/proc"
)

// clocked are options whose clock stands still, and whose sleeps are written down and take no time.
type clocked struct {
	now    time.Time
	slept  []time.Duration
	during func() // what happens in the next sleep
}

func newClock() *clocked { return &clocked{now: time.Now()} }

func (c *clocked) options() Options {
	return Options{
		Now:  func() time.Time { return c.now },
		Rand: func() float64 { return 0.5 },
		Sleep: func(_ context.Context, d time.Duration) error {
			c.slept = append(c.slept, d)
			if c.during != nil {
				c.during()
				c.during = nil
			}
			return nil
		},
	}
}

// put writes a lock file of the given age.
func put(t *testing.T, root *os.Root, name, data string, age time.Duration) {
	t.Helper()
	if err := root.WriteFile(name, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-age)
	if err := root.Chtimes(name, at, at); err != nil {
		t.Fatal(err)
	}
}

// deadChild returns a process of ours that has ended and was waited for.
func deadChild(t *testing.T) proc.ID {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id := proc.ID{Tag: proc.Self().Tag, PID: cmd.Process.Pid, Start: proc.Start(cmd.Process.Pid)}
	_ = cmd.Wait()
	return id
}

func ours(id proc.ID, at time.Time) string { return string(newBody(id, "tester", at).encode()) }

const (
	young = time.Second
	old   = 31 * time.Second
)

func TestWhoseLockIsTaken(t *testing.T) {
	c := newClock()
	stampAt := func(d time.Duration) string { return fmt.Sprintf(`{"pid":1,"timestamp":%q}`, stamp(c.now.Add(d))) }
	self, dead := proc.Self(), deadChild(t)
	reused, elsewhere := self, dead
	reused.Start--
	elsewhere.Tag = "another boot"
	const (
		busy  = "busy"
		waits = "taken after a moment" // it was old: others may be taking it too
		once  = "taken at once"
	)
	for _, row := range []struct {
		name, data string
		age        time.Duration // of the file
		want       string
	}{
		{"foreign, young", stampAt(-young), young, busy},
		{"foreign, old", stampAt(-old), old, waits},
		{"foreign, just not old", stampAt(-29 * time.Second), 29 * time.Second, busy},
		{"old timestamp, young file", stampAt(-old), young, busy},
		{"young timestamp, old file", stampAt(-young), old, busy},
		{"timestamp an hour ahead, old file", stampAt(time.Hour), old, waits},
		{"timestamp ten years ahead, old file", stampAt(10 * 365 * 24 * time.Hour), old, waits},
		{"timestamp an hour ahead, young file", stampAt(time.Hour), young, busy},
		{"clocks differ a little, old file", stampAt(20 * time.Second), old, busy},
		{"timestamp ten years ago, young file", stampAt(-10 * 365 * 24 * time.Hour), young, busy},
		{"empty, young", "", young, busy},
		{"empty, old", "", old, waits},
		{"torn, young", stampAt(-old)[:20], young, busy},
		{"torn, old", stampAt(-young)[:20], old, waits},
		{"not JSON, old", "locked by me", old, waits},
		{"huge, old", strings.Repeat(" ", maxBody) + stampAt(-young), old, waits},
		{"list, old", "[1]", old, waits},
		{"garbage fields, young file", `{"pid":"x","timestamp":[],"agent":7,"guard":{},"start":"y"}`, young, busy},
		{"garbage fields, old file", `{"pid":-1e99,"timestamp":"soon","agent":7,"guard":{}}`, old, waits},
		{"byte order mark, young", "\ufeff" + stampAt(-young), old, busy},
		{"byte order mark, old", "\ufeff" + stampAt(-old), old, waits},
		{"seconds since 1970, young", fmt.Sprintf(`{"timestamp":%d}`, c.now.Unix()-1), old, busy},
		{"seconds since 1970, old", fmt.Sprintf(`{"timestamp":%d}`, c.now.Unix()-31), old, waits},
		{"seconds with a fraction, young", fmt.Sprintf(`{"timestamp":%d.25}`, c.now.Unix()-1), old, busy},
		{"milliseconds since 1970, young", fmt.Sprintf(`{"timestamp":%d}`, c.now.UnixMilli()-1000), old, busy},
		{"milliseconds, quoted, young", fmt.Sprintf(`{"timestamp":"%d"}`, c.now.UnixMilli()-1000), old, busy},
		{"milliseconds, old", fmt.Sprintf(`{"timestamp":%d}`, c.now.UnixMilli()-31000), old, waits},
		{"RFC 3339 with zone, young", fmt.Sprintf(`{"timestamp":%q}`, c.now.Add(-young).In(time.FixedZone("", 7200)).Format(time.RFC3339Nano)), old, busy},
		{"RFC 3339 with zone, old", fmt.Sprintf(`{"timestamp":%q}`, c.now.Add(-old).In(time.FixedZone("", -7200)).Format(time.RFC3339)), old, waits},
		{"our corpse, young", ours(dead, c.now.Add(-young)), young, once},
		{"our corpse, old", ours(dead, c.now.Add(-old)), old, waits},
		{"our corpse, from the future", ours(dead, c.now.Add(10*time.Second)), young, once},
		{"our number, used by another", ours(reused, c.now.Add(-young)), young, once},
		{"one of us, alive, who lost the guard", ours(self, c.now.Add(-young)), young, busy},
		{"one of us elsewhere", ours(elsewhere, c.now.Add(-young)), young, busy},
		{"one of us elsewhere, old", ours(elsewhere, c.now.Add(-old)), old, waits},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.want == once && self.Tag == "" {
				t.Skip("this system does not tell processes apart")
			}
			root := openRoot(t)
			put(t, root, "f.lock", row.data, row.age)
			c.slept = nil
			l, err := Acquire(t.Context(), root, "f", c.options())
			switch got := c.slept; {
			case row.want == busy:
				var b *BusyError
				if !errors.As(err, &b) || !errors.Is(err, ErrBusy) || b.Path != "f" || b.Hung {
					t.Errorf("err = %v, want busy", err)
				}
				if want := backoff(200, 400, 800, 1600); !slices.Equal(got, want) {
					t.Errorf("waited %v, want %v", got, want)
				}
				if data, _ := root.ReadFile("f.lock"); string(data) != row.data {
					t.Errorf("a lock that is held became %q", data)
				}
			case err != nil:
				t.Fatal(err)
			case row.want == waits && !slices.Equal(got, backoff(100)), row.want == once && len(got) > 0:
				t.Errorf("waited %v", got)
			}
			if l != nil {
				if err := errors.Join(l.Check(), l.Release()); err != nil {
					t.Error(err)
				}
			}
			if got := names(t, root); row.want != busy && got != "" || row.want == busy && got != "f.lock" {
				t.Errorf("files left: %q", got)
			}
		})
	}
}

func backoff(ms ...int) []time.Duration {
	var out []time.Duration
	for _, n := range ms {
		out = append(out, time.Duration(n)*time.Millisecond)
	}
	return out
}

// A file from the future of its file system says nothing of its age, so it counts from when it was first met.
func TestFileFromTheFuture(t *testing.T) {
	for _, ahead := range []time.Duration{time.Minute, time.Hour, 10 * 365 * 24 * time.Hour} {
		c := newClock()
		root := openRoot(t)
		put(t, root, "f.lock", `{"pid":1,"timestamp":"2001-01-01T00:00:00Z"}`, -ahead)
		try := func(what string, want bool) {
			t.Helper()
			l, err := Acquire(t.Context(), root, "f", c.options())
			if got := err == nil; got != want || err != nil && !errors.Is(err, ErrBusy) {
				t.Errorf("%v ahead, %s: taken %v (%v), want %v", ahead, what, got, err, want)
			}
			if l != nil {
				_ = l.Release()
			}
		}
		try("first met", false)
		c.now = c.now.Add(20 * time.Second)
		try("known for 20 s", false)
		put(t, root, "f.lock", `{"pid":2,"timestamp":"2001-01-01T00:00:00Z"}`, -ahead)
		try("another lock", false)
		c.now = c.now.Add(20 * time.Second)
		try("that one known for 20 s", false)
		c.now = c.now.Add(-time.Hour)
		try("the clock set back", false)
		c.now = c.now.Add(31 * time.Second)
		try("known for 31 s", true)
	}
}

// What a process that was killed while removing, or making, a lock leaves behind.
func TestLeftovers(t *testing.T) {
	c := newClock()
	foreign := fmt.Sprintf(`{"pid":1,"timestamp":%q}`, stamp(c.now))
	stale := `{"pid":1,"timestamp":"2001-01-01T00:00:00Z"}`
	corpse := ours(deadChild(t), c.now)
	type files map[string]string
	for _, row := range []struct {
		name  string
		files files
		age   time.Duration
		busy  bool
		left  files
	}{
		{"a corpse that was being removed", files{"f.reap.lock": corpse}, young, false, files{}},
		{"a stale lock that was being removed", files{"f.reap.lock": stale}, old, false, files{}},
		{"a live lock that was to be put back", files{"f.reap.lock": foreign}, young, true, files{"f.lock": foreign}},
		{"the same, and a newer one", files{"f.reap.lock": foreign, "f.lock": foreign}, young, true, files{"f.lock": foreign}},
		{"a lock not made yet", files{"f.new.lock": corpse}, young, false, files{}},
		{"half of one", files{"f.new.lock": corpse[:9]}, young, false, files{}},
		{"all of it", files{"f.new.lock": "", "f.reap.lock": corpse, "f.lock": corpse}, young, false, files{}},
		{"a lock that is held, and litter", files{"f.new.lock": "", "f.lock": foreign}, young, true, files{"f.lock": foreign}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if proc.Self().Tag == "" {
				t.Skip("this system does not tell processes apart")
			}
			root := openRoot(t)
			for name, data := range row.files {
				put(t, root, name, data, row.age)
			}
			l, err := Acquire(t.Context(), root, "f", c.options())
			if errors.Is(err, ErrBusy) != row.busy || (err != nil) != row.busy {
				t.Errorf("err = %v, want busy: %v", err, row.busy)
			}
			if l != nil {
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}
			left := files{}
			for _, name := range strings.Fields(names(t, root)) {
				data, _ := root.ReadFile(name)
				left[name] = string(data)
			}
			if fmt.Sprint(left) != fmt.Sprint(row.left) {
				t.Errorf("left %v, want %v", left, row.left)
			}
		})
	}
}

// linked: a process died after it linked N to L, or R to L, and before it removed the other name.
func TestLeftoversOfOneFile(t *testing.T) {
	corpse := ours(deadChild(t), time.Now())
	if proc.Self().Tag == "" {
		t.Skip("this system does not tell processes apart")
	}
	for _, other := range []string{"f.new.lock", "f.reap.lock"} {
		root := openRoot(t)
		put(t, root, "f.lock", corpse, young)
		if err := root.Link("f.lock", other); err != nil {
			t.Fatal(err)
		}
		l, err := Acquire(t.Context(), root, "f", newClock().options())
		if err != nil {
			t.Fatal(other, err)
		}
		data, _ := root.ReadFile("f.lock")
		if b := parseBody(data); b.PID != os.Getpid() {
			t.Errorf("%s: the lock is of %d", other, b.PID)
		}
		if err := l.Release(); err != nil {
			t.Error(other, err)
		}
		if got := names(t, root); got != "" {
			t.Errorf("%s: left %s", other, got)
		}
	}
}

func TestGuardIsNeverDeleted(t *testing.T) {
	root := openRoot(t)
	var first fs.FileInfo
	for range 3 {
		l, err := Acquire(t.Context(), root, "a/f", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
		fi, err := root.Stat(".reconcile/locks/a+f.guard")
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !os.SameFile(first, fi) {
			t.Error("the guard was replaced: two processes could hold one each")
		}
		first = fi
	}
}

// Somebody deleted the guard's folder while it was waited for: what was waited for is not the guard any more.
func TestGuardDeletedByHand(t *testing.T) {
	root := openRoot(t)
	l, err := Acquire(t.Context(), root, "f", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := root.RemoveAll(".reconcile"); err != nil {
		t.Fatal(err)
	}
	// The holder has no guard that anybody can find; its lock is respected nevertheless.
	if _, err := Acquire(t.Context(), root, "f", newClock().options()); !errors.Is(err, ErrBusy) {
		t.Errorf("err = %v, want busy", err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

func TestGuardNames(t *testing.T) {
	seen := map[string]string{}
	long := strings.Repeat("x", 240)
	for _, p := range []string{"a/b", "a+b", "a%2Bb", "a%2Fb", "a", "a/b/c", long, long + "/y", long + "/z", "é/" + long} {
		name := guardName(p)
		if other, ok := seen[name]; ok || len(name) > 255 || strings.Contains(name, "/") {
			t.Errorf("%q and %q: %q", p, other, name)
		}
		seen[name] = p
	}
}

func TestRefusedPaths(t *testing.T) {
	root := openRoot(t)
	put(t, root, "file", "", 0)
	if err := root.Mkdir("d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("d", filepath.Join(root.Name(), "link")); err != nil {
		t.Skip(err)
	}
	for _, p := range []string{"", ".", "..", "/f", "../f", "a//b", "f.lock", "link/f", "file/f"} {
		if l, err := Acquire(t.Context(), root, p, Options{}); err == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("%q: %v", p, err)
			_ = l.Release()
		}
	}
	if err := os.Mkdir(filepath.Join(root.Name(), "g.lock"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Acquire(t.Context(), root, "g", newClock().options()); err == nil || errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "g.lock") {
		t.Errorf("a folder in place of the lock: %v", err)
	}
}

func TestInspect(t *testing.T) {
	c := newClock()
	dead := deadChild(t)
	for _, row := range []struct {
		data string
		age  time.Duration
		want State
		pid  int
	}{
		{ours(proc.Self(), c.now), 0, Live, os.Getpid()},
		{ours(dead, c.now), 0, Corpse, dead.PID},
		{fmt.Sprintf(`{"pid":7,"timestamp":%q,"agent":"x"}`, stamp(c.now)), 0, Foreign, 7},
		{fmt.Sprintf(`{"pid":7,"timestamp":%q}`, stamp(c.now.Add(-2*old))), 2 * old, Stale, 7},
		{"", 0, Empty, 0},
		{"", 2 * old, Stale, 0},
	} {
		root := openRoot(t)
		put(t, root, "f.lock", row.data, row.age)
		put(t, root, "f.reap.lock", "", 0)
		before := names(t, root)
		info, err := Inspect(root, "f", c.options())
		if proc.Self().Tag == "" && (row.want == Live || row.want == Corpse) {
			row.want = Foreign
		}
		if err != nil || info.State != row.want || info.PID != row.pid || info.Age < row.age/2 || len(info.Litter) != 1 {
			t.Errorf("%s: %+v, %v, want %s", row.data, info, err, row.want)
		}
		if after := names(t, root); after != before {
			t.Errorf("Inspect changed %q to %q", before, after)
		}
	}
	if info, err := Inspect(openRoot(t), "no/such/folder", Options{}); err != nil || info.State != Free {
		t.Errorf("%+v, %v", info, err)
	}
}

// unlinked is a disk of a file system without hard links.
type unlinked struct {
	*osDisk
	err error
}

func (d unlinked) link(role, role) error { return &os.LinkError{Op: "link", Err: d.err} }

func TestWithoutLinks(t *testing.T) {
	foreign := fmt.Sprintf(`{"pid":1,"timestamp":%q}`, stamp(time.Now()))
	for _, refusal := range []error{noLinks, errors.ErrUnsupported} {
		for _, row := range []struct {
			name string
			has  map[string]string
			busy bool
		}{
			{"free", nil, false},
			{"held", map[string]string{"f.lock": foreign}, true},
			{"held, to be put back", map[string]string{"f.reap.lock": foreign}, true},
			{"held, to be put back, and a newer one", map[string]string{"f.lock": foreign, "f.reap.lock": foreign}, true},
		} {
			root := openRoot(t)
			for name, data := range row.has {
				put(t, root, name, data, 0)
			}
			o := newClock().options().withDefaults()
			d, err := openDisk(root, "f", o)
			if err != nil {
				t.Fatal(err)
			}
			l, err := acquire(t.Context(), unlinked{d, refusal}, "f", o)
			if errors.Is(err, ErrBusy) != row.busy || (err != nil) != row.busy {
				t.Errorf("%s: %v, want busy: %v", row.name, err, row.busy)
			}
			want := "f.lock"
			if l != nil {
				if got := names(t, root); got != want {
					t.Errorf("%s: %q while locked", row.name, got)
				}
				if err := errors.Join(l.Check(), l.Release()); err != nil {
					t.Error(row.name, err)
				}
				want = ""
			}
			if got := names(t, root); got != want {
				t.Errorf("%s: left %q, want %q", row.name, got, want)
			}
		}
	}
}
