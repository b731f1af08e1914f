package memstore_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
)

var noon = time.Date(2026, 2, 27, 12, 0, 0, 0, time.UTC)

// tree is a tree with a memory, as one process has it.
type tree struct {
	*memstore.Files
	t     *testing.T
	dir   string
	store *state.Store
	told  []string // warnings
	now   time.Time
}

func newTree(t *testing.T) *tree { return openTree(t, t.TempDir()) }

// openTree is another process's hold on the same tree.
func openTree(t *testing.T, dir string) *tree {
	t.Helper()
	x := &tree{t: t, dir: dir, now: noon}
	now := func() time.Time { return x.now }
	store, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: now, FileNow: time.Now, Build: "test"})
	if err != nil {
		t.Fatal(err)
	}
	x.store = store
	x.Files = memstore.Open(store, memstore.Options{
		Now: now, Kinds: controllers.Schemas(), Warn: func(s string) { x.told = append(x.told, s) },
	})
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// spec is a capture with an entry for each content.
func spec(agent string, issue int, at time.Time, contents ...string) *schemas.ObservationSpec {
	s := &schemas.ObservationSpec{Agent: agent, Issue: issue, Session: "s1", Timestamp: schemas.NewTime(at)}
	for _, c := range contents {
		s.Entries = append(s.Entries, schemas.ObservationEntry{Category: schemas.CategoryDecision, Content: c, Summary: c[:min(len(c), 60)]})
	}
	return s
}

func (x *tree) capture(s *schemas.ObservationSpec) memstore.Captured {
	x.t.Helper()
	c, err := x.Capture(x.t.Context(), s)
	if err != nil {
		x.t.Fatal(err)
	}
	if c.Held {
		x.t.Fatalf("held: %v", x.told)
	}
	return c
}

// settle is what a run of the loop does.
func (x *tree) settle() memstore.Settled {
	x.t.Helper()
	return x.settleWith(x.Settle)
}

func (x *tree) settleWith(settle func(context.Context, *state.Tree) (memstore.Settled, error)) memstore.Settled {
	x.t.Helper()
	l, err := x.store.Lock(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() {
		if err := l.Release(); err != nil {
			x.t.Error(err)
		}
	}()
	t, err := x.store.Load(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	out, err := settle(x.t.Context(), t)
	if err != nil {
		x.t.Fatal(err)
	}
	return out
}

func (x *tree) read(path string) []byte {
	x.t.Helper()
	data, err := os.ReadFile(filepath.Join(x.dir, path))
	if err != nil {
		x.t.Fatal(err)
	}
	return data
}

func (x *tree) write(path string, data []byte) {
	x.t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(x.dir, path)), 0o777); err != nil {
		x.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(x.dir, path), data, 0o666); err != nil {
		x.t.Fatal(err)
	}
}

const manifestPath = "state/memory/manifest.json"

// check compares the manifest with the issue files.
func (x *tree) check() *schemas.MemoryManifest {
	x.t.Helper()
	m, err := memory.ParseManifest(x.read(manifestPath))
	if err != nil {
		x.t.Fatalf("manifest: %v", err)
	}
	var want []schemas.ObservationIndex
	files, err := filepath.Glob(filepath.Join(x.dir, "state/memory/issue-*.json"))
	if err != nil {
		x.t.Fatal(err)
	}
	for _, p := range files {
		data, err := os.ReadFile(p)
		if err != nil {
			x.t.Fatal(err)
		}
		f, err := memory.Parse(data)
		if err != nil {
			x.t.Fatalf("%s: %v", p, err)
		}
		for i := range f.Observations {
			want = append(want, f.Observations[i].Index())
		}
	}
	if got := memory.Manifest(want); !bytes.Equal(got, x.read(manifestPath)) {
		x.t.Fatalf("the manifest is not that of the issue files: %d entries, %d observations", len(m.Entries), len(want))
	}
	return m
}

func ids(rows []memstore.Row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return out
}

