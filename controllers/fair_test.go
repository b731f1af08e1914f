package controllers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// line is the work of a session in a test of fairness.
type line struct {
	session      string
	rank, weight int
	effects      int
	dags         int // of one node each; 0: one with all
}

func (l line) wanted() []settle.Effect {
	var out []settle.Effect
	for i := range l.effects {
		dag := l.session
		if i < l.dags {
			dag += fmt.Sprint(i)
		}
		out = append(out, settle.Effect{Key: fmt.Sprintf("dags/%s/n%03d-0-1", dag, i), Owner: schemas.DAGKind.Ref(dag),
			Session: l.session, Rank: l.rank, Weight: l.weight, QueuedAt: schemas.NewTime(benchNow), Ageing: 5 * time.Minute,
			Groups: []settle.Group{{Name: settle.TasksGroup, Limit: 4}}})
	}
	return out
}

// jain is Jain's index of fairness of the numbers of starts divided by weights: 1 where all have the same.
func jain(starts []string, lines []line) float64 {
	sum, squares := 0.0, 0.0
	for _, l := range lines {
		n := 0.0
		for _, s := range starts {
			if s == l.session {
				n++
			}
		}
		n /= float64(l.weight)
		sum, squares = sum+n, squares+n*n
	}
	return sum * sum / (float64(len(lines)) * squares)
}

// TestStartsAreFair lets one to three processes, which look ahead and lose their claims now and then, run the work of sessions: while
// all have work, each prefix of at least 100 starts is as fair as the weights say.
func TestStartsAreFair(t *testing.T) {
	for seed := range uint64(mutants.Size(2, 4, 40)) {
		r := rand.New(rand.NewPCG(seed, 17))
		var lines []line
		var wanted []settle.Effect
		for i := range 2 + r.IntN(9) {
			weight := 1 + r.IntN(3)
			l := line{session: fmt.Sprintf("s%d", i), rank: 2, weight: weight, effects: (40 + r.IntN(60)) * weight, dags: 1000 * r.IntN(2) * int(seed%2)}
			lines, wanted = append(lines, l), append(wanted, l.wanted()...)
		}
		p := newPool(t, 4, wanted)
		processes := []string{"p1", "p2", "p3"}[:1+r.IntN(3)]
		left := func(session string) bool {
			return slices.ContainsFunc(p.wanted, func(e settle.Effect) bool {
				return e.Session == session && (settle.ClaimOf(p.entries[e.Owner.Name], e.Key) == nil)
			})
		}
		for all := true; all; {
			process := pick(r, processes...)
			p.admit(process, 16)
			p.start(process)
			keys := p.keys()
			if len(keys) == 0 {
				continue
			}
			process, key, _ := strings.Cut(pick(r, keys...), " ")
			p.finish(process, key)
			if r.IntN(50) == 0 {
				p.die(process)
			}
			for _, l := range lines {
				all = all && left(l.session)
			}
			if n := len(p.started); n >= 100 {
				if j := jain(p.started, lines); j < 0.97 {
					t.Fatalf("seed %d: after %d starts of %d sessions the index is %.3f: %v", seed, n, len(lines), j, lines)
				}
			}
		}
	}
}

// die ends a process: what it had claimed is claimed by nobody, and its runs leave no record.
func (p *pool) die(process string) {
	for _, e := range p.claimed[process] {
		entry := p.entries[e.Owner.Name]
		for i := range entry.Claims {
			if entry.Claims[i].Key == e.Key {
				entry.Claims = slices.Delete(entry.Claims, i, i+1)
				break
			}
		}
	}
	delete(p.claimed, process)
	delete(p.running, process)
	delete(p.seen, process)
}

// TestSessionsThatComeLate have no claim on the time before, and do not wait for what was claimed ahead.
func TestSessionsThatComeLate(t *testing.T) {
	early, late := line{"a", 2, 1, 300, 0}, line{"b", 2, 1, 100, 0}
	p := newPool(t, 4, early.wanted())
	step := func() {
		p.admit("p1", 64)
		p.start("p1")
		_, key, _ := strings.Cut(p.keys()[0], " ")
		p.finish("p1", key)
	}
	for range 100 {
		step()
	}
	for _, e := range late.wanted() {
		p.wanted = append(p.wanted, e)
		p.entries[e.Owner.Name] = newPool(t, 1, []settle.Effect{e}).entries[e.Owner.Name]
	}
	before := len(p.started)
	for range 60 {
		step()
	}
	since := p.started[before:]
	for n := 20; n <= len(since); n += 10 {
		if j := jain(since[:n], []line{early, late}); j < 0.97 {
			t.Errorf("of the first %d starts since b came: %s", n, strings.Join(since[:n], ""))
		}
	}
}

// TestAgeing keeps the places full of work of a higher lane: background work starts once it has aged to high, and not before. It never gets
// ahead of critical work, nor does it age where that is turned off.
func TestAgeing(t *testing.T) {
	for _, c := range []struct {
		rank           int // of the other work
		ageing, starts time.Duration
	}{{1, 5 * time.Minute, 15 * time.Minute}, {1, 0, 0}, {0, 5 * time.Minute, 0}} {
		low, other := line{"low", 4, 1, 1, 0}, line{"other", c.rank, 1, 1200, 0}
		wanted := append(low.wanted(), other.wanted()...)
		for i := range wanted {
			wanted[i].Ageing = c.ageing
		}
		p := newPool(t, 4, wanted)
		for len(p.wanted) > 1 && !slices.Contains(p.started, "low") {
			p.admit("p1", 8)
			p.start("p1")
			_, key, _ := strings.Cut(p.keys()[0], " ")
			p.finish("p1", key)
			p.now = p.now.Add(time.Second)
		}
		waited, early := p.now.Sub(benchNow), slices.Contains(p.started, "low") && len(p.started) < 1100
		if early != (c.starts > 0) || early && (waited < c.starts || waited > c.starts+20*time.Second) {
			t.Errorf("beside work of rank %d, with an ageing of %v, background work started after %v and %d others", c.rank, c.ageing, waited, len(p.started)-1)
		}
	}
}

// TestTurnsAfterADamagedRecord: a record at the end of virtual time takes the turns from nobody.
func TestTurnsAfterADamagedRecord(t *testing.T) {
	for _, at := range []int64{1 << 61, 1 << 62, 1<<62 + 1, math.MaxInt64, math.MinInt64} {
		lines := []line{{"a", 2, 1, 60, 0}, {"b", 2, 1, 60, 0}, {"c", 2, 2, 120, 0}}
		p := newPool(t, 4, slices.Concat(lines[0].wanted(), lines[1].wanted(), lines[2].wanted()))
		p.entries["a"].SetRuns([]*schemas.Run{{Key: "dags/a/before-0-1", VirtualStart: at, StartedAt: schemas.NewTime(benchNow)}})
		for len(p.started) < 120 {
			p.admit("p1", 8)
			p.start("p1")
			_, key, _ := strings.Cut(p.keys()[0], " ")
			p.finish("p1", key)
		}
		if j := jain(p.started, lines); j < 0.97 {
			t.Errorf("after a record at %d the index is %.3f: %s", at, j, strings.Join(p.started, ""))
		}
	}
}
