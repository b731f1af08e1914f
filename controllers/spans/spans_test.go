package spans

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

var start = time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)

func moment(n int) schemas.Time { return schemas.NewTime(start.Add(time.Duration(n) * time.Second)) }

// randomSpans are spans within a minute, some of them empty or the wrong way round, at most one of them open.
func randomSpans(r *rand.Rand) []schemas.Span {
	var out []schemas.Span
	for range r.IntN(8) {
		out = append(out, schemas.Span{From: moment(r.IntN(60)), To: moment(r.IntN(60))})
	}
	if r.IntN(3) == 0 {
		out = append(out, schemas.Span{From: moment(r.IntN(60))})
	}
	return out
}

// covers reports whether the second that begins at n is in a set, taken naively.
func covers(set []schemas.Span, n int) bool {
	return slices.ContainsFunc(set, func(s schemas.Span) bool {
		return !s.From.After(moment(n).Time) && (s.To.IsZero() || s.To.After(moment(n).Time))
	})
}

// TestSpans compares the arithmetic of spans with sets of seconds.
func TestSpans(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 7))
		a, b := randomSpans(r), randomSpans(r)
		both := Unite(slices.Concat(a, b))
		left := Without(Unite(a), Unite(b))
		seconds := 0
		for n := range 90 {
			if got, want := covers(both, n), covers(a, n) || covers(b, n); got != want {
				t.Fatalf("seed %d: second %d in the union: %v, want %v", seed, n, got, want)
			}
			if got, want := covers(left, n), covers(a, n) && !covers(b, n); got != want {
				t.Fatalf("seed %d: second %d in the difference: %v, want %v", seed, n, got, want)
			}
			if sum := time.Duration(seconds) * time.Second; lasted(both, moment(n).Time) != sum {
				t.Fatalf("seed %d: lasted %s until %d, want %s", seed, lasted(both, moment(n).Time), n, sum)
			}
			if covers(both, n) {
				seconds++
				if at := Reached(both, time.Duration(seconds)*time.Second); !at.Equal(moment(n + 1).Time) {
					t.Fatalf("seed %d: %d s are reached at %s, want second %d", seed, seconds, at, n+1)
				}
			}
		}
		mixed := slices.Concat(b, both, a)
		r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if !slices.Equal(Unite(mixed), both) || !slices.Equal(Unite(both), both) {
			t.Fatalf("seed %d: the union depends on the order: %v and %v", seed, Unite(mixed), both)
		}
		for _, g := range Gaps(both) {
			if g.To.IsZero() || !g.To.After(g.From.Time) {
				t.Fatalf("seed %d: gap %v", seed, g)
			}
		}
	}
}

// lasted is how much of a set in order lies before now.
func lasted(set []schemas.Span, now time.Time) time.Duration {
	var sum time.Duration
	for _, s := range set {
		to := s.To.Time
		if to.IsZero() || to.After(now) {
			to = now
		}
		sum += max(to.Sub(s.From.Time), 0)
	}
	return sum
}
