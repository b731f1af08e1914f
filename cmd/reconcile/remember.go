package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/lock"
)

// remembering connects the memory to a run: the loop keeps it in step with the tree, the runner reminds agents of what
// is in it, and learns for it. Runs do the latter two beside the loop, which tells of them at its next turn.
type remembering struct {
	*wiring
	files *memstore.Files
	busy  string // the file whose lock could not be had; only the loop's, as is wrote
	wrote int    // files of the memory that were written and that the loop knows of

	mu   sync.Mutex
	told []controllers.Event
}

// newRemembering opens the memory; nothing is read yet. doing is told how far it is with what takes long. Settings are those of the tree at any time, since a watcher
// outlives a change of them.
func (w *wiring) newRemembering(doing func(step string, done, total int)) *remembering {
	r := &remembering{wiring: w}
	r.files = memstore.Open(w.store, memstore.Options{Now: w.now, Kinds: kinds(), Warn: r.worry,
		Doing: doing})
	return r
}

// worry tells of what is wrong with the memory and keeps nobody from working.
func (r *remembering) worry(text string) {
	r.warn("warning: " + text)
	r.add(controllers.NewMemoryWarning(text, r.now()))
}

func (r *remembering) add(e ...controllers.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, e...)
}

// Told implements [loop.Memory].
func (r *remembering) Told() []controllers.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.told
	r.told = nil
	return out
}

// Save implements [loop.Memory].
func (r *remembering) Save() { r.files.Save() }

// Settle implements [loop.Memory].
func (r *remembering) Settle(ctx context.Context, t *state.Tree) (loop.Settled, error) {
	done, err := r.files.Settle(ctx, t)
	for _, s := range done.Stored {
		r.add(controllers.NewMemoryEvent(controllers.MemoryStored, s.Agent, s.Issue, s.IDs, s.Tokens, r.now()))
	}
	for _, text := range done.Warnings {
		r.worry(text)
	}
	r.tellBusy(err)
	return loop.Settled{Edited: done.Edited, Events: r.Told(), Wrote: r.written()}, err
}

// written counts the files of the memory that were written since the last call.
func (r *remembering) written() int {
	was := r.wrote
	r.wrote = r.files.Written()
	return r.wrote - was
}

// tellBusy tells once which lock cannot be had: the loop tries again.
func (r *remembering) tellBusy(err error) {
	var held *lock.BusyError
	if !errors.As(err, &held) {
		r.busy = ""
		return
	}
	if r.busy != held.Path {
		r.busy = held.Path
		r.worry("Memory capture skipped: lock timeout on " + held.Path)
	}
}

// Compact implements [loop.Memory].
func (r *remembering) Compact(ctx context.Context) (loop.Settled, error) {
	done, err := r.files.CompactDue(ctx)
	for _, c := range done {
		r.add(controllers.NewMemoryCompacted(c.Issue, c.Before, c.After, r.now()))
	}
	r.tellBusy(err)
	return loop.Settled{Events: r.Told(), Wrote: r.written()}, err
}

// Anchor implements [loop.Memory].
func (r *remembering) Anchor(o *schemas.ObservationSpec) {
	for i := range o.Entries {
		e := &o.Entries[i]
		for _, p := range e.Anchors {
			digest := r.files.Digest(p)
			if digest == "" || e.Digests[p] != "" {
				continue
			}
			if e.Digests == nil {
				e.Digests = map[string]string{}
			}
			e.Digests[p] = digest
		}
	}
}

// recall is what an agent is told at its start. One that cannot be reminded works without.
func (r *remembering) recall(ctx context.Context, task controllers.Recall) string {
	found, err := r.files.Recall(ctx, memstore.Request{
		Agent: task.Agent, Issue: task.Issue, Context: task.Context, Repeatable: true,
	})
	if err != nil {
		r.worry(fmt.Sprintf("Memory recall skipped for %s: %v", task.Agent, err))
		return ""
	}
	if len(found.IDs) == 0 {
		return ""
	}
	r.add(controllers.NewMemoryEvent(controllers.MemoryRecalled, task.Agent, task.Issue, found.IDs, found.Tokens, r.now()))
	if found.Displaced > 0 && r.log != nil {
		r.log.Info(fmt.Sprintf("Memory recall displaced %d tokens of manual re-read", found.Displaced), "agent", task.Agent,
			"issueNumber", task.Issue)
	}
	return found.Text
}

// learn is what is worth keeping of what an agent said in a run.
func (r *remembering) learn(l controllers.Lesson) ([]schemas.ObservationEntry, int) {
	got := memory.LearnRun(r.source(l.Agent, l.Issue, l.At, l.Text))
	return got.Entries, got.SourceTokens
}

func (r *remembering) source(agent string, issue int, at time.Time, text string) memory.Source {
	return memory.Source{Agent: agent, Issue: issue, At: at, Text: text, Exists: r.files.Exists, Digest: r.files.Digest,
		Known: r.files.Known}
}
