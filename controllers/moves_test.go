package controllers

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// nodeMoves are the transitions that a node under one key may make from one decision to the next. Decisions may be far
// apart, so most states can follow most others; what matters is what cannot happen.
//
//   - Succeeded is final: only another key (an edit, a change of inputs, a retry) leads out of it, or, where declared
//     outputs are missing, the need of another node for them. An edit of a loop judges the result that is there.
//   - Failed stays, unless an action skips it or the policy allows more attempts after all. It is never Cancelled: what
//     failed is not told to have been cancelled.
var nodeMoves = map[string][]string{
	schemas.NodeSucceeded: {},
	schemas.NodeFailed:    anyState, // an edit may give it more attempts, while an action has them cancelled
	schemas.NodePending:   anyState,
	schemas.NodeQueued:    anyState,
	schemas.NodeRunning:   anyState,
	schemas.NodeBlocked:   anyState,
	schemas.NodeSkipped:   anyState,
	schemas.NodeCancelled: anyState,
}

var anyState = []string{schemas.NodePending, schemas.NodeQueued, schemas.NodeRunning, schemas.NodeSucceeded,
	schemas.NodeFailed, schemas.NodeBlocked, schemas.NodeSkipped, schemas.NodeCancelled}

// sessionMoves are the transitions of a session's phase.
var sessionMoves = map[string][]string{
	schemas.SessionCreated: {schemas.SessionActive, schemas.SessionPaused, schemas.SessionSuspended,
		schemas.SessionCompleted, schemas.SessionFailed},
	schemas.SessionActive: {schemas.SessionPaused, schemas.SessionSuspended, schemas.SessionCompleted,
		schemas.SessionFailed},
	schemas.SessionPaused: {schemas.SessionActive, schemas.SessionSuspended, schemas.SessionCompleted,
		schemas.SessionFailed},
	schemas.SessionSuspended: {schemas.SessionActive, schemas.SessionPaused, schemas.SessionCompleted,
		schemas.SessionFailed},
	schemas.SessionFailed: {schemas.SessionActive, schemas.SessionPaused, schemas.SessionSuspended,
		schemas.SessionCompleted},
	// Completed is left only when spec.phase asks for Active; the session may then have to wait, in Created for a
	// place, in Paused for its owner's other session.
	schemas.SessionCompleted: {schemas.SessionActive, schemas.SessionCreated, schemas.SessionPaused,
		schemas.SessionFailed},
}

func checkMoves(t testing.TB, e *state.Entry, after schemas.Status) {
	t.Helper()
	ref, before := e.Ref, e.Status()
	if before == nil {
		return
	}
	if ref.Kind == schemas.SessionKind.Name {
		if from, to := before.Base().Phase, after.Base().Phase; from != "" && !mayMove(sessionMoves, from, to) {
			t.Errorf("%s moved from %s to %s", ref, from, to)
		}
	}
	if ref.Kind == schemas.ClarificationRequestKind.Name {
		if from, to := before.Base().Phase, after.Base().Phase; from != to && !leads(from, to, 8) {
			t.Errorf("%s moved from %s to %s", ref, from, to)
		}
	}
	was, ok := before.(*schemas.DAGStatus)
	if !ok {
		return
	}
	for name, n := range after.(*schemas.DAGStatus).Nodes.All() {
		old := was.Nodes.Find(name)
		if old == nil {
			continue
		}
		if old.State == schemas.NodeSucceeded && (len(e.Missing) > 0 || strings.HasPrefix(n.Verb, "again-")) {
			continue
		}
		edited := was.ObservedDigest != after.(*schemas.DAGStatus).ObservedDigest
		if edited && n.State == schemas.NodeFailed && (n.Reason == settle.ReasonRoundsUsedUp || n.Reason == settle.ReasonWhenFailed) {
			continue // its loop has other conditions now
		}
		if old.Key == n.Key && !mayMove(nodeMoves, old.State, n.State) {
			t.Errorf("%s: node %s moved from %s to %s (%s) under one key", ref, name, old.State, n.State, n.Reason)
		}
		if n.Generation < old.Generation {
			t.Errorf("%s: node %s went back from generation %d to %d", ref, name, old.Generation, n.Generation)
		}
	}
}

func mayMove(table map[string][]string, from, to string) bool {
	if from == to {
		return true
	}
	for _, s := range table[from] {
		if s == to {
			return true
		}
	}
	return false
}
