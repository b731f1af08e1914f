package controllers

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/admission"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// pool is several processes that share a tree. Each starts what it has claimed, in the order of its claims, as long as
// every group has room: it may run limit − (claims of others) of a group.
type pool struct {
	t       *testing.T
	cpus    int
	entries map[string]*state.Entry // DAG by name
	wanted  []settle.Effect
	only    *settle.Selection
	claimed map[string][]settle.Effect // by process, in the order of claiming
	running map[string]map[string]bool // by process: keys
	started []string                   // sessions, in the order of starts
	clock   int
	now     time.Time
	seen    map[string]*admission.Turns // by process
	waits   map[string]state.Wait       // by process; others see those with groups
}

func newPool(t *testing.T, cpus int, wanted []settle.Effect) *pool {
	p := &pool{t: t, cpus: cpus, wanted: wanted, entries: map[string]*state.Entry{}, claimed: map[string][]settle.Effect{},
		running: map[string]map[string]bool{}, now: benchNow, seen: map[string]*admission.Turns{},
		waits: map[string]state.Wait{}}
	for _, e := range wanted {
		p.entries[e.Owner.Name] = &state.Entry{Ref: e.Owner, Object: schemas.NewObject(schemas.DAGKind, schemas.Metadata{Name: e.Owner.Name}, "", "",
			fmt.Appendf(nil, `{"session":%q}`, e.Session), []schemas.Reference{{To: schemas.SessionKind.Ref(e.Session)}})}
	}
	return p
}

func (p *pool) tree() *state.Tree {
	var list []*state.Entry
	for _, e := range p.entries {
		c := *e
		c.Claims = slices.Clone(e.Claims)
		list = append(list, &c)
	}
	return state.NewTree(nil, nil, nil, list...)
}

// pointers point at the elements of a slice.
func pointers(effects []settle.Effect) []*settle.Effect {
	out := make([]*settle.Effect, len(effects))
	for i := range effects {
		out[i] = &effects[i]
	}
	return out
}

func (p *pool) turns(process string) *admission.Turns {
	if p.seen[process] == nil {
		p.seen[process] = new(admission.Turns)
	}
	return p.seen[process]
}

func (p *pool) admit(process string, lookahead int) {
	turns, own := p.turns(process), p.waits[process]
	turns.Others = nil
	for name, w := range p.waits {
		if name != process && len(w.Groups) > 0 {
			turns.Others = append(turns.Others, w)
		}
	}
	turns.Since = own.Since
	before := len(p.claimed[process])
	defer func() {
		if len(p.claimed[process]) > before && own.Tenure(p.now) == 0 {
			own.Since = schemas.NewTime(p.now)
		} else if own.Since.IsZero() {
			own.Since = schemas.NewTime(p.now.Add(-time.Second))
		}
		own.Process, own.Groups = process, turns.Lacks
		p.waits[process] = own
	}()
	for _, e := range admission.Admit(p.tree(), pointers(p.wanted), p.only, process, p.cpus, lookahead, new(budgets.Ledger), p.turns(process), p.now) {
		entry := p.entries[e.Owner.Name]
		if settle.ClaimOf(entry, e.Key) != nil {
			p.t.Fatalf("%s was admitted twice", e.Key)
		}
		entry.Claims = append(entry.Claims, state.Claim{Run: e.Claim(), Process: process})
		slices.SortFunc(entry.Claims, func(a, b state.Claim) int { return strings.Compare(a.Key, b.Key) })
		p.claimed[process] = append(p.claimed[process], e)
	}
	if foreign := p.foreign(process); !maps.Equal(turns.Foreign, foreign) {
		p.t.Errorf("%s sees %v in the hands of others, and they have %v", process, turns.Foreign, foreign)
	}
}

// foreign counts the claims of other processes, by group that a wanted effect is in.
func (p *pool) foreign(process string) map[string]int {
	counts, in := map[string]int{}, map[string]bool{}
	for _, e := range p.wanted {
		for _, g := range e.Groups {
			in[g.Name] = true
		}
	}
	for other, list := range p.claimed {
		for _, e := range list {
			if other != process {
				for _, g := range e.Groups {
					if in[g.Name] {
						counts[g.Name]++
					}
				}
			}
		}
	}
	return counts
}

