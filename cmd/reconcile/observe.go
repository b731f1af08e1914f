package main

import (
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// watchedNodes turns what the loop observes into progress: starts and ends as they are reported.
type watchedNodes struct {
	progress render.Progress
	started  map[string]time.Time // by key
}

func newWatchedNodes(p render.Progress) *watchedNodes {
	return &watchedNodes{progress: p, started: map[string]time.Time{}}
}

func (w *watchedNodes) observe(reports []controllers.Report, t *state.Tree) {
	for _, r := range reports {
		if tr, ok := w.transition(r); ok {
			tr.Done, tr.Total = progressOf(t, tr.Owner)
			w.progress.Event(tr)
		}
		if r.Kind == controllers.Finished && r.Why != "" {
			w.progress.Note(r.Why)
		}
	}
}

func (w *watchedNodes) transition(r controllers.Report) (render.Transition, bool) {
	owner, node := ownerAndNode(r.Key)
	tr := render.Transition{At: r.At, Owner: owner, Node: node}
	switch r.Kind {
	case controllers.Started:
		w.started[r.Key] = r.At
		tr.State = schemas.NodeRunning
	case controllers.Finished:
		tr.State, tr.Took = r.Run.Outcome, ran(r.Run)
		if r.Run.Outcome != schemas.OutcomeSucceeded {
			tr.Message = r.Run.Message
		}
	default:
		if _, ran := w.started[r.Key]; !ran && r.Kind != controllers.Held {
			return tr, false // nobody saw it start; what is Broken the end of the run tells
		}
		tr.State, tr.Message = schemas.NodeQueued, r.Why
		if r.Err != nil {
			tr.Message = r.Err.Error()
		}
	}
	if r.Kind != controllers.Started {
		delete(w.started, r.Key)
	}
	return tr, true
}

// ran is how long a run took. Records count milliseconds, so what took less counts as one.
func ran(r *schemas.Run) time.Duration {
	if r.StartedAt.IsZero() {
		return 0
	}
	return max(r.FinishedAt.Sub(r.StartedAt.Time), time.Millisecond)
}

// ownerAndNode reads a key: "dags/checks/build-0123456789abcdef-1" is build of dag/checks.
func ownerAndNode(key string) (owner, node string) {
	parts := strings.SplitN(key, "/", 3)
	if len(parts) != 3 {
		return key, ""
	}
	owner = parts[0] + "/" + parts[1]
	if k, ok := kinds().Find(parts[0]); ok {
		owner = k.Singular() + "/" + parts[1]
	}
	node = parts[2]
	for range 2 {
		node = node[:max(strings.LastIndexByte(node, '-'), 0)]
	}
	return owner, node
}

func progressOf(t *state.Tree, owner string) (done, total int) {
	ref, err := kinds().ParseRef(owner)
	if err != nil || t == nil {
		return 0, 0
	}
	if e := t.Entry(ref); e != nil {
		if st, ok := e.Status.(*schemas.DAGStatus); ok {
			return st.Progress.Done, st.Progress.Total
		}
	}
	return 0, 0
}
