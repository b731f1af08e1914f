// Package recall connects the memory to a run: agents get recalled observations at their start, and their output is
// captured.
package recall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/observations"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/lock"
)

// Options configure a Memory.
type Options struct {
	Store *state.Store
	Now   func() time.Time
	Log   *slog.Logger // nil: nothing is logged
	Warn  func(text string)
	// Count is called with the progress of long work.
	Count func(step string, done, total int)
}

// Memory connects the memory to a run: the loop updates it from the tree, and the runner recalls observations from it
// and captures new ones for it. Runs do the latter two concurrently with the loop, which drains their events at its
// next turn.
type Memory struct {
	o     Options
	files *memstore.Files
	busy  string // the path of a busy lock; used by the loop only, like wrote
	wrote int    // written files of the memory that the loop has counted

	mu     sync.Mutex
	events []settle.Event // since the last DrainEvents
}

// New returns the Memory that a run recalls from and learns to, with the memory files of a store opened. Nothing is
// read yet. It reads the settings from the tree each time, since a watcher outlives a change of them.
func New(o Options) *Memory {
	r := &Memory{o: o}
	r.files = memstore.Open(o.Store, memstore.Options{Now: o.Now, Kinds: o.Store.Kinds(), Warn: r.warn, Doing: o.Count})
	return r
}

// Close closes the files of the memory.
func (r *Memory) Close() error { return r.files.Close() }

// warn reports a problem of the memory. It stops no work.
func (r *Memory) warn(text string) {
	r.o.Warn("warning: " + text)
	r.addEvents(observations.NewWarning(text, r.o.Now()))
}

func (r *Memory) addEvents(e ...settle.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e...)
}

// DrainEvents implements [loop.Memory].
func (r *Memory) DrainEvents() []settle.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.events
	r.events = nil
	return out
}

// Save implements [loop.Memory].
func (r *Memory) Save() { r.files.Save() }

// Settle implements [loop.Memory].
func (r *Memory) Settle(ctx context.Context, t *state.Tree) (loop.MemoryResult, error) {
	done, err := r.files.Settle(ctx, t)
	for _, s := range done.Stored {
		r.addEvents(observations.NewEvent(settle.MemoryStored, s.Agent, s.Issue, s.IDs, s.Tokens, r.o.Now()))
	}
	for _, text := range done.Warnings {
		r.warn(text)
	}
	r.reportBusy(err)
	return loop.MemoryResult{Edited: done.Edited, Events: r.DrainEvents(), Wrote: r.written()}, err
}

// written counts the files of the memory that were written since the last call.
func (r *Memory) written() int {
	was := r.wrote
	r.wrote = r.files.Written()
	return r.wrote - was
}

// reportBusy reports a busy lock once: the loop retries.
func (r *Memory) reportBusy(err error) {
	var held *lock.BusyError
	if !errors.As(err, &held) {
		r.busy = ""
		return
	}
	if r.busy != held.Path {
		r.busy = held.Path
		r.warn("Memory capture skipped: lock timeout on " + held.Path)
	}
}

// Compact implements [loop.Memory].
func (r *Memory) Compact(ctx context.Context) (loop.MemoryResult, error) {
	done, err := r.files.CompactDue(ctx)
	for _, c := range done {
		r.addEvents(observations.NewCompacted(c.Issue, c.Before, c.After, r.o.Now()))
	}
	r.reportBusy(err)
	return loop.MemoryResult{Events: r.DrainEvents(), Wrote: r.written()}, err
}

// Anchor implements [loop.Memory].
func (r *Memory) Anchor(o *schemas.ObservationSpec) {
	for i := range o.Entries {
		e := &o.Entries[i]
		for _, p := range e.Anchors {
			digest := r.files.Digest(p)
			if e.Digests[p] == "" {
				memory.AddAnchor(e, p, digest)
			}
		}
	}
}

// Recall returns the text that the memory recalls for an agent's task at its start. If the recall fails, that is a
// warning, and the agent works without it.
func (r *Memory) Recall(task settle.Recall) string {
	ctx := context.Background() // a start that has begun is completed, and then stopped in order
	found, err := r.files.Recall(ctx, memstore.Request{
		Agent: task.Agent, Issue: task.Issue, Context: task.Context, Repeatable: true,
	})
	if err != nil {
		r.warn(fmt.Sprintf("Memory recall skipped for %s: %v", task.Agent, err))
		return ""
	}
	if len(found.IDs) == 0 {
		return ""
	}
	r.addEvents(observations.NewEvent(settle.MemoryRecalled, task.Agent, task.Issue, found.IDs, found.Tokens, r.o.Now()))
	if found.Displaced > 0 && r.o.Log != nil {
		r.o.Log.Info(fmt.Sprintf("Memory recall displaced %d tokens of manual re-read", found.Displaced), "agent", task.Agent,
			"issueNumber", task.Issue)
	}
	return found.Text
}

// Learn extracts observation entries from the text of a lesson, an agent's output of a run, and counts the tokens of
// the source.
func (r *Memory) Learn(l settle.Lesson) ([]schemas.ObservationEntry, int) {
	got := memory.LearnRun(r.source(l.Agent, l.Issue, l.At, l.Text))
	return got.Entries, got.SourceTokens
}

func (r *Memory) source(agent string, issue int, at time.Time, text string) memory.Source {
	return memory.Source{Agent: agent, Issue: issue, At: at, Text: text, Exists: r.files.Exists, Digest: r.files.Digest,
		Known: r.files.Known, StateFolder: r.files.StateFolder()}
}
