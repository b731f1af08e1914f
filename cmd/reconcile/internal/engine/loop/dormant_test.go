package loop

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// dormantFile is the file of dormant objects of a tree.
const dormantFile = ".reconcile/cache/dormant"

// newFinished makes a tree with finished DAGs, which are dormant after its run.
func newFinished(t *testing.T) *edits {
	t.Helper()
	e := &edits{t: t, dir: t.TempDir(), rnd: rand.New(rand.NewPCG(1, 3)), now: time.Now().Add(-time.Hour)}
	e.begin()
	for i := range finishedDAGs {
		e.finished(i)
	}
	e.run(e.dir, false)
	return e
}

// A tree of which objects are dormant answers as the whole tree does. Those that it is asked for stay dormant until there is another
// entry of them.
func TestTreeWithDormantObjects(t *testing.T) {
	e := newFinished(t)
	e.dag(0)
	s, all := e.open(e.dir, false), e.open(e.dir, true)
	defer s.Close()
	defer all.Close()
	s.Fresh()
	some, changed, was, err := s.LoadChanged(t.Context(), true)
	whole, err2 := all.Load(t.Context())
	if err != nil || err2 != nil || was == nil || !slices.Contains(changed, schemas.Ref{Kind: "DAG", Name: "d0"}) {
		t.Fatal(changed, was, err, err2)
	}
	if n := countDormant(some); n != finishedDAGs {
		t.Fatalf("%d objects are dormant, of %d that could be", n, finishedDAGs)
	}
	if got, want := readiness.Counts(some), readiness.Counts(whole); !slices.Equal(got, want) {
		t.Errorf("counts %v, of the whole tree %v", got, want)
	}
	if some.Len() != whole.Len() || !slices.Equal(some.Kinds(), whole.Kinds()) {
		t.Errorf("%d objects of %v, of the whole tree %d of %v", some.Len(), some.Kinds(), whole.Len(), whole.Kinds())
	}
	session := schemas.Ref{Kind: "Session", Name: "s0"}
	if got, want := some.Referrers(session), whole.Referrers(session); !slices.Equal(got, want) {
		t.Errorf("referrers %v, of the whole tree %v", got, want)
	}
	if got, want := some.ReferrersOf(session, "DAG"), whole.ReferrersOf(session, "DAG"); !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("DAGs %v, of the whole tree %v", got, want)
	}
	dormant := schemas.Ref{Kind: "DAG", Name: "f7"}
	if got, want := some.StatusOf(dormant), whole.StatusOf(dormant); !some.Exists(dormant) || want == nil || !reflect.DeepEqual(got, want) {
		t.Errorf("status %v, of the whole tree %v", got, want)
	}
	name := func(e *state.Entry) string { return e.Name + " " + e.Object.Digest + " " + e.Brief().Phase }
	paths := []string{whole.Entry(dormant).Object.Path, whole.Entry(schemas.Ref{Kind: "DAG", Name: "d0"}).Object.Path, "specs/none.yaml"}
	at, wantAt := names(some.EntriesAt(paths), name), names(whole.EntriesAt(paths), name)
	slices.Sort(at)
	slices.Sort(wantAt)
	if !slices.Equal(at, wantAt) || len(at) != 2 {
		t.Errorf("at %v: %v, of the whole tree %v", paths, at, wantAt)
	}
	if err := s.Settle(state.Summary{}); err != nil {
		t.Errorf("before anybody asks for all: %v", err)
	}
	got, want := names(some.Entries("DAG"), name), names(whole.Entries("DAG"), name)
	if !slices.Equal(got, want) {
		t.Errorf("entries %v, of the whole tree %v", got, want)
	}
	if n := countDormant(some); n != finishedDAGs {
		t.Errorf("after a look at all, %d objects are dormant", n)
	}
	woken := *some.Entry(dormant)
	next, changed, err := s.Refresh(t.Context(), some.With(&woken), []string{})
	if err != nil || countDormant(next) != finishedDAGs-1 || len(changed) > 0 || next.IsDormant(dormant) {
		t.Errorf("with another entry of one, %d are dormant and %v changed: %v", countDormant(next), changed, err)
	}
	if err := s.Settle(state.Summary{}); err != nil {
		t.Fatal(err)
	}
	if n := e.dormant(); n != finishedDAGs-1 {
		t.Errorf("after that tree was settled, %d are dormant", n)
	}
}

