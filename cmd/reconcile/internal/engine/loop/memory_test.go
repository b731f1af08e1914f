package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/observations"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// shelf is a memory with one file, which says what digest of which observation was taken in.
type shelf struct {
	store    *state.Store
	dir      string
	busy     int    // how often a lock cannot be had
	between  func() // what happens while it is written; may be nil
	settled  int
	compacts int
	told     []settle.Event
}

const shelfPath = "state/memory/issue-0.json"

func (m *shelf) Settle(_ context.Context, t *state.Tree) (MemoryResult, error) {
	if m.busy > 0 {
		m.busy--
		events := []settle.Event{observations.NewWarning("busy", time.Now())}
		return MemoryResult{Events: events}, fmt.Errorf("x: %w", state.ErrBusy)
	}
	m.settled++
	was := m.read()
	is := map[string]string{}
	out := MemoryResult{Edited: map[string]string{}}
	for _, e := range t.Entries(schemas.ObservationKind.Name) {
		switch old := was[e.Name]; {
		case e.Object == nil:
			is[e.Name] = old
		case old == "":
			is[e.Name] = e.Object.Digest
			out.Events = append(out.Events,
				observations.NewEvent(settle.MemoryStored, "a", 0, []string{e.Name}, 1, time.Now()))
		default:
			is[e.Name] = old
			if old != e.Object.Digest {
				out.Edited[e.Name] = old
			}
		}
	}
	if maps.Equal(was, is) {
		return out, nil
	}
	out.Wrote = 1
	if m.between != nil {
		m.between()
		m.between = nil
	}
	data, err := state.Encode(is)
	p := filepath.Join(m.dir, shelfPath)
	return out, errors.Join(err, os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p+"~", data, 0o644),
		os.Rename(p+"~", p))
}

func (m *shelf) read() map[string]string {
	data, err := os.ReadFile(filepath.Join(m.dir, shelfPath))
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if parts := strings.Split(line, `"`); len(parts) == 5 {
			out[parts[1]] = parts[3]
		}
	}
	return out
}

func (m *shelf) Compact(context.Context) (MemoryResult, error) {
	m.compacts++
	return MemoryResult{}, nil
}

func (m *shelf) Anchor(o *schemas.ObservationSpec) {
	for i := range o.Entries {
		o.Entries[i].Digests = map[string]string{}
		for _, p := range o.Entries[i].Anchors {
			o.Entries[i].Digests[p] = schemas.AnchorAbsent
		}
	}
}

func (m *shelf) Save() {}

func (m *shelf) DrainEvents() []settle.Event {
	out := m.told
	m.told = nil
	return out
}

func newRemembering(t *testing.T, dir string, a *actor) (*Loop, *shelf, *[]settle.Event) {
	l := newLoop(t, dir, a)
	m := &shelf{store: l.Store, dir: dir}
	var told []settle.Event
	l.Memory, l.Record = m, func(list []settle.Event) { told = append(told, list...) }
	return l, m, &told
}

const seen = "  agent: engineer\n  issue: 7\n  timestamp: 2026-02-27T10:00:00Z\n" +
	"  entries: [{category: decision, content: %s}]"

func observation(t *testing.T, dir, content string) {
	put(t, dir, "specs/observations/seen.yaml", fmt.Sprintf(envelope, "Observation", "seen", fmt.Sprintf(seen, content)))
}

func once(t *testing.T, l *Loop) Result {
	t.Helper()
	r, err := l.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What an agent learned is a spec, and in the memory, before the agent that needs it starts.
func TestLearnedBeforeTheNextStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: first, agent: engineer, prompt: go}\n"+
			"    - {name: second, needs: [first], agent: engineer, prompt: on}")
		put(t, dir, "specs/agents/engineer.yaml",
			fmt.Sprintf(envelope, "Agent", "engineer", "  runner: {command: {argv: [x]}}"))
		var known []string
		a := newActor(func(node string, _ int) (time.Duration, string) {
			if node == "second" {
				data, _ := os.ReadFile(filepath.Join(dir, shelfPath)) // none: known stays empty
				known = strings.Fields(string(data))
			}
			return time.Second, schemas.OutcomeSucceeded
		})
		a.edit = func(r *schemas.Run) {
			if r.Node == "first" {
				r.Learned = []schemas.ObservationEntry{
					{Category: schemas.CategoryDecision, Content: "Go on.", Anchors: []string{"a.md"}}}
				r.Issue, r.SourceTokens = 7, 12
			}
		}
		l, m, told := newRemembering(t, dir, a)
		r := once(t, l)
		specs := r.Tree.Entries(schemas.ObservationKind.Name)
		if len(specs) != 1 || len(known) != 4 || m.compacts != 1 {
			t.Fatalf("%d observations, the second agent found %q, %d compactions", len(specs), known, m.compacts)
		}
		o := schemas.SpecAs[*schemas.ObservationSpec](specs[0].Object)
		if o.Agent != "engineer" || o.Issue != 7 || o.Session != "work" || o.SourceTokens != 12 || o.Run == "" ||
			!reflect.DeepEqual(o.Entries[0].Digests, map[string]string{"a.md": schemas.AnchorAbsent}) {
			t.Errorf("the observation is %+v", o)
		}
		isStored := func(e settle.Event) bool { return e.Remembered != nil && e.Reason == "Stored" }
		if !slices.ContainsFunc(*told, isStored) {
			t.Errorf("nobody was told of it: %v", *told)
		}
	})
}

