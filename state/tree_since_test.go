package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestSinceNamesWhatDiffers compares what Since yields between random trees with a look at every name.
func TestSinceNamesWhatDiffers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	name := func(i int) schemas.Ref { return schemas.Ref{Kind: "DAG", Name: fmt.Sprintf("d%02d", i)} }
	some := func() (out []*Entry) {
		for range r.IntN(6) {
			e := &Entry{Ref: name(r.IntN(20))}
			if r.IntN(3) > 0 {
				e.SetStatus(&schemas.DAGStatus{})
			}
			out = append(out, e)
		}
		return out
	}
	trees := []*Tree{NewTree(nil, nil, nil)}
	for range 400 {
		was, is := trees[r.IntN(len(trees))], trees[len(trees)-1].With(some()...)
		trees = append(trees, is)
		var got, want []string
		for a, b := range is.Since(was, "DAG") {
			got = append(got, fmt.Sprintf("%p %p", a, b))
		}
		for i := range 20 {
			if a, b := was.Entry(name(i)), is.Entry(name(i)); a != b {
				want = append(want, fmt.Sprintf("%p %p", a, b))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	for a, b := range trees[1].Since(nil, "DAG") {
		if a != nil || b == nil {
			t.Errorf("since nothing: %v %v", a, b)
		}
	}
}
