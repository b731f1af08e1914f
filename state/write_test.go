package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	quick "github.com/segmentio/encoding/json"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
)

// locked runs f under the lock of the tree.
func locked(t testing.TB, s *Store, f func()) {
	t.Helper()
	l, err := s.Lock(t.Context())
	must(t, err)
	f()
	must(t, l.Release())
}

func statusOf(t testing.TB, ref schemas.Ref, phase string) []byte {
	t.Helper()
	k, _ := testKinds.Find(ref.Kind)
	st := k.NewStatus()
	st.Base().Phase = phase
	b, err := EncodeStatus(ref, st)
	must(t, err)
	return b
}

// write writes under the lock and returns how many files it wrote.
func write(t testing.TB, s *Store, changes ...Change) int {
	t.Helper()
	n, err := s.Write(t.Context(), changes)
	must(t, err)
	return n
}

func TestWriteNeedsTheLock(t *testing.T) {
	s := open(t, t.TempDir())
	load(t, s)
	c := []Change{{Path: s.StatusPath(health), Data: statusOf(t, health, "Active")}}
	if _, err := s.Write(t.Context(), c); !errors.Is(err, errNotLocked) {
		t.Errorf("error %v", err)
	}
	locked(t, s, func() { write(t, s, c...) })
	if _, err := s.Write(t.Context(), c); err != nil {
		t.Errorf("nothing is to be written, but: %v", err)
	}
}

// TestWriteOfManyChecksTheLock checks that of many files each batch is written only while the lock is ours.
func TestWriteOfManyChecksTheLock(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	load(t, s)
	start := time.Now()
	var looks atomic.Int64 // the lock is too old when it is looked at before the second batch
	s.locks.Now = func() time.Time {
		if looks.Load() > 0 && looks.Add(1) > 3 {
			return start.Add(time.Minute)
		}
		return start
	}
	changes := make([]Change, Batch+1)
	for i := range changes {
		ref := schemas.Ref{Kind: health.Kind, Name: fmt.Sprintf("s%d", i)}
		changes[i] = Change{Path: s.StatusPath(ref), Data: statusOf(t, ref, "Active")}
	}
	locked(t, s, func() {
		looks.Store(1)
		if _, err := s.Write(t.Context(), changes); !errors.Is(err, ErrStolen) {
			t.Errorf("Write = %v", err)
		}
		looks.Store(0)
	})
	if got := len(load(t, open(t, dir)).Entries(health.Kind)); got != Batch {
		t.Errorf("%d files were written, want %d", got, Batch)
	}
}

func TestWriteLeavesEqualFilesAlone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	load(t, s)
	p := s.StatusPath(health)
	c := []Change{{Path: p, Data: statusOf(t, health, "Active")}}
	locked(t, s, func() { write(t, s, c...) })
	before, err := disk.Lstat(s.root, p)
	must(t, err)
	gen := s.generation()
	for _, store := range []*Store{s, open(t, dir)} {
		locked(t, store, func() {
			if n := write(t, store, append(c, Change{Path: "state/sessions/none.json"})...); n != 0 {
				t.Errorf("%d files were written", n)
			}
		})
	}
	after, err := disk.Lstat(s.root, p)
	must(t, err)
	if before != after || s.generation() != gen {
		t.Error("an equal file was written again")
	}
	locked(t, s, func() { write(t, s, Change{Path: p}) })
	if _, err := os.Stat(filepath.Join(dir, "state")); !os.IsNotExist(err) {
		if _, err := os.Stat(filepath.Join(dir, "state/sessions")); !os.IsNotExist(err) {
			t.Error("an empty folder is left")
		}
	}
}

// TestOthersWrites checks that a process sees what another one wrote without being told where.
func TestOthersWrites(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	tree := load(t, b)
	load(t, a)
	locked(t, a, func() {
		write(t, a, Change{Path: a.StatusPath(health), Data: statusOf(t, health, "Active")})
	})
	tree, refs := refresh(t, b, tree)
	if !slices.Equal(refs, []schemas.Ref{health}) || tree.Entry(health).Status().Base().Phase != "Active" {
		t.Errorf("refs %v", refs)
	}
	if _, refs = refresh(t, b, tree); len(refs) != 0 {
		t.Errorf("then refs %v", refs)
	}
}