// unwant has a running effect ended: no decision wants it any more, and its program has time to end.
func (p *pool) unwant(key string) {
	p.wanted = slices.DeleteFunc(slices.Clone(p.wanted), func(e settle.Effect) bool { return e.Key == key })
}

// start starts what may run, as the runner's rule says.
func (p *pool) start(process string) {
	slices.SortFunc(p.claimed[process], func(a, b settle.Effect) int { return admission.Compare(&a, &b, p.now) })
	for _, e := range p.claimed[process] {
		if p.running[process][e.Key] || !p.room(process, e) {
			continue
		}
		if p.running[process] == nil {
			p.running[process] = map[string]bool{}
		}
		p.running[process][e.Key] = true
		p.clock++
		p.started = append(p.started, e.Session)
		settle.ClaimOf(p.entries[e.Owner.Name], e.Key).StartedAt = schemas.NewTime(p.now.Add(time.Duration(p.clock) * time.Millisecond))
	}
}

func (p *pool) room(process string, e settle.Effect) bool {
	for _, g := range e.Groups {
		used := 0
		for other, list := range p.claimed {
			for _, c := range list {
				if slices.Contains(c.Groups, g) && (other != process || p.running[process][c.Key]) {
					used++
				}
			}
		}
		if used >= p.limit(g) {
			return false
		}
	}
	return true
}

func (p *pool) limit(g settle.Group) int {
	if g.Limit == 0 {
		return p.cpus
	}
	return g.Limit
}

// finish ends one run of a process.
func (p *pool) finish(process, key string) {
	delete(p.running[process], key)
	p.claimed[process] = slices.DeleteFunc(p.claimed[process], func(e settle.Effect) bool { return e.Key == key })
	p.wanted = slices.DeleteFunc(slices.Clone(p.wanted), func(e settle.Effect) bool { return e.Key == key })
	for _, e := range p.entries {
		if i := slices.IndexFunc(e.Claims, func(c state.Claim) bool { return c.Key == key }); i >= 0 {
			run := e.Claims[i].Run
			e.Claims = slices.Delete(e.Claims, i, i+1)
			e.SetRuns(append(e.Runs(), &run))
		}
	}
}

func (p *pool) keys() []string {
	var out []string
	for process, m := range p.running {
		for key := range m {
			out = append(out, process+" "+key)
		}
	}
	slices.Sort(out)
	return out
}

// limits checks that the runs of all processes together keep every limit.
func (p *pool) limits() {
	used := map[settle.Group]int{}
	for process, list := range p.claimed {
		for _, e := range list {
			if p.running[process][e.Key] {
				for _, g := range e.Groups {
					used[g]++
				}
			}
		}
	}
	for g, n := range used {
		if n > p.limit(g) {
			p.t.Fatalf("%d of group %s run, the limit is %d", n, g.Name, p.limit(g))
		}
	}
}

// TestAdmitKeepsLimits lets random processes claim, start and finish random effects: no limit is ever exceeded, and
// whenever nothing runs although something is wanted, some process can start something. What is not wanted any more takes its time to end.
func TestAdmitKeepsLimits(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := newPool(t, 1+r.IntN(4), randomEffects(r))
		processes := []string{"p1", "p2", "p3"}[:1+r.IntN(3)]
		total := len(p.wanted)
		for step := 0; len(p.wanted) > 0; step++ {
			if step > 50*total {
				t.Fatalf("seed %d: %d of %d effects never ran", seed, len(p.wanted), total)
			}
			process := pick(r, processes...)
			switch r.IntN(13) {
			case 0, 1, 2, 3:
				p.admit(process, r.IntN(4))
			case 4, 5, 6, 7:
				p.start(process)
			case 8:
				if keys := p.keys(); len(keys) > 0 {
					_, key, _ := strings.Cut(pick(r, keys...), " ")
					p.unwant(key)
				}
			default:
				if keys := p.keys(); len(keys) > 0 {
					process, key, _ := strings.Cut(pick(r, keys...), " ")
					p.finish(process, key)
				}
			}
			p.limits()
			if len(p.keys()) == 0 {
				for _, process := range processes {
					p.admit(process, 2)
					p.start(process)
				}
				if p.limits(); len(p.keys()) == 0 && len(p.wanted) > 0 {
					t.Fatalf("seed %d: nothing can run although %d effects are wanted", seed, len(p.wanted))
				}
			}
		}
	}
}