// An observation that is edited after it was taken in is stalled, and what it said before stands, until it is put back.
func TestEditedObservation(t *testing.T) {
	dir := tree(t, "    - {name: one, run: [x]}")
	a := newActor(always(0, schemas.OutcomeSucceeded))
	observation(t, dir, "First.")
	l, _, _ := newRemembering(t, dir, a)
	once(t, l)
	for _, step := range []struct {
		content string
		stalled bool
	}{{"First.", false}, {"Second.", true}, {"Second.", true}, {"Third.", true}, {"First.", false}} {
		observation(t, dir, step.content)
		l, m, _ := newRemembering(t, dir, newActor(always(0, schemas.OutcomeSucceeded)))
		r := once(t, l)
		e := r.Tree.Entry(schemas.Ref{Kind: schemas.ObservationKind.Name, Name: "seen"})
		_, err := os.Stat(filepath.Join(dir, "state/observations/seen.json"))
		if stalled := e.HasStatus(); stalled != step.stalled || os.IsNotExist(err) == step.stalled {
			t.Fatalf("with %q: status %v, file %v", step.content, e.Status(), err)
		}
		if step.stalled {
			base := e.Status().Base()
			if c := base.Condition(schemas.Stalled); c == nil || c.Reason != settle.ReasonImmutable ||
				base.ObservedDigest != m.read()["seen"] {
				t.Errorf("with %q the status is %+v", step.content, base)
			}
			if out := settle.Tree(l.mustLoad(t), time.Now(), nil); len(out.Changed) > 0 {
				t.Errorf("who does not look into the memory decides otherwise on %v", out.Changed)
			}
		}
	}
}