func (x *tree) list(f memstore.Filter) []string {
	x.t.Helper()
	rows, err := x.List(x.t.Context(), f)
	if err != nil {
		x.t.Fatal(err)
	}
	return ids(rows)
}

func TestT2_StoreAndRetrieveByIssue(t *testing.T) {
	x := newTree(t)
	a := x.capture(spec("engineer", 29, noon, "Chose per-issue JSON files for observation storage", "Locks are taken issue first"))
	b := x.capture(spec("architect", 30, noon.Add(time.Hour), "The manifest is derived from the issue files"))
	if len(a.Observations) != 2 || len(b.Observations) != 1 || a.Tokens == 0 {
		t.Fatalf("%+v, %+v", a, b)
	}
	got, err := x.ByIssue(t.Context(), 29)
	if err != nil || len(got) != 2 || got[0].ID != a.Observations[0].ID || got[0].Source != a.Name {
		t.Fatalf("%+v, %v", got, err)
	}
	if o, err := x.ByID(t.Context(), b.Observations[0].ID); err != nil || o.Content != "The manifest is derived from the issue files" {
		t.Fatalf("%+v, %v", o, err)
	}
	if m := x.check(); len(m.Entries) != 3 {
		t.Errorf("%d entries in the manifest", len(m.Entries))
	}
	if s := x.settle(); s.Wrote || len(s.Stored) != 0 || len(s.Edited) != 0 {
		t.Errorf("settled again: %+v", s)
	}
	// Another process finds the same.
	y := openTree(t, x.dir)
	if got := y.list(memstore.Filter{}); len(got) != 3 {
		t.Errorf("listed %q", got)
	}
	again := y.capture(spec("engineer", 29, noon, "Chose per-issue JSON files for observation storage", "Locks are taken issue first"))
	if !again.Known || len(again.Observations) != 0 || again.Name != a.Name {
		t.Errorf("captured twice: %+v", again)
	}
	if len(x.told)+len(y.told) != 0 {
		t.Errorf("warned: %q, %q", x.told, y.told)
	}
}

func TestSettleTakesInSpecs(t *testing.T) {
	x := newTree(t)
	s := spec("engineer", 7, noon, "Retries are limited to three")
	src, err := document.Spec(schemas.Ref{Kind: "Observation", Name: "by-hand"}, s)
	if err != nil {
		t.Fatal(err)
	}
	x.write("specs/observations/by-hand.yaml", src)
	got := x.settle()
	if len(got.Stored) != 1 || got.Stored[0].Agent != "engineer" || got.Stored[0].Issue != 7 || len(got.Stored[0].IDs) != 1 || !got.Wrote {
		t.Fatalf("%+v", got)
	}
	first := x.read("state/memory/issue-7.json")
	x.check()
	if again := x.settle(); again.Wrote || len(again.Stored) != 0 {
		t.Errorf("settled again: %+v", again)
	}
	if len(x.told) != 0 {
		t.Errorf("warned: %q", x.told)
	}
	// An edit changes nothing and is reported, each time.
	x.write("specs/observations/by-hand.yaml", bytes.ReplaceAll(src, []byte("three"), []byte("five")))
	for range 2 {
		if got = x.settle(); len(got.Edited) != 1 || got.Edited["by-hand"] == "" || got.Wrote {
			t.Errorf("after an edit: %+v", got)
		}
	}
	// A broken one counts as existing.
	x.write("specs/observations/by-hand.yaml", []byte("kind: Observation\nmetadata: {name: by-hand}\nspec: [\n"))
	x.settle()
	if !bytes.Equal(first, x.read("state/memory/issue-7.json")) {
		t.Error("a broken spec changed the issue file")
	}
	// What is gone is gone.
	if err := os.Remove(filepath.Join(x.dir, "specs/observations/by-hand.yaml")); err != nil {
		t.Fatal(err)
	}
	x.settle()
	if got := x.list(memstore.Filter{}); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
	x.check()
}

