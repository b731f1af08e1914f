// Package admission says which effects may be claimed now, within their limits and in a fair order.
package admission

import (
	"cmp"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Admit returns the wanted effects that the process self may claim now, in the order in which they should start. cpus
// is the limit of groups that name none (0); lookahead is how many more than can run at once may be claimed, so that
// the process need not come back for each. Of what only does not select, nothing is claimed.
//
// A process runs at most limit − (claims of others) effects of a group, wanted or not: a program that is being ended has its places
// until its claim is gone. Admit keeps the sum over all processes within
// the limit, and keeps them from blocking each other, by looking ahead only where no other process has claims or waits: as soon as
// two processes share a group, their claims together stay within its limit, so each of them can run all of its own, and each
// gets its part of the places that it waits for (see [Turns]). It must be called, and the claims and what the process waits for put on
// record, under the tree's lock.
//
// What the turns of agents may use is reserved from ledger, whose sums are those of t; an effect for which nothing is left is not
// among them.
//
// Among effects that compete, the higher lane goes first (see [Lane]); in a lane the session whose turn it is, as turns and the claims
// and records in t say, by weight; in a session the effect that has waited longest. turns remembers from call to call what t no
// longer says.
func Admit(t *state.Tree, wanted []*settle.Effect, only *settle.Selection, self string, cpus, lookahead int,
	ledger *budgets.Ledger, turns *Turns, now time.Time) []settle.Effect {
	turns.Lacks, turns.Foreign = map[string]int{}, map[string]int{}
	a := &admission{cpus: cpus, ledger: ledger, lookahead: lookahead, groups: map[string]*usage{}, turns: turns,
		selected: only.In(t), touched: touched{}, wanted: map[string]bool{}}
	var waiting []*settle.Effect
	for _, e := range wanted {
		if a.waits(t, e, self) {
			waiting = append(waiting, e)
		}
	}
	turns.follow(t)
	a.countEnding(t, self)
	for name, u := range a.groups {
		if u.foreign > 0 {
			turns.Foreign[name] = u.foreign
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	a.remember(t)
	a.reserve(self, now)
	q := &queue{now: turns.now}
	for _, e := range waiting {
		if a.fits(e) {
			q.add(Lane(e, now), turns.of(e.Session), e)
		} else {
			a.leave(e)
		}
	}
	return a.admit(q)
}

// usage counts the claims of a group.
type usage struct {
	name         string
	limit        int
	own, foreign int
	of           map[string]int // those of each other process
	wanted       bool           // another process waits for places
	lacks        int            // as Turns.Lacks
	due          int            // the part of this process then
	reserved     int            // places that stay free for the others; not at the cost of this process's part
}

type admission struct {
	cpus, lookahead int
	groups          map[string]*usage
	turns           *Turns
	owners          []owner // of wanted effects
	selected        func(owner schemas.Ref, node string) bool
	touched         touched
	wanted          map[string]bool // the claimed effects that are wanted, by key
	ledger          *budgets.Ledger
	crowded         bool // other processes have claims, or wait
}

// waits reports whether an effect waits for a claim, and counts it if it has one.
func (a *admission) waits(t *state.Tree, e *settle.Effect, self string) bool {
	s := a.turns.of(e.Session)
	s.length = turnLength / int64(cmp.Or(e.Weight, 1))
	if n := len(a.owners); e.Owner.Kind != schemas.DAGKind.Name && (n == 0 || a.owners[n-1].Ref != e.Owner) {
		a.owners = append(a.owners, owner{e.Owner, s})
	}
	c := settle.ClaimOf(t.Entry(e.Owner), e.Key)
	for _, g := range e.Groups {
		u := a.groups[g.Name]
		if u == nil {
			u = &usage{name: g.Name, limit: cmp.Or(g.Limit, a.cpus), of: map[string]int{}}
			a.groups[g.Name] = u
		}
		switch {
		case c == nil:
		case c.Process == self:
			u.own++
		default:
			u.foreign++
			u.of[c.Process]++
		}
	}
	claimed := c != nil
	if claimed {
		a.wanted[e.Key] = true
		a.touched.add(e.Touches)
	}
	waits := !claimed && a.selected(e.Owner, e.Node)
	if claimed || waits {
		a.touched.add(e.Holds)
	}
	return waits
}

// countEnding counts the claims that no wanted effect has: their programs have time to end. It counts what they touch, and of other
// processes their places. The runner counts those of this process.
func (a *admission) countEnding(t *state.Tree, self string) {
	for _, e := range a.turns.claimed {
		for i := range e.Claims {
			c := &e.Claims[i]
			if a.wanted[c.Key] {
				continue
			}
			if spec := state.SpecOf[*schemas.DAGSpec](e); spec != nil && spec.Node(c.Node) != nil {
				a.touched.add(plan.TouchedPaths(spec.Node(c.Node).Touches))
			}
			if c.Process == self {
				continue
			}
			for _, g := range GroupsOf(t, e, ownerSession(e), c) {
				if u := a.groups[g.Name]; u != nil {
					u.foreign++
					u.of[c.Process]++
				}
			}
		}
	}
}

// room reports whether one more claim fits into a group.
func (a *admission) room(g settle.Group) bool {
	u, limit := a.groups[g.Name], cmp.Or(g.Limit, a.cpus)
	if u.foreign == 0 && !g.Exact && !u.wanted {
		limit += a.lookahead
	}
	keep := u.reserved
	if u.own < u.due {
		keep = 0
	}
	return u.own+u.foreign+keep < limit
}

// owner is an object other than a DAG with wanted effects.
type owner struct {
	schemas.Ref
	*share // of its session
}

// remember adds what claims and records of owners other than DAGs say to the turns.
func (a *admission) remember(t *state.Tree) {
	for _, o := range a.owners {
		if e := t.Entry(o.Ref); e != nil {
			a.turns.see(o.share, e)
		}
	}
}

// admit claims what fits, in order. What does not fit when its turn comes is dropped: claims only grow in an admission, so it would
// not fit later either. Once the places of the tree are taken, all that needs one is dropped.
func (a *admission) admit(q *queue) (out []settle.Effect) {
	full := false
	if u := a.groups[settle.TasksGroup]; u != nil {
		out = make([]settle.Effect, 0, min(q.size, max(0, u.limit+a.lookahead-u.own-u.foreign)))
	}
	for e := q.next(); e != nil; e = q.next() {
		if !a.fits(e) {
			a.leave(e)
			continue
		}
		budget, ok := a.ledger.Reserve(e)
		if !ok {
			continue
		}
		for _, g := range e.Groups {
			a.groups[g.Name].own++
		}
		a.touched.add(e.Touches)
		claimed := *e
		claimed.Reserve(budget)
		claimed.VirtualStart = q.take()
		out = append(out, claimed)
		if !full && a.full(e) {
			full = true
			q.keep(a.fits, a.leave)
		}
	}
	return out
}

func (a *admission) fits(e *settle.Effect) bool {
	for _, g := range e.Groups {
		if !a.room(g) {
			return false
		}
	}
	return a.touched.room(e.Touches)
}

// full reports whether the places of the whole tree, of which e has one, are taken.
func (a *admission) full(e *settle.Effect) bool {
	i := slices.IndexFunc(e.Groups, func(g settle.Group) bool { return g.Name == settle.TasksGroup })
	return i >= 0 && !a.room(e.Groups[i])
}
