package events

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// catchUp reads all there is.
func catchUp(t *testing.T, f *Follower) (names []string, missing int64) {
	t.Helper()
	for {
		b, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Events) == 0 && b.Missing == 0 {
			return names, missing
		}
		names = append(names, refs(b.Events)...)
		if missing += b.Missing; b.Missing == Unknown {
			missing = Unknown
		}
	}
}

func follow(t *testing.T, root *os.Root, filter Filter) *Follower {
	f := Follow(root, filter)
	t.Cleanup(func() { f.Close() })
	return f
}

// writer appends numbered events, and puts the file aside as a full one is.
type writer struct {
	t    *testing.T
	root *os.Root
	n    int
}

func (w *writer) add(events int) (names []string) {
	w.t.Helper()
	list := numbered(w.n, w.n+events)
	w.n += events
	if err := Append(w.root, list); err != nil {
		w.t.Fatal(err)
	}
	return refs(list)
}

func (w *writer) rotate() {
	w.t.Helper()
	if err := w.root.Rename(Path, oldPath); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) raw(text string) {
	w.t.Helper()
	f, err := w.root.OpenFile(Path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		w.t.Fatal(err)
	}
}

func expect(t *testing.T, f *Follower, names []string, missing int64) {
	t.Helper()
	got, lost := catchUp(t, f)
	if !slices.Equal(got, names) || lost != missing {
		t.Errorf("read %v and missed %d, want %v and %d", got, lost, names, missing)
	}
}

func TestFollow(t *testing.T) {
	root := open(t)
	w := &writer{t: t, root: root}
	f := follow(t, root, Filter{})
	expect(t, f, nil, 0) // there is no log yet
	expect(t, f, w.add(2), 0)
	expect(t, f, nil, 0)
	first := w.add(1)
	w.rotate()
	expect(t, f, first, 0)
	expect(t, f, nil, 0) // the next file is not there yet
	expect(t, f, w.add(3), 0)

	w.rotate()
	rest := w.add(2)
	expect(t, f, rest, 0)
	rest = w.add(1)
	w.rotate()
	rest = append(rest, w.add(4)...)
	w.rotate()
	rest = append(rest, w.add(2)...)
	expect(t, f, rest, 0) // two rotations, but the older file is still there

	expect(t, f, w.add(1), 0)
	w.rotate()
	w.add(5)
	w.rotate()
	rest = w.add(7)
	w.rotate()
	expect(t, f, nil, 0) // between two files; which one is next is seen when it is there
	rest = append(rest, w.add(2)...)
	expect(t, f, rest, 5)
}

// Only whoever read a part of the log misses the rest: who comes late gets what there is, and is told of nothing.
func TestFollowFromTheBeginning(t *testing.T) {
	root := open(t)
	w := &writer{t: t, root: root}
	w.add(5)
	w.rotate()
	names := w.add(3)
	w.rotate()
	names = append(names, w.add(2)...)
	expect(t, follow(t, root, Filter{}), names, 0)
	expect(t, follow(t, root, Filter{Ref: "6"}), []string{"6"}, 0)
	if read, err := Read(root, Filter{}); err != nil || !slices.Equal(refs(read), names) {
		t.Errorf("Read: %v, %v", refs(read), err)
	}
}

// A line that has no end yet is waited for, however it comes; what a killed process tore is left out, and counts as
// one line.
func TestFollowTornLines(t *testing.T) {
	line := string(encodeEvent([]Event{{Time: at(0), Ref: "torn", Type: Normal, Reason: "Started", Message: "ü"}})[1:])
	for n := range line {
		root := open(t)
		w := &writer{t: t, root: root}
		f := follow(t, root, Filter{})
		expect(t, f, w.add(1), 0)
		w.raw(line[:n])
		expect(t, f, nil, 0)
		w.raw(line[n:])
		expect(t, f, []string{"torn"}, 0)
		w.raw(line[:n])
		names := w.add(1)
		if n == len(line)-1 {
			names = append([]string{"torn"}, names...) // only the line feed was missing
		}
		expect(t, f, names, 0)
		w.raw(line[:n])
		w.rotate()
		names = w.add(1)
		if n == len(line)-1 {
			names = append([]string{"torn"}, names...)
		}
		expect(t, f, names, 0)
	}
}

func TestFollowOverlongLine(t *testing.T) {
	root := open(t)
	w := &writer{t: t, root: root}
	f := follow(t, root, Filter{})
	w.add(1)
	w.raw(strings.Repeat("x", 3*lineLimit))
	expect(t, f, []string{"0"}, 0)
	w.raw("\n")
	expect(t, f, w.add(1), 0)
	w.rotate()
	expect(t, f, w.add(1), 0)
}