func randomEffects(r *rand.Rand) []settle.Effect {
	var out []settle.Effect
	for s := range 1 + r.IntN(3) {
		session := fmt.Sprintf("s%d", s)
		for d := range 1 + r.IntN(2) {
			dag := fmt.Sprintf("%s-d%d", session, d)
			limit := 1 + r.IntN(3)
			for n := range 1 + r.IntN(8) {
				e := settle.Effect{Key: fmt.Sprintf("dags/%s/n%d-0-1", dag, n), Owner: schemas.DAGKind.Ref(dag), Session: session, Rank: r.IntN(3),
					Groups: []settle.Group{{Name: "tasks"}, {Name: "session/" + session, Limit: 2}, {Name: "dag/" + dag, Limit: limit}}}
				if r.IntN(3) == 0 {
					e.Agent, e.Groups = "engineer", append(e.Groups, settle.Group{Name: "agent/engineer", Limit: 1})
				}
				out = append(out, e)
			}
		}
	}
	return out
}

func sessionEffects(session string, rank, n int) []settle.Effect {
	var out []settle.Effect
	for i := range n {
		out = append(out, settle.Effect{Key: fmt.Sprintf("dags/%s/n%02d-0-1", session, i), Owner: schemas.DAGKind.Ref(session), Session: session,
			Rank: rank, Groups: []settle.Group{{Name: "tasks"}}})
	}
	return out
}

// TestAdmitIsFair runs one at a time: sessions of one rank take turns, and a higher rank goes first.
func TestAdmitIsFair(t *testing.T) {
	wanted := slices.Concat(sessionEffects("a", 2, 6), sessionEffects("b", 2, 3), sessionEffects("c", 1, 2))
	p := newPool(t, 1, wanted)
	for len(p.wanted) > 0 {
		p.admit("p1", 0)
		p.start("p1")
		for _, k := range p.keys() {
			_, key, _ := strings.Cut(k, " ")
			p.finish("p1", key)
		}
	}
	if got, want := strings.Join(p.started, ""), "ccabababaaa"; got != want {
		t.Errorf("sessions got places in the order %s, want %s", got, want)
	}
}

// TestAdmitIgnoresTheOrder of what is wanted, and the load: it changes how many start, never who is next.
func TestAdmitIgnoresTheOrder(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 5))
		wanted, places := randomEffects(r), 1+r.IntN(6)
		admitted := func(wanted []settle.Effect) (keys []string) {
			p := newPool(t, places, wanted)
			p.admit("p1", 0)
			for _, e := range p.claimed["p1"] {
				keys = append(keys, e.Key+fmt.Sprint(e.VirtualStart))
			}
			return keys
		}
		want := admitted(wanted)
		for i := range wanted {
			for k := range wanted[i].Groups {
				wanted[i].Groups[k].Load = float64(r.IntN(3))
			}
		}
		r.Shuffle(len(wanted), func(i, j int) { wanted[i], wanted[j] = wanted[j], wanted[i] })
		if got := admitted(wanted); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v are admitted, want %v", seed, got, want)
		}
	}
}

