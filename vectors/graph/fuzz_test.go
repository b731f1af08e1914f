package graph_test

import (
	"errors"
	"math/rand/v2"
	"slices"
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

// FuzzPatched changes bytes of a graph, so that more of what is damaged is opened: each three bytes of the patch are a
// place and what is written there.
func FuzzPatched(f *testing.F) {
	data := build(randomParts(rand.New(rand.NewPCG(27, 28)), 12, 50)).AppendTo(nil)
	f.Add([]byte{64, 0, 255})
	f.Add([]byte{8, 0, 1, 12, 0, 9, 200, 3, 7})
	f.Fuzz(func(t *testing.T, patch []byte) {
		broken := slices.Clone(data)
		for ; len(patch) >= 3; patch = patch[3:] {
			broken[(int(patch[0])|int(patch[1])<<8)%len(broken)] = patch[2]
		}
		if g, err := graph.Open(broken); err == nil {
			exercise(g)
		}
	})
}
