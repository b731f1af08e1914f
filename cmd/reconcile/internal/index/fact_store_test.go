package index_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
)

// trust states how far hello.go is trusted.
func trust(level float64, by string, at time.Time) *index.Trust {
	s := &index.Trust{Node: "hello.go", Level: level}
	index.Sign(s, by, at, "")
	return s
}

func (r *rig) book() *index.FactStore {
	return &index.FactStore{Store: r.store, Warn: func(err error) { r.Error(err) }}
}

func (r *rig) listed(b *index.FactStore) []string {
	r.Helper()
	all, err := b.List()
	if err != nil {
		r.Fatal(err)
	}
	var out []string
	for _, f := range all {
		if !f.Own {
			r.Errorf("%s is taken for one that was written by hand", f.Path)
		}
		out = append(out, f.ID+" "+f.By()+": "+f.Said())
	}
	return out
}

// What many state at once is all there, also while somebody holds the lock of the tree and deciding goes on.
func TestBookLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, program)
	b := r.book()
	lock, err := r.store.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	const writers, each = 4, 8
	for w := range writers {
		all.Go(func() {
			for i := range each {
				s := trust(float64(i)/each, fmt.Sprint("writer", w), time.Unix(int64(1000+i), 0))
				if _, err := b.Put(t.Context(), []index.Statement{s}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	if got := r.listed(b); len(got) != writers*each {
		t.Errorf("%d facts stand: %q", len(got), got)
	}
}

// Many are written as one; of two with one key the later counts, and a second time nothing changes.
func TestBookTakesMany(t *testing.T) {
	t.Parallel()
	r := newRig(t, program)
	b := r.book()
	var all []index.Statement
	for i := range 40 {
		e := &index.Relation{From: "docs/a.md", To: "hello.go", Type: "documents", Weight: float32(i%2+1) / 2}
		index.Sign(e, fmt.Sprint("by", i/2), time.Unix(1000, 0), "")
		all = append(all, e)
	}
	for _, want := range []string{index.Added, index.Unchanged} {
		taken, err := b.Put(t.Context(), all)
		if err != nil || len(taken) != 20 {
			t.Fatalf("%d were taken, %v", len(taken), err)
		}
		if i := slices.IndexFunc(taken, func(f index.PutResult) bool { return f.Change != want }); i >= 0 {
			t.Errorf("%+v, want %s", taken[i], want)
		}
	}
	for _, line := range r.listed(b) {
		if line[len(line)-1] == ')' { // a weight that is not 1 is told in brackets
			t.Errorf("the earlier one stands: %s", line)
		}
	}
}

// What was taken back does not come back with its file, and is stated again under another name.
func TestBookTakesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, program)
	b := r.book()
	state := func(s index.Statement) index.PutResult {
		t.Helper()
		taken, err := b.Put(t.Context(), []index.Statement{s})
		if err != nil {
			t.Fatal(err)
		}
		return taken[0]
	}
	at := time.Unix(1000, 0)
	first := state(trust(0.5, "ada", at))
	text := r.read(first.Path)
	for range 2 {
		if err := b.Retract(t.Context(), []string{first.ID}); err != nil {
			t.Fatal(err)
		}
	}
	r.remove(first.Path)
	r.write(first.Path, string(text))
	if got := r.listed(b); len(got) > 0 {
		t.Errorf("%q came back", got)
	}
	if again := state(trust(0.5, "ada", at)); again.Change != index.Added || again.Path == first.Path || again.ID != first.ID {
		t.Errorf("stated again: %+v, before %+v", again, first)
	}
	if err := b.Retract(t.Context(), []string{first.ID, "trust-000000000000"}); !errors.Is(err, index.ErrNoFact) {
		t.Errorf("one that never was is taken back: %v", err)
	}
	for _, part := range []string{"trust", "trust-", "", first.ID[:10]} {
		if err := b.Retract(t.Context(), []string{part}); !errors.Is(err, index.ErrNoFact) {
			t.Errorf("%q is no id, and is taken back: %v", part, err)
		}
	}
	if got := r.listed(b); len(got) != 1 {
		t.Errorf("one of the ids was wrong, and %q stand", got)
	}
}

// A wrong statement among others keeps all from being written, and so does a command that was ended.
func TestBookRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, program)
	b := r.book()
	good := trust(0.5, "ada", time.Unix(1000, 0))
	for _, bad := range []index.Statement{
		trust(2, "ada", time.Unix(1000, 0)),
		&index.Relation{From: "a", To: "b", Type: "hugs"},
		&index.Relation{From: "a", To: "b", Type: "calls", Weight: 2},
		&index.Provenance{Node: "a", Confidence: -1},
		&index.Conflict{A: "a", B: "a"},
		&index.Review{Node: "a", Verdict: "maybe"},
		&index.Review{Node: "", Verdict: "approved"},
	} {
		if _, err := b.Put(t.Context(), []index.Statement{good, bad}); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var many []index.Statement
	for i := range 40 {
		many = append(many, trust(0.5, fmt.Sprint("by", i), time.Unix(1000, 0)))
	}
	if _, err := b.Put(ended, many); err == nil {
		t.Error("an ended command wrote")
	}
	if got := r.listed(b); len(got) > 0 {
		t.Errorf("%q were written", got)
	}
}

// What a file states is a fact only below the folder that the settings name, whatever other folders are called.
func TestStatesInFolderOfSettings(t *testing.T) {
	t.Parallel()
	files := maps.Clone(program)
	files["reconcile.yaml"] = "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\n" +
		"spec: {folders: {state: results}}\n"
	r := newRig(t, files)
	b := r.book()
	taken, err := b.Put(t.Context(), []index.Statement{trust(0.5, "ada", time.Unix(1000, 0))})
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]bool{
		taken[0].Path: true, "results/graph/hand.json": true, "results/graph/hand.yaml": false, "x/graph/y.json": false,
		"state/graph/y.json": false, "results/graph/deep/y.json": false, "": false,
	} {
		if b.States(p) != want {
			t.Errorf("%q: want %v", p, want)
		}
	}
}

