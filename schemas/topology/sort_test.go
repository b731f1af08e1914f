package topology

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestSort(t *testing.T) {
	cases := []struct {
		name   string
		needs  [][]int32
		layers [][]int32
		ok     bool
	}{
		{"nothing", nil, nil, true},
		{"one", [][]int32{nil}, [][]int32{{0}}, true},
		{"diamond, listed backwards", [][]int32{{1, 2}, {3}, {3}, nil}, [][]int32{{3}, {1, 2}, {0}}, true},
		{"deepest need counts", [][]int32{nil, {0}, {0, 1}, nil}, [][]int32{{0, 3}, {1}, {2}}, true},
		{"circle", [][]int32{nil, {2}, {1}}, [][]int32{{0}}, false},
		{"self", [][]int32{{0}}, nil, false},
	}
	for _, c := range cases {
		o, ok := Sort(c.needs)
		if ok != c.ok || !reflect.DeepEqual(o.Layers, c.layers) {
			t.Errorf("%s: got %v, %v; want %v, %v", c.name, o.Layers, ok, c.layers, c.ok)
		}
	}
}

// TestSortRandom: every task comes once, after its needs, one layer below the deepest of them.
func TestSortRandom(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		needs := make([][]int32, 1+r.IntN(60))
		names := r.Perm(len(needs)) // so that numbers say nothing about the order
		for i := range needs {
			for j := range i {
				if r.IntN(5) == 0 {
					needs[names[i]] = append(needs[names[i]], int32(names[j]))
				}
			}
		}
		o, ok := Sort(needs)
		if !ok || len(o.Tasks) != len(needs) {
			t.Fatalf("seed %d: %d of %d tasks ordered", seed, len(o.Tasks), len(needs))
		}
		depth := map[int32]int{}
		for d, layer := range o.Layers {
			if !slices.IsSorted(layer) {
				t.Errorf("seed %d: layer %v is not sorted", seed, layer)
			}
			for _, i := range layer {
				want := 0
				for _, to := range needs[i] {
					at, before := depth[to]
					if !before {
						t.Fatalf("seed %d: %d comes before %d, which it needs", seed, i, to)
					}
					want = max(want, at+1)
				}
				if depth[i] = d; d != want {
					t.Errorf("seed %d: %d is in layer %d, want %d", seed, i, d, want)
				}
			}
		}
	}
}

func BenchmarkSort(b *testing.B) {
	needs := make([][]int32, 10000)
	for i := 10; i < len(needs); i++ {
		needs[i] = []int32{int32(i - 10), int32(i - 7)}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Sort(needs); !ok {
			b.Fatal("not sorted")
		}
	}
}
