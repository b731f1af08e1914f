// Package admission says which effects may be claimed now, within their limits and in a fair order.
package admission

import (
	"cmp"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Admit returns the wanted effects that the process self may claim now, in the order in which they should start. cpus
// is the limit of groups that name none (0); lookahead is how many more than can run at once may be claimed, so that
// the process need not come back for each. Of what only does not select, nothing is claimed.
//
// A process runs at most limit − (claims of others) effects of a group. Admit keeps the sum over all processes within
// the limit, and keeps them from blocking each other, by looking ahead only where no other process has claims: as soon as
// two processes share a group, their claims together stay within its limit, so each of them can run all of its own. It
// must be called, and the claims put on record, under the tree's lock.
//
// What the turns of agents may use is reserved from ledger, whose sums are those of t; an effect for which nothing is left is not
// among them.
//
// Among effects that compete, the smaller Rank goes first; within a rank the session with the fewest claims, then the
// one that got a place least recently, so that no session waits for ever for its equals; then the Key decides.
func Admit(t *state.Tree, wanted []*settle.Effect, only *settle.Selection, self string, cpus, lookahead int,
	ledger *budgets.Ledger) []settle.Effect {
	a := &admission{cpus: cpus, ledger: ledger, lookahead: lookahead, groups: map[string]*usage{}, lines: map[line]*[]*settle.Effect{},
		shares: map[string]*share{}, selected: only.In(t), touched: touched{}}
	for _, e := range wanted {
		a.enter(t, e, self)
	}
	return a.admit(t)
}

// usage counts the claims of a group.
type usage struct{ own, foreign int }

// line is where effects of equal standing queue.
type line struct {
	rank    int
	session string
}

// share is what a session has had.
type share struct {
	claims int
	last   schemas.Time  // the latest start
	owners []schemas.Ref // whose effects queue or run
}

type admission struct {
	cpus, lookahead int
	groups          map[string]*usage
	lines           map[line]*[]*settle.Effect
	shares          map[string]*share
	selected        func(owner schemas.Ref, node string) bool
	touched         touched
	ledger          *budgets.Ledger
}

func (a *admission) enter(t *state.Tree, e *settle.Effect, self string) {
	s := a.shares[e.Session]
	if s == nil {
		s = new(share)
		a.shares[e.Session] = s
	}
	if n := len(s.owners); n == 0 || s.owners[n-1] != e.Owner {
		s.owners = append(s.owners, e.Owner)
	}
	if c := settle.ClaimOf(t.Entry(e.Owner), e.Key); c != nil {
		s.claims++
		a.count(e.Groups, c.Process == self)
		a.touched.add(e.Touches)
		return
	}
	if !a.selected(e.Owner, e.Node) {
		return
	}
	at := line{e.Rank, e.Session}
	if a.lines[at] == nil {
		a.lines[at] = new([]*settle.Effect)
	}
	*a.lines[at] = append(*a.lines[at], e)
}

func (a *admission) count(groups []settle.Group, own bool) {
	for _, g := range groups {
		u := a.groups[g.Name]
		if u == nil {
			u = new(usage)
			a.groups[g.Name] = u
		}
		if own {
			u.own++
		} else {
			u.foreign++
		}
	}
}

// room reports whether one more claim fits into all the groups.
func (a *admission) room(groups []settle.Group) bool {
	for _, g := range groups {
		limit := cmp.Or(g.Limit, a.cpus)
		u := a.groups[g.Name]
		switch {
		case u == nil:
			continue // limits are at least 1
		case u.foreign == 0:
			limit += a.lookahead
		}
		if u.own+u.foreign >= limit {
			return false
		}
	}
	return true
}

// admit takes effects rank by rank, each time from the session whose turn it is.
func (a *admission) admit(t *state.Tree) []settle.Effect {
	byRank := map[int][]string{}
	for at, queue := range a.lines {
		slices.SortFunc(*queue, func(x, y *settle.Effect) int { return strings.Compare(x.Key, y.Key) })
		byRank[at.rank] = append(byRank[at.rank], at.session)
	}
	if len(a.lines) > 1 {
		a.remember(t)
	}
	var out []settle.Effect
	for rank := 0; len(byRank) > 0; rank++ {
		sessions, ok := byRank[rank]
		if !ok {
			rank = smallest(byRank) - 1
			continue
		}
		delete(byRank, rank)
		out = append(out, a.serve(rank, sessions)...)
	}
	return out
}

func smallest(m map[int][]string) int {
	first := true
	least := 0
	for k := range m {
		if first || k < least {
			first, least = false, k
		}
	}
	return least
}

// remember compensates for pruned records: the status of the same key still holds.
func (a *admission) remember(t *state.Tree) {
	for _, s := range a.shares {
		for _, ref := range s.owners {
			e := t.Entry(ref)
			if e == nil {
				continue
			}
			for _, r := range e.Runs() {
				s.last = schemas.Later(s.last, r.StartedAt)
			}
			for i := range e.Claims {
				s.last = schemas.Later(s.last, e.Claims[i].StartedAt)
			}
		}
	}
}

// serve admits what fits of one rank.
func (a *admission) serve(rank int, sessions []string) []settle.Effect {
	var out []settle.Effect
	for len(sessions) > 0 {
		name := slices.MinFunc(sessions, a.turn)
		e := a.next(line{rank, name})
		if e == nil {
			sessions = slices.DeleteFunc(sessions, func(s string) bool { return s == name })
			continue
		}
		a.count(e.Groups, true)
		a.touched.add(e.Touches)
		a.shares[name].claims++
		out = append(out, *e)
	}
	return out
}

// turn orders sessions by their precedence.
func (a *admission) turn(x, y string) int {
	s, o := a.shares[x], a.shares[y]
	return cmp.Or(cmp.Compare(s.claims, o.claims), s.last.Compare(o.last.Time), strings.Compare(x, y))
}

// next takes the first effect of the line that fits; nil: none does. What does not fit now will not fit later in this admission, for
// claims only grow, so it is dropped.
func (a *admission) next(at line) *settle.Effect {
	queue := a.lines[at]
	for len(*queue) > 0 {
		e := (*queue)[0]
		*queue = (*queue)[1:]
		if !a.room(e.Groups) || !a.touched.room(e.Touches) {
			continue
		}
		if b, ok := a.ledger.Reserve(e); ok {
			reserved := *e
			reserved.Reserve(b)
			return &reserved
		}
	}
	return nil
}
