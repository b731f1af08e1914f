package memstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// many captures n observations, 50 at a time, about issues from the first one on.
func (x *tree) many(n, first, issues int, texts *lexicaltest.Corpus) {
	x.t.Helper()
	for i := range n / 50 {
		s := spec([]string{"engineer", "tester"}[i%2], first+i%issues, x.now.Add(time.Duration(i)*time.Hour))
		for range 50 {
			content := texts.Text(12)
			s.Entries = append(s.Entries, schemas.ObservationEntry{
				Category: schemas.Categories()[i%5], Content: content, Summary: strings.Join(strings.Fields(content)[:6], " "),
				Anchors: []string{"src/a.go"}, Digests: map[string]string{"src/a.go": schemas.AnchorAbsent},
			})
		}
		x.capture(s)
	}
}

// answers are what a store says to some questions.
func (x *tree) answers() []any {
	x.t.Helper()
	var out []any
	add := func(v any, err error) {
		x.t.Helper()
		if err != nil {
			x.t.Fatal(err)
		}
		out = append(out, v)
	}
	add(x.List(x.t.Context(), memstore.Filter{}))
	for _, q := range []string{"error test", "schema migration cache", "user"} {
		add(x.Search(x.t.Context(), memstore.Query{Text: q, Limit: 50}))
	}
	add(x.Search(x.t.Context(), memstore.Query{Text: "config server", Filter: memstore.Filter{Agent: "tester"}}))
	add(x.Recall(x.t.Context(), memstore.Request{Agent: "engineer", Issue: 3, Context: "config error", Dry: true}))
	stats, err := x.Stats(x.t.Context())
	add(stats, err)
	return out
}

// another is another process on the tree, at the same time.
func (x *tree) another() *tree {
	x.t.Helper()
	y := openTree(x.t, x.dir)
	y.now = x.now
	return y
}

// plain is a store that has no cache: what it says is right.
func (x *tree) plain() []any {
	x.t.Helper()
	y := openTree(x.t, x.dir)
	y.Files = memstore.Open(y.store, memstore.Options{
		Now: func() time.Time { return x.now }, Kinds: controllers.Schemas(), NoCache: true,
	})
	return y.answers()
}

func (x *tree) wantSame(what string, got, want []any) {
	x.t.Helper()
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			x.t.Fatalf("%s: answer %d is\n%.1000s\nwant\n%.1000s", what, i, fmt.Sprint(got[i]), fmt.Sprint(want[i]))
		}
	}
}

