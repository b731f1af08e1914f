package budgets

import (
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Hold is what a run elsewhere has reserved.
type Hold struct {
	Scopes []string       `json:"scopes"` // of the budgets that it counts against, and its place in a concurrency group
	Budget schemas.Budget `json:"budget"`
	Until  time.Time      `json:"-"` // its expiry, unless it is renewed
}

// HoldOf is what an effect has reserved; nil for nothing.
func HoldOf(e *settle.Effect) *Hold {
	if !e.Reserves() {
		return nil
	}
	h := new(Hold)
	if e.Exclusive != "" {
		h.Scopes = append(h.Scopes, groupScope(e.Exclusive)+e.Owner.String())
	}
	if e.Reserved == nil {
		return h
	}
	dag := ""
	if e.Owner.Kind == schemas.DAGKind.Name {
		dag = e.Owner.Name
	}
	h.Scopes, h.Budget = append(h.Scopes, scopes(dayScope, e.Agent, dag, e.Node, e.Session)...), *e.Reserved
	for i := range e.Allowances {
		if scope := e.Allowances[i].Scope; strings.HasPrefix(scope, ofCall) {
			h.Scopes = append(h.Scopes, scope)
		}
	}
	return h
}

// groupScope is what the scopes of places in a concurrency group begin with; the DAG follows.
func groupScope(group string) string { return "group/" + group + " " }

// Excluded returns until when another DAG of the effect's concurrency group works elsewhere; zero if none does.
func Excluded(e *settle.Effect, all []Hold) (until time.Time) {
	if e.Exclusive == "" {
		return until
	}
	for _, h := range all {
		for _, scope := range h.Scopes {
			if dag, ok := strings.CutPrefix(scope, groupScope(e.Exclusive)); ok && dag != e.Owner.String() && h.Until.After(until) {
				until = h.Until
			}
		}
	}
	return until
}

// scopes are those of a turn of an agent. dag is empty for an answer to a question.
func scopes(day, agent, dag, node, session string) []string {
	out := []string{day, agentScope(agent)}
	if dag != "" {
		out = append(out, dagScope(dag), nodeScope(dag, node))
	}
	if dag != "" && session != "" {
		out = append(out, sessionScope(session))
	}
	return out
}

// Sound reports whether a hold can be counted. It may come from a program that is not ours.
func (h *Hold) Sound() bool {
	b := &h.Budget
	return min(b.Requests, b.Tokens) >= 0 && b.CostUSD >= 0 && b.Limit() >= 0
}

// Hold makes the ledger leave alone what turns elsewhere have reserved.
func (l *Ledger) Hold(all ...Hold) {
	for i := range all {
		for _, scope := range all[i].Scopes {
			l.hold(scope, &all[i].Budget)
		}
	}
}

func (l *Ledger) hold(scope string, b *schemas.Budget) {
	if l.held == nil {
		l.held = map[string]*use{}
	}
	if l.held[scope] == nil {
		l.held[scope] = new(use)
	}
	l.held[scope].add(ofBudget(b), 1)
}

// Waits returns until when, at most, an effect has to wait for holds; zero if it counts against no budget that they count against.
func Waits(e *settle.Effect, all []Hold) (until time.Time) {
	for i := range e.Allowances {
		for _, h := range all {
			for _, scope := range h.Scopes {
				if scope == e.Allowances[i].Scope && h.Until.After(until) {
					until = h.Until
				}
			}
		}
	}
	return until
}
