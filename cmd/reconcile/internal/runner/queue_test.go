//go:build unix

package runner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/admission"
	"reconcile.dev/reconcile/controllers/settle"
)

// Over random histories: no group is ever over its limit, nothing that could run waits, and what is taken is the first
// in order of what could run.
func TestPlacesAreExact(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		r := &Runner{o: Options{Slots: 1 + rnd.IntN(5), Now: time.Now}, jobs: map[string]*job{}, used: map[string]int{}, limits: map[string]int{}}
		limits := []int{0, 1, 2, 3}
		var running []*job
		for step := range 200 {
			switch rnd.IntN(3) {
			case 0:
				e := effect(fmt.Sprintf("k%d", step))
				e.Rank = rnd.IntN(3)
				for g := range limits {
					if rnd.IntN(2) == 0 {
						e.Groups = append(e.Groups, settle.Group{Name: fmt.Sprint(g), Limit: limits[g]})
					}
				}
				r.enqueue(newJob(e, time.Time{}))
			case 1:
				if n := len(running); n > 0 {
					i := rnd.IntN(n)
					r.running--
					r.take(running[i].effect.Groups, -1)
					running = append(running[:i], running[i+1:]...)
				}
			case 2:
				r.foreign = map[string]int{fmt.Sprint(rnd.IntN(4)): rnd.IntN(3)}
			}
			running = fill(t, r, running)
			checkPlaces(t, r, running, limits)
		}
	}
}

// fill starts all that can, and checks that each was the first that could.
func fill(t *testing.T, r *Runner, running []*job) []*job {
	for r.running < r.o.Slots {
		var first *job
		for _, j := range r.queue {
			if (first == nil || admission.Compare(&j.effect, &first.effect, time.Time{}) < 0) && r.room(j.effect.Groups) {
				first = j
			}
		}
		j := r.next()
		if j != first {
			t.Fatalf("took %v, first is %v", j, first)
		}
		if j == nil {
			return running
		}
		running = append(running, j)
	}
	return running
}

func checkPlaces(t *testing.T, r *Runner, running []*job, limits []int) {
	used := map[string]int{}
	for _, j := range running {
		for _, g := range j.effect.Groups {
			used[g.Name]++
		}
	}
	for i, limit := range limits {
		name := fmt.Sprint(i)
		if used[name] != r.used[name] {
			t.Fatalf("group %s: %d run, %d places are taken", name, used[name], r.used[name])
		}
		if limit == 0 {
			limit = r.o.Slots
		}
		// Others may have taken places after ours were.
		if used[name] > limit {
			t.Fatalf("group %s: %d run, limit %d", name, used[name], limit)
		}
	}
	if len(running) > r.o.Slots {
		t.Fatalf("%d run in %d slots", len(running), r.o.Slots)
	}
}

// TestLimitsChange: what was queued under former settings starts by the present ones.
func TestLimitsChange(t *testing.T) {
	r := &Runner{o: Options{Slots: 1, Now: time.Now}, jobs: map[string]*job{}, used: map[string]int{}, limits: map[string]int{}}
	add := func(key string, limit int) {
		e := effect(key)
		e.Groups = []settle.Group{{Name: settle.TasksGroup, Limit: 1}, {Name: "session/s", Limit: limit}}
		r.enqueue(newJob(e, time.Time{}))
	}
	next := func(want string) {
		t.Helper()
		key := ""
		if j := r.next(); j != nil {
			key = j.effect.Key
		}
		if key != want {
			t.Fatalf("%q starts, want %q", key, want)
		}
	}
	add("a", 1)
	add("b", 1)
	next("a")
	next("")
	r.o.Slots = 3
	next("")
	add("c", 2)
	next("b")
	next("")
}

// TestStartsAreInTurn: of many jobs that may all run at once, each starts in its turn.
func TestStartsAreInTurn(t *testing.T) {
	const jobs = 60
	g := newRig(t, Options{Slots: jobs})
	var want, got []string
	g.mu.Lock()
	for i := range jobs {
		e := effect(fmt.Sprintf("dags/d/n%02d-0-1", (i*7)%jobs), "true")
		e.VirtualStart = int64(i)
		want = append(want, e.Key)
		j := newJob(e, time.Time{})
		g.jobs[e.Key] = j
		g.enqueue(j)
	}
	g.dispatch()
	g.mu.Unlock()
	for ended := 0; ended < jobs; {
		<-g.Notify()
		for _, r := range g.Drain() {
			if r.Kind.Ends() {
				ended++
			} else {
				got = append(got, r.Key)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("started %q, want %q", got, want)
	}
}
