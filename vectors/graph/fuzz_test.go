package graph_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"reconcile.dev/reconcile/vectors/graph"
)

// FuzzOpen: whatever the bytes are, opening and asking neither panics nor asks for much memory.
func FuzzOpen(f *testing.F) {
	rng := rand.New(rand.NewPCG(25, 26))
	for _, n := range []int{0, 1, 5, 20} {
		f.Add(build(randomParts(rng, n+1, n*4)).AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := graph.Open(data)
		if err != nil {
			if !errors.Is(err, graph.ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		if len(data) < 1<<16 {
			exercise(g)
		}
	})
}
