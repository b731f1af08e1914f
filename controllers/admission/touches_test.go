package admission

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestTouched compares with every path on its own: two overlap if they are equal, or one is a folder of the other.
func TestTouched(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	path := func() string {
		parts := make([]string, r.IntN(4))
		for i := range parts {
			parts[i] = string(rune('a' + r.IntN(3)))
		}
		return strings.Join(parts, "/")
	}
	overlap := func(a, b string) bool {
		return a == b || a == "" || b == "" || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
	}
	for range 2000 {
		held, index := []string{}, touched{}
		for range r.IntN(5) {
			p := path()
			held = append(held, p)
			index.add([]string{p})
		}
		p := path()
		want := !slices.ContainsFunc(held, func(h string) bool { return overlap(h, p) })
		if got := index.room([]string{p}); got != want {
			t.Fatalf("%q among %q: %v, want %v", p, held, got, want)
		}
	}
}

// BenchmarkTouched admits 1,000 effects: the cost of each is the depth of its path.
func BenchmarkTouched(b *testing.B) {
	for b.Loop() {
		index := touched{}
		for i := range 1000 {
			p := []string{fmt.Sprintf("src/part%d/file", i)}
			if !index.room(p) {
				b.Fatal(p)
			}
			index.add(p)
		}
	}
}
