package clarify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func wait(id, from, to string, rank int) Wait {
	return Wait{ID: id, From: from, To: to, Rank: rank, Created: schemas.NewTime(start)}
}

func TestScenario_DeadlockDetection(t *testing.T) {
	got := rings([]Wait{wait("1", "engineer", "architect", 30), wait("2", "architect", "engineer", 20)})
	if len(got) != 1 || got[0].ID != "1" || strings.Join(got[0].Ring, " ") != "engineer architect" {
		t.Errorf("mutual: %+v", got)
	}
	ring := []Wait{wait("CLR-42-001", "engineer", "architect", 30), wait("CLR-7-001", "architect", "product-manager", 20),
		wait("CLR-0-004", "product-manager", "engineer", 10), wait("CLR-42-002", "reviewer", "engineer", 45)}
	got = rings(ring)
	if len(got) != 1 || got[0].ID != "CLR-42-001" ||
		strings.Join(got[0].Ring, " ") != "engineer architect product-manager" {
		t.Errorf("ring of three, across issues: %+v", got)
	}
	if got := rings(ring[1:]); len(got) != 0 {
		t.Errorf("no ring: %+v", got)
	}
	tie := []Wait{wait("a", "x", "y", 50), wait("b", "y", "x", 50)}
	if got := rings(tie); len(got) != 1 || got[0].ID != "b" {
		t.Errorf("equals: %+v", got)
	}
	tie[0].Created = schemas.NewTime(start.Add(time.Second))
	if got := rings(tie); len(got) != 1 || got[0].ID != "a" {
		t.Errorf("the later of equals: %+v", got)
	}
	if got := rings([]Wait{wait("s", "x", "x", 50)}); len(got) != 1 {
		t.Errorf("an agent that waits for itself: %+v", got)
	}
}

// slowRings is the definition: while there is a ring, the worst question on any ring goes.
func slowRings(waits []Wait) []string {
	left := slices.Clone(waits)
	var out []string
	for {
		worst := -1
		for i, w := range left {
			if reaches(left, w.To, w.From) && (worst < 0 || downstream(w, left[worst]) > 0) {
				worst = i
			}
		}
		if worst < 0 {
			slices.Sort(out)
			return out
		}
		out = append(out, left[worst].ID)
		left = slices.Delete(left, worst, worst+1)
	}
}

func reaches(waits []Wait, from, to string) bool {
	seen := map[string]bool{from: true}
	for grown := true; grown; {
		grown = false
		for _, w := range waits {
			if seen[w.From] && !seen[w.To] {
				seen[w.To], grown = true, true
			}
		}
	}
	return seen[to]
}

// TestRingsRandom compares with the definition, checks that each victim lies on the ring that is told, and that the
// order of the questions does not matter.
func TestRingsRandom(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 2))
		agents, n := 1+rng.IntN(8), rng.IntN(25)
		waits := make([]Wait, n)
		for i := range waits {
			from := rng.IntN(agents)
			waits[i] = Wait{ID: fmt.Sprintf("q%02d", i), From: fmt.Sprint("a", from), To: fmt.Sprint("a", rng.IntN(agents)),
				Rank: from % 4, Created: minute(float64(rng.IntN(3)))}
		}
		got := rings(waits)
		ids := make([]string, 0, n)
		for _, v := range got {
			ids = append(ids, v.ID)
			checkRing(t, waits, v)
		}
		if want := slowRings(waits); !slices.Equal(ids, want) {
			t.Fatalf("seed %d: %v, want %v of %+v", seed, ids, want, waits)
		}
		rng.Shuffle(n, func(i, j int) { waits[i], waits[j] = waits[j], waits[i] })
		if again := rings(waits); fmt.Sprint(again) != fmt.Sprint(got) {
			t.Fatalf("seed %d: in another order %v, not %v", seed, again, got)
		}
	}
}

func checkRing(t *testing.T, waits []Wait, v victim) {
	t.Helper()
	for i, from := range v.Ring {
		to := v.Ring[(i+1)%len(v.Ring)]
		if !slices.ContainsFunc(waits, func(w Wait) bool { return w.From == from && w.To == to }) {
			t.Fatalf("%s does not wait for %s: ring %v of %s", from, to, v.Ring, v.ID)
		}
	}
	own := slices.IndexFunc(waits, func(w Wait) bool { return w.ID == v.ID })
	if v.Ring[0] != waits[own].From || v.Ring[1%len(v.Ring)] != waits[own].To {
		t.Fatalf("ring %v does not begin with %+v", v.Ring, waits[own])
	}
}

// manyWaits is one ring of n agents, and n more questions between them.
func manyWaits(n int) []Wait {
	rng := rand.New(rand.NewPCG(7, 3))
	var out []Wait
	for i := range n {
		name := func(k int) string { return fmt.Sprintf("agent-%05d", k%n) }
		out = append(out, wait(fmt.Sprintf("r%05d", i), name(i), name(i+1), i%50),
			wait(fmt.Sprintf("x%05d", i), name(i), name(rng.IntN(n)), i%50))
	}
	return out
}

func BenchmarkRings(b *testing.B) {
	for _, n := range []int{100, 5000} {
		waits := manyWaits(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if len(rings(waits)) == 0 {
					b.Fatal("no ring found")
				}
			}
		})
	}
}