// openLater opens the store a minute later by the clock of its files: none is racy.
func (e *edits) openLater() *state.Store {
	e.t.Helper()
	s, err := state.Open(e.dir, state.Options{Kinds: controllers.Schemas(), Now: func() time.Time { return e.now },
		FileNow: func() time.Time { return time.Now().Add(time.Minute) }, Build: "test", DormantFrom: 1})
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}

// What a look has read of an edit, the next one finds in the cache.
func TestLooksReadAnEditOnce(t *testing.T) {
	e := newFinished(t)
	e.dag(0)
	var sizes []int64
	for range 3 {
		s := e.openLater()
		tree, err := s.LoadLazily(t.Context())
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		if x := tree.Entry(schemas.DAGKind.Ref("d0")); x == nil || x.Object == nil || countDormant(tree) != finishedDAGs {
			t.Errorf("the edited DAG is %+v, and %d objects are dormant", x, countDormant(tree))
		}
		info, err := os.Stat(filepath.Join(e.dir, ".reconcile/cache/tree"))
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, info.Size())
	}
	if sizes[1] != sizes[0] || sizes[2] != sizes[0] {
		t.Errorf("after looks without a change the cache has %d bytes", sizes)
	}
}

// A look does not use offsets in a cache that was written again, and then reads nothing twice.
func TestDormantObjectsInCacheThatWasWrittenAgain(t *testing.T) {
	e := newFinished(t)
	e.dag(0)
	cache := filepath.Join(e.dir, ".reconcile/cache/tree")
	if err := os.Remove(cache); err != nil {
		t.Fatal(err)
	}
	var sizes []int64
	for range 3 {
		s := e.openLater()
		tree, err := s.LoadLazily(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(tree.Entries(schemas.DAGKind.Name)); n <= finishedDAGs || countDormant(tree) > 0 {
			t.Errorf("%d DAGs, of which %d are dormant", n, countDormant(tree))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(cache); err == nil {
			sizes = append(sizes, info.Size())
		}
	}
	if len(sizes) < 3 || sizes[1] != sizes[2] {
		t.Errorf("after looks without a change the cache has %d bytes", sizes)
	}
	e.run(e.dir, false)
	if n := e.dormant(); n != finishedDAGs {
		t.Errorf("after a run, %d objects are dormant", n)
	}
}

// An action that names a node which its DAG does not have stays invalid, though the DAG rests.
func TestDisputedObjectsAreLoaded(t *testing.T) {
	e := newFinished(t)
	e.put("specs/actions/wrong.yaml", "Action", "wrong", "  {target: dag/f7, node: none, verb: skip}")
	e.run(e.dir, false)
	if n := e.dormant(); n != finishedDAGs-1 {
		t.Errorf("%d objects are dormant", n)
	}
	for i := range 2 {
		e.dag(i)
		e.compare("edit of another DAG")
	}
}

// TestOriginsWithDormantObjects: to find the files that the program made, no dormant object is loaded, and a finished DAG whose file may be
// the program's is not dormant.
func TestOriginsWithDormantObjects(t *testing.T) {
	e := newFinished(t)
	e.put("specs/flow.yaml", "Workflow", "flow", "  steps: [{id: a, agent: a0}]")
	e.put("specs/made.yaml", "DAG", "made", "  session: s0\n  workflow: {name: flow, start: go}\n  nodes: [{name: x, run: [\"true\"]}]")
	e.put("specs/fix.yaml", "DAG", "s0-fix-1", "  session: s0\n  fixes: s0\n  nodes: [{name: x, run: [\"true\"]}]")
	e.run(e.dir, false)
	e.dag(0)
	s, all := e.open(e.dir, false), e.open(e.dir, true)
	defer s.Close()
	defer all.Close()
	s.Fresh()
	some, _, was, err := s.LoadChanged(t.Context(), true)
	whole, err2 := all.Load(t.Context())
	if err != nil || err2 != nil || was == nil || countDormant(some) != finishedDAGs {
		t.Fatal(countDormant(some), was, err, err2)
	}
	paths := func(origins map[settle.Origin][]*schemas.Object) (out []string) {
		for is, list := range origins {
			for _, o := range list {
				out = append(out, fmt.Sprint(is, " ", o.Path))
			}
		}
		slices.Sort(out)
		return out
	}
	got, want := paths(controllers.Origins(some)), paths(controllers.Origins(whole))
	two := []string{"specs/made.yaml", "specs/fix.yaml"}
	if at, wantAt := paths(controllers.OriginsAt(some, two)), paths(controllers.OriginsAt(whole, two)); !slices.Equal(at, wantAt) || len(at) != 2 {
		t.Errorf("at %q: %q, of the whole tree %q", two, at, wantAt)
	}
	for _, own := range []string{fmt.Sprint(settle.OriginMade, " specs/made.yaml"), fmt.Sprint(settle.OriginRecord, " specs/fix.yaml")} {
		if !slices.Contains(want, own) {
			t.Errorf("%q is not among %q", own, want)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, of the whole tree %q", got, want)
	}
	if err := s.Settle(state.Summary{}); err != nil {
		t.Errorf("dormant objects were loaded: %v", err)
	}
}

// A damaged file of dormant objects costs a load of the whole tree.
func TestDamagedFileOfDormantObjects(t *testing.T) {
	e := newFinished(t)
	name := filepath.Join(e.dir, dormantFile)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	load := func(data []byte) (dormant int, known bool) {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
		s := e.open(e.dir, false)
		defer s.Close()
		s.Fresh()
		tree, _, was, err := s.LoadChanged(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		return countDormant(tree), was != nil
	}
	e.dag(0)
	if n, known := load(data); n != finishedDAGs || !known {
		t.Fatalf("%d dormant of a file without damage, known: %v", n, known)
	}
	for _, size := range []int{0, 30, 67, 68, len(data) / 2, len(data) - 1} {
		if n, known := load(data[:size]); n > 0 || known {
			t.Errorf("%d dormant of the first %d bytes of %d, known: %v", n, size, len(data), known)
		}
	}
	for _, at := range []int{0, 29, 37, 45, 61, 100, len(data) / 2, len(data) - 1} {
		bad := slices.Clone(data)
		bad[at] ^= 1
		if n, known := load(bad); n > 0 || known {
			t.Errorf("%d dormant although byte %d is wrong, known: %v", n, at, known)
		}
	}
}

func names(list []*state.Entry, of func(*state.Entry) string) (out []string) {
	for _, e := range list {
		out = append(out, of(e))
	}
	return out
}

// A run after an edit of a dormant object settles the tree, and so does one that finds the file of dormant objects damaged: the next one
// has nothing to do.
func TestFreshAfterEditsOfDormantObjects(t *testing.T) {
	e := newFinished(t)
	name := filepath.Join(e.dir, dormantFile)
	fresh := func() bool {
		s := e.open(e.dir, false)
		defer s.Close()
		_, ok := s.Fresh()
		return ok
	}
	settles := func(what string) {
		t.Helper()
		e.run(e.dir, false)
		if !fresh() {
			t.Errorf("after %s and a run, the next one has something to do", what)
		}
		if n := e.dormant(); n < finishedDAGs-1 {
			t.Errorf("after %s and a run, %d objects are dormant", what, n)
		}
	}
	settles("nothing")
	e.finishedAs(e.dir, "specs", "f7", 7, "edited")
	if fresh() {
		t.Error("an edit of a dormant object is not seen")
	}
	settles("an edit of a dormant object")
	damage := func() {
		if err := os.WriteFile(name, []byte("damaged"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	damage()
	if !fresh() {
		t.Error("a damaged cache makes work, although nothing was edited")
	}
	e.finishedAs(e.dir, "specs", "f8", 8, "edited")
	if fresh() {
		t.Error("an edit is not seen where the file of dormant objects is damaged")
	}
	settles("an edit beside a damaged file of dormant objects")
	damage()
	e.dag(0)
	settles("another edit beside a damaged file")
}
