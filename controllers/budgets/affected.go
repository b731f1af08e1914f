package budgets

import (
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// A record of one object may use up a budget that others wait for. They are decided again when that happens, when a budget is not used
// up any more, and when what they say of it is no longer so; not for every record.

// asker is a node, or a question without one, that runs against budgets.
type asker struct {
	ref  schemas.Ref
	node string
}

// watch has the askers of a budget, by how they are in the tree.
type watch struct {
	allowance settle.Allowance
	free      map[asker]bool
	blocked   map[asker]string // by some budget: what they say
	// compared reports whether what the blocked ones say was compared with these amounts.
	used     use
	compared bool
}

// notice remembers that someone asked about a budget.
func (s *Sums) notice(a *settle.Allowance, by asker) {
	w := s.watched[a.Scope]
	if w == nil {
		w = &watch{free: map[asker]bool{}, blocked: map[asker]string{}}
		s.watched[a.Scope] = w
	}
	w.allowance = *a
	s.asked[by] = append(s.asked[by], a.Scope)
}

// Watch adds, before a round, the objects that are not as the budgets that they run against want it.
func Watch(r *settle.Round) {
	s := shared(r.World.OfRun)
	if len(s.watched) == 0 {
		return
	}
	s.now = r.World.Now
	s.follow(r.World.Tree)
	s.sort(r.World.Tree)
	for scope, w := range s.watched {
		if len(w.free) > 0 && s.spent(&w.allowance) != nil {
			for by := range w.free {
				r.AddWithReaders(by.ref)
			}
		}
		if used := s.at(scope).used; len(w.blocked) > 0 && (used != w.used || !w.compared) {
			why := s.usedUp(&w.allowance)
			for by, says := range w.blocked {
				if why != "" && !strings.Contains(says, why) || why == "" && strings.Contains(says, beginning(&w.allowance)) {
					r.AddWithReaders(by.ref)
				}
			}
			w.used, w.compared = used, true
		}
		if len(w.free)+len(w.blocked) == 0 {
			delete(s.watched, scope)
		}
	}
}

// sort sorts those who asked since the last tree by how they are in this one. Who waits for no budget is watched no more.
func (s *Sums) sort(t *state.Tree) {
	for by, scopes := range s.asked {
		waits, message := by.standing(t)
		for _, scope := range scopes {
			w := s.watched[scope]
			delete(w.free, by)
			delete(w.blocked, by)
			switch {
			case waits:
				w.free[by] = true
			case message != "":
				w.blocked[by], w.compared = message, false
			}
		}
	}
	clear(s.asked)
}

// standing reports whether an asker may start, and why not if a budget keeps it.
func (by asker) standing(t *state.Tree) (waits bool, message string) {
	e := t.Entry(by.ref)
	if e == nil || e.Status() == nil {
		return false, ""
	}
	if by.node == "" {
		c := e.Status().Base().Condition(schemas.Ready)
		if c == nil || c.Reason != settle.ReasonPending && c.Reason != settle.ReasonStale {
			return false, ""
		}
		return !strings.Contains(c.Message, budgetOf), c.Message
	}
	n := schemas.NodesIn(e.Status()).Of(by.node)
	if n.Reason == settle.ReasonBudgetExceeded {
		message = n.Message
	}
	return n.State == schemas.NodeQueued, message
}
