package budgets

import (
	"cmp"
	"math"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Ledger reserves parts of what budgets leave, for several effects one after the other. The zero Ledger has no sums and reserves
// nothing.
type Ledger struct {
	Sums *Sums
	// Slots is how many turns run at once at most where nothing else says so, above 0.
	Slots int
	held  map[string]*use
}

// Reserve reserves for an effect what its turn may use: in each measure that a budget bounds, no more than the smallest of them
// has left. Of that it takes
//
//   - all that its node's budget has left, if it has one;
//   - else, where only its agent's budget bounds it, an equal part for each turn that the agent may take at once;
//   - else limits.turnTokens of the tokens, its time limit of the time, and an equal part of the rest for each turn that may run
//     at once.
//
// ok is false, and nothing is reserved, if nothing is left. b is nil where nothing bounds the effect.
func (l *Ledger) Reserve(e *settle.Effect) (b *schemas.Budget, ok bool) {
	if len(e.Allowances) == 0 || l.Sums == nil {
		return nil, true
	}
	b = new(schemas.Budget)
	for i := range measures {
		m := &measures[i]
		n, bounded := l.part(e, m)
		if bounded && n <= 0 {
			return nil, false
		}
		if bounded {
			m.set(b, n)
		}
	}
	for _, a := range e.Allowances {
		l.hold(a.Scope, b)
	}
	return b, true
}

// part is how much of a measure an effect gets; bounded is false if no budget bounds it.
func (l *Ledger) part(e *settle.Effect, m *measure) (n int64, bounded bool) {
	left, own := int64(math.MaxInt64), int64(0)
	shared, node := false, false
	for i := range e.Allowances {
		a := &e.Allowances[i]
		limit := m.limit(&a.Limit)
		if limit == 0 {
			continue
		}
		bounded = true
		is := l.left(a, m, limit)
		left = min(left, is)
		switch {
		case a.Node:
			node, own = true, is
		case a.Turns == 0:
			shared = true
		case !node:
			own = is / int64(max(a.Turns, 1))
		}
	}
	if !node && (own == 0 || shared) {
		own = l.usual(e, m, left)
	}
	if left > 0 {
		own = max(own, 1)
	}
	return min(own, left), bounded
}

// left is what a budget has left that no one holds.
func (l *Ledger) left(a *settle.Allowance, m *measure, limit int64) int64 {
	at := l.Sums.at(a.Scope)
	n := limit - m.of(at.used) - m.of(at.held)
	if held := l.held[a.Scope]; held != nil {
		n -= m.of(*held)
	}
	return n
}

// usual is how much of a measure a turn takes of budgets that others share.
func (l *Ledger) usual(e *settle.Effect, m *measure, left int64) int64 {
	switch c := e.Command(); {
	case m.field == "tokens":
		return l.Sums.turnTokens
	case m.field == "time" && c != nil && c.Timeout > 0:
		return int64(c.Timeout)
	}
	return left / int64(cmp.Or(l.Slots, 1))
}
