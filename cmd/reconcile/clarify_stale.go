package main

import (
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// troubled picks what is overdue, goes in circles or is in a ring, with the reason; what was escalated for that counts
// until it is resolved.
func troubled(t *state.Tree, matters []matter, now time.Time) []render.Clarification {
	records := make([]schemas.Clarification, len(matters))
	for i := range matters {
		records[i] = matters[i].Clarification.Clarification
	}
	why := map[string]string{} // by id
	found := clarify.Monitor(records, precedenceIn(t), now)
	for i := range found.Stale {
		why[found.Stale[i].ID] = "no answer in time: due " + utc(found.Stale[i].StaleAfter)
	}
	for i := range found.Stuck {
		why[found.Stuck[i].ID] = "it goes in circles"
	}
	for i := range found.Deadlocked {
		why[found.Deadlocked[i].ID] = "it is part of a ring of questions that wait for each other"
	}
	var out []render.Clarification
	for _, m := range matters {
		if m.Why = why[m.ID]; m.ID == "" || m.Why == "" {
			m.Why = escalatedTrouble(&m)
		}
		if m.Why != "" {
			out = append(out, m.Clarification)
		}
	}
	return out
}

// precedenceIn tells how far downstream the agents of a tree are.
func precedenceIn(t *state.Tree) func(agent string) int {
	return func(agent string) int {
		if e := t.Entry(agentRef(agent)); e != nil && e.Object != nil {
			if p := schemas.SpecAs[*schemas.AgentSpec](e.Object).Precedence; p != nil {
				return *p
			}
		}
		return schemas.DefaultPrecedence(agent)
	}
}

func escalatedTrouble(m *matter) string {
	if m.Status != schemas.ClarificationEscalated || m.Escalation == nil {
		return ""
	}
	switch m.Escalation.Reason {
	case schemas.EscalatedStale:
		return "escalated: no answer in time, nor after the retry"
	case schemas.EscalatedStuck:
		return "escalated: it went in circles"
	case schemas.EscalatedDeadlock:
		return "escalated: it was part of a ring of questions that waited for each other"
	}
	return ""
}