func TestMoveAside(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"specs/health.yaml": sessionYAML, "state/sessions/health.json": "{", "state/sessions/left.json": "}"})
	s := open(t, dir)
	tree := load(t, s)
	if _, err := s.MoveAside(t.Context(), noneLeft); !errors.Is(err, errNotLocked) {
		t.Errorf("without the lock: %v", err)
	}
	locked(t, s, func() {
		write(t, s, Change{Path: s.StatusPath(health), Data: statusOf(t, health, "Active")})
		moved, err := s.MoveAside(t.Context(), noneLeft)
		must(t, err)
		if !slices.Equal(moved, []string{"state/sessions/left.json"}) {
			t.Errorf("moved %v", moved)
		}
	})
	for name, want := range map[string]string{"health": "{", "left": "}"} {
		got, err := os.ReadFile(filepath.Join(dir, damagedDir, "state/sessions", name+".json.1"))
		if err != nil || string(got) != want {
			t.Errorf("set aside: %q, %v", got, err)
		}
	}
	tree, _ = refresh(t, s, tree)
	if ps := tree.Problems(); len(ps) != 0 || tree.Entry(health).Status().Base().Phase != "Active" {
		t.Errorf("problems %v", ps)
	}
	if got, want := dump(tree), dump(load(t, open(t, dir))); got != want {
		t.Errorf("refreshed:\n%s\nloaded:\n%s", got, want)
	}
}

// TestCarry is how a damaged file leaves a state folder that is on another file system.
func TestCarry(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"state/dags/bad.json": "<<<<<<<", ".reconcile/damaged/x": "", ".reconcile/tmp/x": ""})
	const to = ".reconcile/damaged/state/dags/bad.json.1"
	if err := open(t, dir).copyAcross("state/dags/bad.json", to); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, to)); err != nil || string(data) != "<<<<<<<" {
		t.Errorf("read %q, %v", data, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "state/dags/bad.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the original: %v", err)
	}
}