// Whether answers come from one table or several, from the cache or from files, they are the same.
func TestCacheChangesNoAnswer(t *testing.T) {
	x := newTree(t)
	texts := lexicaltest.New(7)
	x.answers()
	for round := range 4 {
		x.many(100+round*50, 1, 7, texts)
		x.now = x.now.Add(240 * time.Hour)
		want := x.plain()
		x.wantSame("the process that wrote", x.answers(), want)
		x.wantSame("another process", x.another().answers(), want)
		x.wantSame("yet another process", x.another().answers(), want)
	}
	rows, err := x.List(t.Context(), memstore.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Remove(t.Context(), []string{rows[0].ID, rows[len(rows)/2].ID}, "me", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Compact(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	want := x.plain()
	x.wantSame("after removing and compacting", x.answers(), want)
	x.wantSame("another process then", x.another().answers(), want)
	before := len(want[0].([]memstore.Row))
	if err := os.Remove(filepath.Join(x.dir, "state/memory/issue-3.json")); err != nil {
		t.Fatal(err)
	}
	want = x.plain()
	x.wantSame("without an issue file", x.another().answers(), want)
	x.settle()
	want = x.plain()
	x.wantSame("with it again", x.another().answers(), want)
	if n := len(want[0].([]memstore.Row)); n != before {
		t.Errorf("%d observations, %d before", n, before)
	}
	x.check()
}

// A cache that is damaged anywhere, or that another version wrote, is made anew.
func TestDamagedCache(t *testing.T) {
	x := newTree(t)
	texts := lexicaltest.New(8)
	x.write("src/a.go", []byte("package a"))
	x.many(1000, 1, 20, texts)
	x.answers() // leaves a base
	x.many(300, 21, 6, texts)
	for range 70 {
		if _, err := x.Recall(t.Context(), memstore.Request{Agent: "engineer", Issue: 3, Context: "config"}); err != nil {
			t.Fatal(err)
		}
		x.now = x.now.Add(time.Second)
	}
	x.settle()
	want := x.plain()
	x.another().answers()
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"base", "delta", "step", "settled", "folded", "records", "anchors"} {
		p := filepath.Join(x.dir, ".reconcile/memory", name)
		whole, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range mutants.Size(3, 6, 6) {
			data := bytes.Clone(whole)
			switch at := random.IntN(len(data)); i % 3 {
			case 0:
				data = data[:at]
			case 1:
				data[at] ^= 1 << random.IntN(8)
			default:
				data[random.IntN(min(len(data), 200))] ^= 0xff
			}
			if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) { // others may have it mapped
				t.Fatal(err)
			}
			if err := os.WriteFile(p, data, 0o666); err != nil {
				t.Fatal(err)
			}
			y := x.another()
			y.wantSame(fmt.Sprintf("%s, damage %d", filepath.Base(p), i), y.answers(), want)
			if got := y.settle(); got.Wrote {
				t.Errorf("%s, damage %d: settled %+v", filepath.Base(p), i, got)
			}
		}
	}
	x.check()
}

// The store that grew capture by capture is the one that is folded of the specs at once.
func TestGrownIsRebuilt(t *testing.T) {
	x := newTree(t)
	random := rand.New(rand.NewPCG(3, 4))
	var known []string
	for i := range 40 {
		at := noon.Add(time.Duration(random.IntN(1000)) * time.Minute)
		s := spec("engineer", 1+random.IntN(4), at, fmt.Sprintf("Thing %d", i), fmt.Sprintf("Other %d", i))
		if len(known) > 0 {
			s.Entries[0].Supersedes = []string{known[random.IntN(len(known))]}
			again := schemas.ObservationEntry{Category: schemas.CategoryError, Content: "again", Repeats: known[random.IntN(len(known))]}
			s.Entries = append(s.Entries, again)
		}
		for _, o := range x.capture(s).Observations {
			known = append(known, o.ID)
		}
		if i%10 == 9 {
			if err := x.Verify(t.Context(), known[i:i+1], "me"); err != nil {
				t.Fatal(err)
			}
			if _, err := x.Recall(t.Context(), memstore.Request{Agent: "engineer", Issue: 1, Context: "thing"}); err != nil {
				t.Fatal(err)
			}
			x.settle()
		}
	}
	x.check()
	files := map[string][]byte{}
	all, err := filepath.Glob(filepath.Join(x.dir, "state/memory/*.json"))
	if err != nil || len(all) != 5 {
		t.Fatal(all, err)
	}
	for _, p := range all {
		if files[p], err = os.ReadFile(p); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
	}
	y := openTree(t, x.dir)
	y.settleWith(y.Rebuild)
	for p, want := range files {
		if got, err := os.ReadFile(p); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is another one, %v", p, err)
		}
	}
}

func TestKnownAndEach(t *testing.T) {
	x := newTree(t)
	const fact = "The adapter in src/db/adapter.go retries three times before it gives up"
	x.capture(spec("engineer", 1, noon, fact, "Colours are blue"))
	o, err := x.ByID(t.Context(), x.Known(fact+"."))
	if err != nil || o.Content != fact {
		t.Errorf("known as %+v, %v", o, err)
	}
	if got := x.Known("The adapter in src/db/adapter.go retries four times, then it fails"); got != "" {
		t.Errorf("another fact is known as %q", got)
	}
	x.many(50, 1, 1, lexicaltest.New(9))
	x.capture(spec("engineer", 1, noon.Add(time.Hour), olds()...))
	if _, err := x.Compact(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	var seen []string
	err = x.Each(t.Context(), func(o *schemas.Observation) error {
		seen = append(seen, o.ID)
		return nil
	})
	rows, err2 := x.List(t.Context(), memstore.Filter{Archived: memstore.With})
	if err = errors.Join(err, err2); err != nil || !slices.Equal(seen, ids(rows)) || len(seen) < 52 {
		t.Errorf("%d observations, %d listed, %v", len(seen), len(rows), err)
	}
	stop := errors.New("enough")
	if err := x.Each(t.Context(), func(*schemas.Observation) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}
