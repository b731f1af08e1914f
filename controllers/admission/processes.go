package admission

import (
	"cmp"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/state"
)

// reserve sets aside, in each group, the places that are due to other processes that wait for them.
func (a *admission) reserve(self string, now time.Time) {
	for name, u := range a.groups {
		waits, mine := []state.Wait(nil), state.Wait{Process: self, Since: a.turns.Since}
		for _, w := range a.turns.Others {
			if w.Groups[name] > 0 {
				waits = append(waits, w)
			}
		}
		if u.wanted = len(waits) > 0; u.wanted {
			u.reserve(append(waits, mine), now)
		}
		a.crowded = a.crowded || u.wanted || u.foreign > 0
	}
}

// reserve computes the part of this process, which is the last of waits, and what must stay free for the others that want places. Each
// is due an equal part, and the rest goes to those whose tenure it is, then to those that have waited longest.
func (u *usage) reserve(waits []state.Wait, now time.Time) {
	part, rest, self := u.limit/len(waits), u.limit%len(waits), waits[len(waits)-1].Process
	slices.SortFunc(waits, func(a, b state.Wait) int {
		return cmp.Or(b.Tenure(now)-a.Tenure(now), a.Since.Compare(b.Since.Time), cmp.Compare(a.Process, b.Process))
	})
	for i, w := range waits {
		due := part
		if i < rest {
			due++
		}
		if w.Process == self {
			u.due = due
		} else {
			u.reserved += max(0, min(due-u.of[w.Process], w.Groups[u.name]))
		}
	}
}

// leave notes an effect that is not admitted, if it waits for nothing but places that other processes have or want, too.
func (a *admission) leave(e *settle.Effect) {
	if !a.crowded || !a.touched.room(e.Touches) {
		return
	}
	for _, g := range e.Groups {
		if u := a.groups[g.Name]; u.foreign == 0 && !u.wanted && !a.room(g) {
			return
		}
	}
	for _, g := range e.Groups {
		if u := a.groups[g.Name]; !a.room(g) && u.lacks < u.limit {
			u.lacks++
			a.turns.Lacks[u.name] = u.lacks
		}
	}
}