// TestAdmitGoesByLanes admits random work of all lanes, some of it aged, with limits of roles, agents, sessions and DAGs: whatever is left would
// not fit, what is admitted was of the highest lane in which something fitted, and with a place more the same come first.
func TestAdmitGoesByLanes(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 9))
		wanted := randomEffects(r)
		for i := range wanted {
			e := &wanted[i]
			e.Rank, e.Weight, e.Ageing = r.IntN(5), pick(r, 0, 1, 7, 1000), pick(r, 0, time.Nanosecond, time.Minute, 200*365*24*time.Hour)
			e.QueuedAt = schemas.NewTime(benchNow.Add(-pick(r, -time.Hour, 0, time.Minute, 3*time.Minute, 150*365*24*time.Hour)))
			if role := r.IntN(4); role > 0 {
				e.Groups = append(e.Groups, settle.Group{Name: fmt.Sprintf("role/%d", role), Limit: role})
			}
		}
		var before []settle.Effect
		for places := 1; places < 8; places++ {
			p := newPool(t, places, wanted)
			p.admit("p1", 0)
			admitted := p.claimed["p1"]
			if len(admitted) < len(before) || !slices.EqualFunc(before, admitted[:len(before)], func(a, b settle.Effect) bool { return a.Key == b.Key }) {
				t.Fatalf("seed %d: with %d places others come first: %v, before %v", seed, places, admitted, before)
			}
			before = slices.Clone(admitted)
			used, left := map[string]int{}, map[string]*settle.Effect{}
			for i := range wanted {
				left[wanted[i].Key] = &wanted[i]
			}
			fits := func(e *settle.Effect) bool {
				return !slices.ContainsFunc(e.Groups, func(g settle.Group) bool { return used[g.Name] >= p.limit(g) })
			}
			highest := func() int {
				lane := 5
				for _, e := range left {
					if fits(e) {
						lane = min(lane, admission.Lane(e, benchNow))
					}
				}
				return lane
			}
			for i := range admitted {
				e := &admitted[i]
				if lane := admission.Lane(e, benchNow); lane != highest() {
					t.Fatalf("seed %d: %s of lane %d is admitted before one of lane %d", seed, e.Key, lane, highest())
				}
				delete(left, e.Key)
				for _, g := range e.Groups {
					used[g.Name]++
				}
			}
			if lane := highest(); lane < 5 {
				t.Fatalf("seed %d: something of lane %d fits and is left", seed, lane)
			}
		}
	}
}

// TestAdmitStarvesNobody keeps the places full of work of all lanes below critical, that comes all the time: each effect starts within
// the time in which it ages to high and that of the work before it there.
func TestAdmitStarvesNobody(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	p, came, n := newPool(t, 2, nil), map[string]time.Time{}, 0
	for step := range 1200 {
		p.now = p.now.Add(2 * time.Second)
		for range 1 + step%2*r.IntN(3) { // no more than can run, in the long term
			e := line{fmt.Sprintf("s%d", r.IntN(4)), 1 + r.IntN(4), 1, 1, 0}.wanted()[0]
			e.Key, e.QueuedAt, n = fmt.Sprintf("%s%d", e.Key, n), schemas.NewTime(p.now), n+1
			e.Groups[0].Limit = 2
			p.wanted, came[e.Key] = append(p.wanted, e), p.now
			if p.entries[e.Owner.Name] == nil {
				p.entries[e.Owner.Name] = newPool(t, 1, []settle.Effect{e}).entries[e.Owner.Name]
			}
		}
		p.admit("p1", 0)
		p.start("p1")
		for _, k := range p.keys() {
			_, key, _ := strings.Cut(k, " ")
			if waited := p.now.Sub(came[key]); waited > 17*time.Minute {
				t.Fatalf("%s started after %v", key, waited)
			}
			p.finish("p1", key)
		}
	}
}

// TestAdmitLooksAhead claims more than can run, but only where no other process has claims.
func TestAdmitLooksAhead(t *testing.T) {
	p := newPool(t, 2, sessionEffects("a", 2, 10))
	p.admit("p1", 3)
	if n := len(p.claimed["p1"]); n != 5 {
		t.Errorf("alone: %d claims, want 2 places and 3 ahead", n)
	}
	p.admit("p2", 3)
	if n := len(p.claimed["p2"]); n != 0 {
		t.Errorf("second process: %d claims, want none while the limit is taken", n)
	}
	for len(p.claimed["p1"]) > 1 {
		p.start("p1")
		p.finish("p1", p.claimed["p1"][0].Key)
	}
	p.admit("p2", 3)
	p.admit("p1", 3)
	if a, b := len(p.claimed["p1"]), len(p.claimed["p2"]); a != 1 || b != 1 {
		t.Errorf("together: %d and %d claims, want one each", a, b)
	}
}