func (l *Loop) mustLoad(t *testing.T) *state.Tree {
	t.Helper()
	tr, err := l.Store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// A run with nothing to do stops at the fingerprint, also after another process wrote into the memory and a run looked.
func TestMemoryIsAFixedPoint(t *testing.T) {
	dir := tree(t, "    - {name: one, run: [x]}")
	observation(t, dir, "First.")
	run := func() *shelf {
		t.Helper()
		l, m, _ := newRemembering(t, dir, newActor(always(0, schemas.OutcomeSucceeded)))
		s, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		l.Store, m.store = s, s
		once(t, l)
		return m
	}
	fresh := func() bool {
		t.Helper()
		s, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		sum, ok := s.Fresh()
		if ok && (sum.Wake.IsZero() || sum.Wake.After(time.Now().Add(compactEvery))) {
			t.Errorf("the next look at what is to be compacted is at %v", sum.Wake)
		}
		return ok
	}
	if run(); !fresh() {
		t.Fatal("the first run does not settle")
	}
	put(t, dir, "state/memory/records/removed-7-1-abcdef.json", "{}")
	if fresh() {
		t.Fatal("a new record goes unnoticed")
	}
	if m := run(); m.settled != 1 || !fresh() {
		t.Errorf("the memory was settled %d times, and the tree is not fresh", m.settled)
	}
}

// A run after a settled one looks at the memory only where an observation or a file of the memory changed, and once a day.
func TestMemorySinceSettled(t *testing.T) {
	dir := tree(t, "    - {name: one, run: [x]}")
	observation(t, dir, "First.")
	var ahead time.Duration
	for _, c := range []struct {
		what              string
		change            func()
		settled, compacts int
	}{
		{"the first run", func() {}, 2, 1},
		{"a DAG changed", func() { putDAG(t, dir, "    - {name: one, run: [y]}") }, 0, 0},
		{"an observation changed", func() { observation(t, dir, "Second.") }, 1, 0},
		{"its edit is known", func() { putDAG(t, dir, "    - {name: one, run: [z]}") }, 0, 0},
		{"the memory changed", func() { put(t, dir, "state/memory/records/removed-7-1-abcdef.json", "{}") }, 1, 0},
		{"the settings changed", func() {
			put(t, dir, "reconcile.yaml", fmt.Sprintf(envelope, "Settings", "settings", "  memory: {recallBudget: 1000}"))
		}, 1, 1},
		{"a day later", func() { ahead = compactEvery }, 1, 1},
	} {
		c.change()
		l, m, _ := newRemembering(t, dir, newActor(always(0, schemas.OutcomeSucceeded)))
		now := func() time.Time { return time.Now().Add(ahead) }
		s, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: now, FileNow: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		l.Now, l.Store, m.store = now, s, s
		r := once(t, l)
		if m.settled != c.settled || m.compacts != c.compacts {
			t.Errorf("%s: settled %d times, want %d; compacted %d times, want %d", c.what, m.settled, c.settled, m.compacts, c.compacts)
		}
		edited := r.Tree.Entry(schemas.ObservationKind.Ref("seen")).HasStatus()
		if want := c.what != "the first run" && c.what != "a DAG changed"; edited != want {
			t.Errorf("%s: the observation counts as edited: %v", c.what, edited)
		}
		s.Close()
	}
}

// What another process writes into the memory while it is being settled is looked at, too.
func TestMemoryChangedMeanwhile(t *testing.T) {
	dir := tree(t, "    - {name: one, run: [x]}")
	observation(t, dir, "First.")
	l, m, _ := newRemembering(t, dir, newActor(always(0, schemas.OutcomeSucceeded)))
	looks := 0
	m.between = func() {
		put(t, dir, "state/memory/records/removed-7-1-abcdef.json", "{}")
		looks = m.settled
	}
	once(t, l)
	if looks == 0 || m.settled <= looks {
		t.Errorf("the record came in look %d of %d", looks, m.settled)
	}
}

// A lock that cannot be had does not fail the run; it is tried again at its end, and until it was had the tree does not
// count as settled.
func TestBusyMemory(t *testing.T) {
	for busy, settled := range []bool{true, true, false} {
		dir := tree(t, "    - {name: one, run: [x]}")
		observation(t, dir, "First.")
		l, m, told := newRemembering(t, dir, newActor(always(0, schemas.OutcomeSucceeded)))
		m.busy = busy
		s, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		l.Store = s
		var whole []bool
		l.Commit = func(_ context.Context, _ *state.Tree, is Scope) (Committed, error) {
			whole = append(whole, is.MemorySettled)
			return Committed{}, nil
		}
		if r := once(t, l); r.MemoryBusy == settled || !slices.Equal(whole, []bool{settled}) {
			t.Errorf("busy %d times: held %t, committed as whole %v", busy, r.MemoryBusy, whole)
		}
		if _, fresh := s.Fresh(); fresh != settled || len(m.read()) == 0 == settled {
			t.Errorf("busy %d times: fresh %t, the memory has %v", busy, fresh, m.read())
		}
		warned := slices.ContainsFunc(*told, func(e settle.Event) bool { return e.Warning })
		if warned != (busy > 0) {
			t.Errorf("busy %d times: %v", busy, *told)
		}
	}
}

// A watcher takes in what others write, and is not woken by what it writes itself; once a day it looks for what is to
// be compacted.
func TestWatchTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: one, run: [x]}")
		observation(t, dir, "First.")
		l, m, _ := newRemembering(t, dir, newActor(always(0, schemas.OutcomeSucceeded)))
		ctx, stop := context.WithCancel(t.Context())
		hints := make(chan Hint)
		done := make(chan error)
		go func() { _, err := l.Watch(ctx, hints); done <- err }()
		time.Sleep(time.Minute)
		synctest.Wait()
		hints <- Hint{Paths: []string{shelfPath, "specs/observations/seen.yaml"}}
		time.Sleep(time.Minute)
		synctest.Wait()
		if m.settled != 2 || m.compacts != 1 {
			t.Errorf("own writes: settled %d times, compacted %d times", m.settled, m.compacts)
		}
		m.told = append(m.told, observations.NewWarning("told", time.Now()))
		put(t, dir, "state/memory/records/removed-7-1-abcdef.json", "{}")
		hints <- Hint{Paths: []string{"state/memory/records/removed-7-1-abcdef.json"}}
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		if m.settled != 3 || m.compacts != 3 {
			t.Errorf("after two days: settled %d times, compacted %d times", m.settled, m.compacts)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Without memory nothing of it is read or written, and nothing is derived for it.
func TestMemoryTurnedOff(t *testing.T) {
	dir := tree(t, "    - {name: one, run: [x]}")
	put(t, dir, "reconcile.yaml", fmt.Sprintf(envelope, "Settings", "settings", "  memory: {enabled: false}"))
	observation(t, dir, "First.")
	a := newActor(always(0, schemas.OutcomeSucceeded))
	a.edit = func(r *schemas.Run) {
		r.Learned = []schemas.ObservationEntry{{Category: schemas.CategoryDecision, Content: "Go on."}}
	}
	l, m, _ := newRemembering(t, dir, a)
	r := once(t, l)
	if m.settled+m.compacts > 0 || len(r.Tree.Entries(schemas.ObservationKind.Name)) != 1 {
		t.Errorf("settled %d times, %v", m.settled, r.Tree.Entries(schemas.ObservationKind.Name))
	}
}
