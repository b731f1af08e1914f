package ops

import (
	"context"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/metrics"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// ReadyRequest requests work items.
type ReadyRequest struct {
	Agent string // only items that this agent can do; "": all
	Issue *int   // only items about this issue; nil: all
	Taken bool   // also items that others have claimed
	NoRun bool   // read only: decide nothing first
}

// Ready lists the ready items of a ReadyRequest, on which an agent or a person can work now, the most urgent first. It
// is never nil. Unless another run is active, it first decides and writes the statuses; it starts nothing, and waits for nobody.
func Ready(ctx context.Context, env Env, q ReadyRequest) ([]work.Item, error) {
	o, err := env.openReady(ctx, q, false)
	if err != nil {
		return nil, typed(err)
	}
	defer o.store.Close()
	person := agents.IsPerson(o.tree, q.Agent)
	items := []work.Item{}
	for _, it := range work.Ready(o.tree, env.Tree.Now(), settle.Doubtful(o.tree, o.reader.Changed)) {
		switch {
		case !q.about(it):
		case q.Agent != "" && it.Agent != q.Agent && (it.Agent != "" || !person):
		case it.Claim != nil && it.Claim.By != q.Agent && !q.Taken:
		default:
			items = append(items, it)
		}
	}
	return items, nil
}

func (q ReadyRequest) about(it work.Item) bool { return q.Issue == nil || it.Issue == *q.Issue }

// openReady opens the tree, checks the agent of the request, and updates the tree, which a look leaves to a process that holds its lock.
func (e Env) openReady(ctx context.Context, q ReadyRequest, claims bool) (*openTree, error) {
	o, err := e.openChanged(ctx)
	if err != nil {
		return nil, err
	}
	if q.Agent != "" {
		_, err = findAgent(o.tree, q.Agent)
	}
	if err == nil && !claims && !q.NoRun && !e.Caller.InRun() && o.store.Locked() {
		q.NoRun = true
		e.note(otherAtWork)
	}
	if err == nil {
		_, err = e.update(ctx, o, q.NoRun, engine.Request{DecideOnly: true})
	}
	if err != nil {
		_ = o.store.Close() // this only saves a cache
		return nil, err
	}
	return o, nil
}

// ClaimResult is the item that an agent claimed.
type ClaimResult struct {
	Agent string
	Item  *work.Item // nil: there was no free item
	// Unroutable are questions to the agent that are not assigned.
	Unroutable []work.Item
}

// Claim claims the first ready item that is free for the agent of a ReadyRequest, so that no other agent gets it. In a
// run the agent is that of the run. A claimed item is returned even with an error.
func Claim(ctx context.Context, env Env, q ReadyRequest) (r ClaimResult, err error) {
	if r.Agent, err = env.Caller.Worker(q.Agent); err != nil {
		return r, typed(err)
	}
	if r.Agent == "" {
		return r, badField("claim", " needs --agent, the name of who takes the item")
	}
	q.Agent = r.Agent
	o, err := env.openReady(ctx, q, true)
	if err != nil {
		return r, typed(err)
	}
	defer o.store.Close()
	err = o.recordHook(ctx, func(t *state.Tree) (*schemas.Run, error) {
		agent, err := findAgent(t, r.Agent)
		if err != nil {
			return nil, err
		}
		all := work.Ready(t, env.Tree.Now(), settle.Doubtful(t, o.reader.Changed))
		person := agents.IsPerson(t, r.Agent)
		for i := range all {
			it := &all[i]
			switch {
			case !q.about(*it):
			case it.Free(r.Agent, person):
				run := agents.NewHook(agent, schemas.OutcomeStarted, it.Issue, env.Tree.Now())
				run.For = it.Name
				it.Claim = &work.ItemClaim{By: r.Agent, Since: run.StartedAt}
				r.Item, r.Unroutable = it, nil
				return &run, nil
			case it.Reason == settle.ReasonUnroutable && it.Agent == r.Agent:
				r.Unroutable = append(r.Unroutable, *it)
			}
		}
		return nil, nil
	})
	if err != nil {
		return ClaimResult{Agent: r.Agent}, typed(err)
	}
	if r.Item != nil && !anyClaim(o.tree) {
		_, err = env.update(ctx, o, q.NoRun, engine.Request{DecideOnly: true})
	}
	return r, typed(err)
}

// Metrics returns how work waits for places, how long it runs and its usage, by lane and by session, from the records of the tree.
func Metrics(ctx context.Context, env Env) (m metrics.Metrics, err error) {
	store, t, err := env.load(ctx)
	if err != nil {
		return m, typed(err)
	}
	defer store.Close()
	return metrics.Of(t, env.Tree.Now()), nil
}