func TestIsFactFile(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]bool{
		"state/graph/edge-0123456789ab-abcdef.json":          true,
		"state/graph/edge-0123456789ab-abcdef-removed.json":  true,
		"state/graph/edge-0123456789ab-abcdef.json.tmp":      false,
		"state/graph/edges-0123456789ab-abcdef.json":         false,
		"state/graph/edge-0123456789ab.json":                 false,
		"state/graph/edge-0123456789AB-abcdef.json":          false,
		"state/graph/edge-0123456789ab-abcdef-kept.json":     false,
		"state/graph/hand.json":                              false,
		"state/graph/hand-removed.json":                      false,
		"state/graph/review-0123456789ab-abcdefg.json":       false,
		"state/graph/review-0123456789ab-abcde.json":         false,
		"state/graph/conflict-0123456789ab-abcdef-removed.j": false,
	} {
		if index.IsFactFile(p) != want {
			t.Errorf("%s: want %v", p, want)
		}
	}
}

func TestFactsIn(t *testing.T) {
	t.Parallel()
	const edge, review, trust = "edge-0123456789ab", "review-0123456789ab", "trust-0123456789ab"
	ids, stated := index.FactsIn([]string{
		"state/graph/" + edge + "-aaaaaa-removed.json", "state/graph/" + edge + "-bbbbbb.json", // changed
		"state/graph/" + review + "-aaaaaa-removed.json", "state/graph/" + review + "-aaaaaa.json", // stated and taken back
		"state/graph/" + trust + "-aaaaaa.json", "state/graph/by-hand.json",
	})
	if !slices.Equal(ids, []string{edge, review, trust}) || !stated[edge] || stated[review] || !stated[trust] {
		t.Errorf("%q, stated %v", ids, stated)
	}
}
