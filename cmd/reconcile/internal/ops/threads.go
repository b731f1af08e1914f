package ops

import (
	"context"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/controllers/digest"
	"reconcile.dev/reconcile/controllers/threads"
)

// ThreadsRequest requests clarifications. Of ID, Issue and Troubled at most one is set.
type ThreadsRequest struct {
	ID       string // of one clarification, or the name of its request
	Issue    *int   // all about an issue
	Troubled bool   // open ones that are overdue, do not progress, or wait for each other
	NoRun    bool   // do not update the tree first
}

// All lists the threads of clarifications by issue and number: those that are open, unless the ThreadsRequest
// selects others. The list is never nil. It updates the tree first, so that overdue questions are asked again or
// escalated to a person.
func Threads(ctx context.Context, env Env, q ThreadsRequest) ([]threads.Thread, error) {
	if q.ID != "" {
		if err := checkThreadWord(q.ID); err != nil {
			return nil, err
		}
	}
	o, err := env.open(ctx)
	if err != nil {
		return nil, typed(err)
	}
	defer o.store.Close()
	if _, err := env.update(ctx, o, q.NoRun, engine.Request{}); err != nil {
		return nil, typed(err)
	}
	out := []threads.Thread{}
	switch {
	case q.ID != "":
		one, err := findThread(o.tree, q.ID)
		return append(out, one), typed(err)
	case q.Issue != nil:
		return append(out, threads.All(o.tree, *q.Issue, false)...), nil
	case q.Troubled:
		return append(out, threads.Troubled(o.tree, threads.All(o.tree, -1, true), env.Tree.Now())...), nil
	}
	return append(out, threads.All(o.tree, -1, true)...), nil
}

// DigestRequest requests a summary of clarifications.
type DigestRequest struct {
	Since time.Time // those created since; the zero time: all
}

// Digest returns the digest.Digest of the clarifications that were created since the time of a DigestRequest.
func Digest(ctx context.Context, env Env, q DigestRequest) (digest.Digest, error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return digest.Digest{}, typed(err)
	}
	defer s.Close()
	return digest.New(t, q.Since, env.Tree.Now()), nil
}

// threadState returns the status of a thread for messages, where an empty status is one that was not taken by a run
// yet.
func threadState(status string) string {
	if status == "" {
		return "not taken by a run yet"
	}
	return status
}

func (e Env) threadResult(m threads.Thread) *ThreadResult {
	spec := requestSpec(m.Entry)
	return &ThreadResult{Thread: m, Inside: e.Caller.InRun(), Waits: spec != nil && spec.Blocking && spec.Run != ""}
}