func TestSearchFindsAndFilters(t *testing.T) {
	x := newTree(t)
	x.capture(spec("engineer", 1, noon, "Use getUserByID in src/db/adapter.go for lookups", "The cache expires after an hour"))
	x.capture(spec("tester", 2, noon.Add(48*time.Hour), "Lookups by user fail without an index"))
	find := func(q memstore.Query) []string {
		t.Helper()
		rows, err := x.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Score <= 0 || r.Tokens <= 0 || r.Summary == "" {
				t.Errorf("%+v", r)
			}
		}
		return ids(rows)
	}
	one := 1
	for name, c := range map[string]struct {
		q    memstore.Query
		want int
	}{
		"parts of identifiers": {memstore.Query{Text: "user"}, 2}, "a path": {memstore.Query{Text: "adapter"}, 1},
		"agent": {memstore.Query{Text: "user", Filter: memstore.Filter{Agent: "tester"}}, 1},
		"issue": {memstore.Query{Text: "user", Filter: memstore.Filter{Issue: &one}}, 1},
		"since": {memstore.Query{Text: "user", Filter: memstore.Filter{Since: noon.Add(time.Hour)}}, 1},
		"until": {memstore.Query{Text: "user cache", Filter: memstore.Filter{Until: noon.Add(time.Hour)}}, 2},
		"limit": {memstore.Query{Text: "user cache", Limit: 1}, 1}, "nothing": {memstore.Query{Text: "kubernetes"}, 0},
		"category": {memstore.Query{Text: "user", Filter: memstore.Filter{Category: schemas.CategoryError}}, 0},
	} {
		if got := find(c.q); len(got) != c.want {
			t.Errorf("%s: %q, want %d", name, got, c.want)
		}
	}
	x.capture(spec("engineer", 1, noon.Add(time.Hour), "Users are looked up by mail now"))
	if got := find(memstore.Query{Text: "mail"}); len(got) != 1 {
		t.Errorf("what was just captured is not found: %q", got)
	}
}

func TestHostileNames(t *testing.T) {
	x := newTree(t)
	for _, agent := range []string{"", "../evil", "a/b", "..", ".git", "A", "a\x00b", "con", strings.Repeat("a", 64), "e\u202e"} {
		if c, err := x.Capture(t.Context(), spec(agent, 1, noon, "text")); err == nil {
			t.Errorf("agent %q: %+v", agent, c)
		}
		if _, err := x.Recall(t.Context(), memstore.Request{Agent: agent, Issue: 1}); err == nil {
			t.Errorf("recall for agent %q", agent)
		}
	}
	for _, session := range []string{"../../evil", "a/b", "..\\x"} {
		s := spec("engineer", 1, noon, "text")
		s.Session = session
		if c, err := x.Capture(t.Context(), s); err == nil {
			t.Errorf("session %q: %+v", session, c)
		}
	}
	if _, err := x.Capture(t.Context(), spec("engineer", -1, noon, "text")); err == nil {
		t.Error("issue -1 was accepted")
	}
	for _, id := range []string{"", "../manifest", "obs-a-1-1-../../x", "obs-../../x-1-1-abcdef", "obs-a-1-1-ABCDEF"} {
		if o, err := x.ByID(t.Context(), id); err == nil {
			t.Errorf("id %q: %+v", id, o)
		}
		if err := x.Remove(t.Context(), []string{id}, "me", ""); err == nil {
			t.Errorf("removed %q", id)
		}
	}
	entries, err := os.ReadDir(x.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != ".reconcile" {
			t.Errorf("%s was written", e.Name())
		}
	}
	for _, p := range []string{"../x", "/etc/passwd", ".git/config", "a/.GIT/config", ".reconcile/x", "state/memory/manifest.json", "a\\..\\b", "."} {
		if x.Exists(p) || x.Digest(p) != "" {
			t.Errorf("anchor %q is looked at", p)
		}
	}
}
