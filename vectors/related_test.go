package vectors_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/graph"
)

// A search by relation finds the document about the code that was meant, though it has none of the words, and says over
// which edge; its score is the sum that was asked for.
func TestRelated(t *testing.T) {
	t.Parallel()
	x := open(t, build(t, things(), options()), nil, options())
	q := vectors.Query{Text: "passwords", Mode: vectors.Related, Domains: []graph.Domain{graph.Code},
		Expansion: graph.Expansion{Alpha: 0.4}}
	a, err := x.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(a.Results, func(f vectors.Found) bool { return f.ID == "src/f5.go" })
	if i < 0 {
		t.Fatalf("what the session changed was not found: %+v", a.Results)
	}
	f := a.Results[i]
	want := []graph.Edge{{From: "session/login", To: "src/f5.go", Type: graph.Modified, Weight: 1}}
	if f.ByGraph.Rank != 1 || !(f.ByGraph.Score > 0) || !slices.Equal(f.Via, want) {
		t.Errorf("found %+v", f)
	}
	if sum := 0.4*max(f.ByVector.Score, 0) + 0.6*f.ByGraph.Score; math.Abs(f.Score-sum) > 1e-9 {
		t.Errorf("the score is %v, and of its parts it is %v", f.Score, sum)
	}
	for _, f := range a.Results {
		if f.Type.Domain() != graph.Code {
			t.Errorf("%s passed the filter", f.ID)
		}
	}
	q.Expansion.MinScore = 0.999
	if a, err = x.Search(t.Context(), q); err != nil || len(a.Results) > 0 || a.NoMatches {
		t.Errorf("nothing scores that much: %+v, %v", a, err)
	}
	q.Expansion.Depth = 9
	if _, err = x.Search(t.Context(), q); err == nil {
		t.Error("a depth of 9 was taken")
	}
}

// Without the embedder it starts from the words, and says so.
func TestRelatedWithoutVectors(t *testing.T) {
	t.Parallel()
	e := &bag{dims: 16, model: "bag"}
	o := options()
	o.Embedder = e
	x := open(t, build(t, things(), o), nil, o)
	e.off = embed.ErrUnavailable
	a, err := x.Search(t.Context(), vectors.Query{Text: "passwords", Mode: vectors.Related, Types: []graph.NodeType{graph.File}})
	if err != nil || len(a.Warnings) != 1 || !errors.Is(a.Warnings[0], embed.ErrUnavailable) {
		t.Fatalf("%v, %v", a, err)
	}
	if len(a.Results) != 1 || a.Results[0].ID != "src/f5.go" || len(a.Results[0].Via) != 1 {
		t.Errorf("found %+v", a.Results)
	}
}