func TestFold(t *testing.T) {
	dir := t.TempDir()
	const p, lines = "state/agent-status.json", 20
	var wg sync.WaitGroup
	for i := range 4 {
		s := open(t, dir)
		wg.Go(func() {
			for range lines {
				err := s.Fold(t.Context(), p, func(old []byte) ([]byte, error) { return append(slices.Clone(old), byte('a'+i)), nil })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := os.ReadFile(filepath.Join(dir, p))
	must(t, err)
	for i := range 4 {
		if n := strings.Count(string(got), string(rune('a'+i))); n != lines {
			t.Errorf("%d of %d updates of %d are left", n, lines, i)
		}
	}
	s := open(t, dir)
	gen := s.generation()
	must(t, s.Fold(t.Context(), p, func(old []byte) ([]byte, error) { return old, nil }))
	if s.generation() != gen {
		t.Error("a fold that changes nothing wrote")
	}
	no := errors.New("no")
	if err := s.Fold(t.Context(), p, func([]byte) ([]byte, error) { return nil, no }); !errors.Is(err, no) {
		t.Errorf("error %v", err)
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	load(t, s)
	j := journal(t, s)
	var runs []schemas.Run
	for i := 1; i <= 6; i++ {
		r := finished(i)
		if i == 1 {
			r.NodeKey = "sha256:now"
		}
		runs = append(runs, r)
	}
	must(t, j.Finish(runs))
	must(t, j.Close())
	st := &schemas.DAGStatus{Nodes: schemas.NodeStatusesOf(map[string]schemas.NodeStatus{"build": {Key: "sha256:now"}})}
	b, err := EncodeStatus(checks, st)
	must(t, err)
	locked(t, s, func() { write(t, s, Change{Path: s.StatusPath(checks), Data: b}) })
	tree := load(t, s)
	expect(t, tree.Entry(checks), "2 3 4 5 6 1", "") // by node, then key
	locked(t, s, func() { must(t, s.Prune(t.Context(), tree, 2)) })
	expect(t, load(t, open(t, dir)).Entry(checks), "5 6 1", "")
}

// TestFresh changes one thing after another: whatever a run depends on makes the tree stale.
func TestFresh(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	build := "one"
	openAt := func() *Store {
		s, err := Open(dir, Options{Kinds: testKinds, Now: func() time.Time { return now }, FileNow: time.Now, Build: build})
		must(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	file := func(p, content string) func() { return func() { put(t, dir, map[string]string{p: content}) } }
	remove := func(p string) func() { return func() { must(t, os.RemoveAll(filepath.Join(dir, p))) } }
	file("specs/checks.yaml", dagYAML)()
	file("specs/health.yaml", sessionYAML)()
	file("src/main.go", "package main")()
	wake := time.Hour
	for _, c := range []struct {
		what   string
		change func()
	}{
		{"a spec was changed", file("specs/health.yaml", sessionYAML+"# x\n")},
		{"a spec was added", file("specs/new.yaml", "{")},
		{"a spec was removed", remove("specs/new.yaml")},
		{"a status was written", file("state/sessions/health.json", string(statusOf(t, health, "x")))},
		{"a projection was written", file("state/agent-status.json", "{}")},
		{"a record appeared", file("state/runs/dags/checks/build-1.json", "{}")},
		{"the settings appeared", file("reconcile.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {}\n")},
		{"the settings vanished", remove("reconcile.yaml")},
		{"an input was changed", file("src/main.go", "package other")},
		{"an input was added", file("src/deep/new.go", "package deep")},
		{"an input was removed", remove("src/deep")},
		{"a process claims something", file(journalDir+"/1-1"+journalSuffix, "x")},
		{"that process is gone", remove(journalDir)},
		{"another program runs", func() { build = "two" }},
		{"something is due", func() { now = now.Add(2 * wake) }},
		{"the clock was set back", func() { now = now.Add(-24 * wake) }},
		{"local files are gone", remove(localDir)},
	} {
		s := openAt()
		load(t, s)
		must(t, s.Settle(Summary{Exit: 4, Wake: now.Add(wake), Counts: []Count{{"DAG", 1, 2}}, Lines: []string{"x"}}))
		sum, ok := openAt().Fresh()
		if !ok && !strings.HasPrefix(c.what, "that process") {
			t.Errorf("before %s: not fresh", c.what)
		}
		if ok && (sum.Exit != 4 || sum.Counts[0].Total != 2 || sum.Lines[0] != "x") {
			t.Errorf("the summary is %+v", sum)
		}
		c.change()
		if _, ok := openAt().Fresh(); ok {
			t.Errorf("fresh although %s", c.what)
		}
	}
}

// TestSettleNotices checks that what was changed behind the store's back does not count as settled, and that what another
// process settled, which looked, stays.
func TestSettleNotices(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"specs/health.yaml": sessionYAML})
	s := open(t, dir)
	load(t, s)
	put(t, dir, map[string]string{"specs/health.yaml": sessionYAML + "\n"})
	must(t, s.Settle(Summary{}))
	if _, ok := s.Fresh(); ok {
		t.Error("fresh although a spec was changed since it was looked at")
	}
	peer := open(t, dir)
	load(t, peer)
	must(t, peer.Settle(Summary{}))
	if err := s.Settle(Summary{}); !errors.Is(err, ErrChanged) {
		t.Errorf("settled over what another process settled: %v; want ErrChanged", err)
	}
	if _, ok := s.Fresh(); !ok {
		t.Error("what another process settled, which had looked at the change, is gone")
	}
}

func FuzzStatus(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"reconcile.dev/v1alpha1","kind":"DAG","metadata":{"name":"checks"},"status":{"phase":"Failed","nodes":{"a":{"state":"Failed","exitCode":1}}}}`))
	f.Add([]byte("{\n<<<<<<< HEAD\n"))
	k, _ := testKinds.Find("DAG")
	f.Fuzz(func(t *testing.T, data []byte) {
		st, err := new(decodeBuffer).decodeStatus(k, "checks", data, nil)
		if err != nil {
			return
		}
		b, err := EncodeStatus(checks, st)
		if err != nil {
			t.Skip() // a time that JSON cannot say
		}
		plain := k.NewStatus()
		err = quick.Unmarshal(data, &envelope{Status: plain})
		if p, err2 := EncodeStatus(checks, plain); err != nil || err2 != nil || string(p) != string(b) {
			t.Fatalf("%s: %s, without packing %s (%v, %v)", data, b, p, err, err2)
		}
		again, err := new(decodeBuffer).decodeStatus(k, "checks", b, nil)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		c, err := EncodeStatus(checks, again)
		if err != nil || string(b) != string(c) {
			t.Fatalf("%s, then %s (%v)", b, c, err)
		}
	})
}
