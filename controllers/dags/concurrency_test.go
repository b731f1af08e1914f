package dags

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// TestPlacesInGroups: whatever the members, at most one works, the first of those that have begun, else the first, and whoever is
// cancelled is so by a later member.
func TestPlacesInGroups(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var all []member
		for i := range 1 + rnd.IntN(6) {
			since := schemas.NewTime(time.Unix(int64(rnd.IntN(3)), 0))
			all = append(all, member{string(rune('a' + i)), since, false, rnd.IntN(3) == 0, rnd.IntN(4) == 0})
		}
		works := 0
		for i, me := range all {
			others := slices.Delete(slices.Clone(all), i, i+1)
			waitsFor, by := placeInGroup(me, others)
			at := slices.IndexFunc(all, func(m member) bool { return m.dag == by })
			switch {
			case by != "":
				if waitsFor != "" || !all[at].cancels || all[at].compare(me) <= 0 {
					t.Fatalf("%v: %s is cancelled by %s", all, me.dag, by)
				}
			case waitsFor == "":
				works++
				if slices.ContainsFunc(others, func(o member) bool {
					return o.begun && !me.begun || o.begun == me.begun && o.compare(me) < 0
				}) {
					t.Fatalf("%v: %s works", all, me.dag)
				}
			case !slices.ContainsFunc(others, func(o member) bool { return o.dag == waitsFor && o.before(me) }):
				t.Fatalf("%v: %s waits for %s", all, me.dag, waitsFor)
			}
		}
		if works > 1 {
			t.Fatalf("%v: %d work", all, works)
		}
	}
}