// TestAdmitShares lets processes that come one after the other work on the same effects. The first always asks first after an effect
// has ended, with its own queue full; nevertheless each starts its part of the effects, also of a place that cannot be divided, and
// no place stays empty while somebody wants it.
func TestAdmitShares(t *testing.T) {
	for _, c := range []struct{ places, processes int }{{4, 2}, {1, 2}, {2, 3}, {5, 2}, {12, 3}} {
		p := newPool(t, c.places, sessionEffects("a", 2, 600))
		processes, had := []string{"p1", "p2", "p3"}[:c.processes], map[string]int{}
		p.admit("p1", 64)
		p.start("p1")
		begun, empty := false, 0
		for step := 0; len(p.wanted) > 100; step++ {
			p.now = p.now.Add(50 * time.Millisecond)
			process, key, _ := strings.Cut(p.keys()[step%len(p.keys())], " ")
			p.finish(process, key)
			if begun = begun || len(p.claimed["p1"]) < c.places; begun { // what the first claimed ahead, alone, is over
				had[process]++
			}
			for _, process := range processes {
				p.admit(process, 64)
				p.start(process)
			}
			p.limits()
			if n := len(p.keys()); begun && n < c.places {
				if empty++; n == 0 {
					t.Fatalf("%v: nothing runs after step %d", c, step)
				}
			} else {
				empty = 0
			}
			if empty > 1 {
				t.Fatalf("%v: a place stays empty at step %d: %v, %v", c, step, p.keys(), p.waits)
			}
		}
		for _, process := range processes {
			if n, least := had[process], (600-100-64-c.places)/c.processes*8/10; n < least {
				t.Errorf("%v: %s performed %d, want at least %d: %v", c, process, n, least, had)
			}
		}
	}
}

// TestAdmitKeepsNoPlaceForNobody has a process wait for a group of which it needs one place, and for none of the others.
func TestAdmitKeepsNoPlaceForNobody(t *testing.T) {
	p := newPool(t, 8, sessionEffects("a", 2, 20))
	p.waits["p2"] = state.Wait{Process: "p2", Groups: map[string]int{"tasks": 1, "agent/engineer": 3}, Since: schemas.NewTime(benchNow)}
	if p.admit("p1", 64); len(p.claimed["p1"]) != 7 {
		t.Errorf("%d claims, want all places but the one that another process waits for", len(p.claimed["p1"]))
	}
	if n := p.waits["p1"].Groups["tasks"]; n != 8 {
		t.Errorf("it says that it waits for %d places, want 8: all", n)
	}
	delete(p.waits, "p2")
	if p.admit("p1", 0); len(p.claimed["p1"]) != 8 || len(p.waits["p1"].Groups) > 0 {
		t.Errorf("%d claims, want all places, and waits for others: %v", len(p.claimed["p1"]), p.waits["p1"])
	}
}

// BenchmarkNext takes one of 100,000 effects of 100 sessions in five lanes: all are admitted.
func BenchmarkNext(b *testing.B) {
	const queued = 100_000
	wanted := make([]settle.Effect, queued)
	for i := range wanted {
		s := fmt.Sprintf("s%02d", i%100)
		wanted[i] = settle.Effect{Key: fmt.Sprintf("dags/%s/n%05d-0-1", s, i), Owner: schemas.DAGKind.Ref(s), Session: s, Rank: i % 5,
			Groups: []settle.Group{{Name: "tasks", Limit: queued}, {Name: "session/" + s, Limit: queued}}}
	}
	t, all := state.NewTree(nil, nil, nil), pointers(wanted)
	for b.Loop() {
		if n := len(admission.Admit(t, all, nil, "p", 4, 0, new(budgets.Ledger), new(admission.Turns), benchNow)); n != queued {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/queued, "ns/next")
}

// BenchmarkFull finds one place for 100,000 effects.
func BenchmarkFull(b *testing.B) {
	wanted := line{"s", 2, 1, 100_000, 0}.wanted()
	t, all := state.NewTree(nil, nil, nil), pointers(wanted)
	for b.Loop() {
		admission.Admit(t, all, nil, "p", 4, 0, new(budgets.Ledger), new(admission.Turns), benchNow)
	}
}

// BenchmarkAdmit admits from 1,000 effects of ten sessions.
func BenchmarkAdmit(b *testing.B) {
	var wanted []settle.Effect
	for i := range 1000 {
		s := fmt.Sprintf("s%d", i%10)
		wanted = append(wanted, settle.Effect{Key: fmt.Sprintf("dags/%s/n%04d-0-1", s, i), Owner: schemas.DAGKind.Ref(s), Session: s,
			Groups: []settle.Group{{Name: "tasks"}, {Name: "session/" + s, Limit: 50}}, Rank: i % 3})
	}
	t, all := state.NewTree(nil, nil, nil), pointers(wanted)
	b.ReportAllocs()
	for b.Loop() {
		admission.Admit(t, all, nil, "p", 4, 8, new(budgets.Ledger), new(admission.Turns), benchNow)
	}
}