// A log that somebody cut or removed goes on from where it is then; that something may be missing is told.
func TestFollowWhatIsBegunAnew(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*os.Root) error
		missing int64
	}{
		"cut":          {func(r *os.Root) error { return truncate(r) }, Unknown},
		"removed":      {func(r *os.Root) error { return r.Remove(Path) }, Unknown},
		"both removed": {func(r *os.Root) error { return r.RemoveAll(folder) }, Unknown},
		"old removed":  {func(r *os.Root) error { return r.Remove(oldPath) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := open(t)
			w := &writer{t: t, root: root}
			f := follow(t, root, Filter{})
			w.add(3)
			w.rotate()
			w.add(2)
			if got, missing := catchUp(t, f); len(got) != 5 || missing != 0 {
				t.Fatalf("read %v, missed %d", got, missing)
			}
			if err := c.change(root); err != nil {
				t.Fatal(err)
			}
			expect(t, f, w.add(1), c.missing)
			w.rotate()
			expect(t, f, w.add(2), 0)
		})
	}
}

func truncate(root *os.Root) error {
	f, err := root.OpenFile(Path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// Whatever is written, put aside and looked at, in whatever order: every event is read or counted as missing, none is
// read twice, and all in order.
func TestFollowAnyOrder(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		root := open(t)
		w := &writer{t: t, root: root}
		f := follow(t, root, Filter{})
		var names []string
		var missing int64
		look := func() {
			got, lost := catchUp(t, f)
			names, missing = append(names, got...), missing+lost
		}
		w.add(1)
		look() // from here on it must not lose anything silently
		for range 30 {
			switch r.IntN(4) {
			case 0:
				look()
			case 1:
				if _, err := root.Lstat(Path); err == nil {
					w.rotate()
				}
			default:
				w.add(1 + r.IntN(3))
			}
		}
		w.add(1)
		look()
		if len(names)+int(missing) != w.n || !slices.IsSortedFunc(names, compareNumbers) || names[len(names)-1] != fmt.Sprint(w.n-1) {
			t.Fatalf("seed %d: of %d events read %v, missed %d", seed, w.n, names, missing)
		}
	}
}

// compareNumbers never finds two equal: a repetition is out of order.
func compareNumbers(a, b string) int {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	if x > y {
		return 1
	}
	return -1
}

const writesTo = "EVENTS_TEST_WRITES_TO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writesTo); dir != "" {
		writeForEver(dir)
		return
	}
	os.Exit(m.Run())
}

// writeForEver is a process that is killed while it writes. Its messages fill a file in some dozens of writes.
func writeForEver(dir string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	for n := 0; ; n += 100 {
		list := numbered(n, n+100)
		for i := range list {
			list[i].Message = strings.Repeat("x", messageLimit)
		}
		if err := Append(root, list); err != nil {
			panic(err)
		}
	}
}

// Processes write through several rotations and are killed in the middle, one after the other. The reader keeps up with
// them, or knows how much it has missed, and sees no half of an event.
func TestFollowKilledWriters(t *testing.T) {
	root := open(t)
	f := follow(t, root, Filter{})
	for range 2 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writesTo+"="+root.Name())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		last, seen := -1, 0
		for deadline := time.Now().Add(2 * time.Minute); seen < 6000 && time.Now().Before(deadline); {
			b, err := f.Next()
			if err != nil {
				t.Error(err)
				break
			}
			last, seen = inOrder(t, last, b), seen+len(b.Events)+int(b.Missing)
		}
		_ = cmd.Process.Kill() // it may have failed, which the next lines tell
		_ = cmd.Wait()
		if seen < 6000 {
			t.Fatalf("after %d events of the process no more came", seen)
		}
		catchUp(t, f)
	}
	w := &writer{t: t, root: root}
	expect(t, f, w.add(2), 0)
}

// inOrder checks that a batch goes on after event number last, and returns the number of its last one.
func inOrder(t *testing.T, last int, b Batch) int {
	t.Helper()
	if b.Missing == Unknown {
		t.Fatal("it does not know how much it missed")
	}
	for i, e := range b.Events {
		n, err := strconv.Atoi(e.Ref)
		if err != nil || i == 0 && n <= last || i > 0 && n != last+1 || e.Message != strings.Repeat("x", messageLimit) {
			t.Fatalf("event %q of %d bytes after %d", e.Ref, len(e.Message), last)
		}
		last = n
	}
	return last
}
