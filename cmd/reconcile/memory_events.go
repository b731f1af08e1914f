package main

import (
	"context"
	"fmt"
	"log/slog"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/eventlog"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
)

// tellStored tells the event log and the structured log what a capture stored. What is held by a lock is told by the
// run that takes it in; that it is held is a warning.
func (a *app) tellStored(ctx context.Context, s *state.Store, agent string, issue int, c memstore.Captured) {
	if c.Held {
		a.tellMemory(ctx, s, controllers.NewMemoryWarning(c.Why, a.now()))
	}
	if len(c.Observations) == 0 {
		return
	}
	ids := make([]string, len(c.Observations))
	for i := range c.Observations {
		ids[i] = c.Observations[i].ID
	}
	a.tellMemory(ctx, s, controllers.NewMemoryEvent(controllers.MemoryStored, agent, issue, ids, c.Tokens, a.now()))
}

// tellRecalled tells the logs what was recalled, and people what that saves.
func (a *app) tellRecalled(ctx context.Context, s *state.Store, o recallOptions, found memstore.Recalled) {
	if len(found.IDs) == 0 {
		return
	}
	if found.Displaced > 0 {
		told := fmt.Sprintf("Memory recall displaced %d tokens of manual re-read", found.Displaced)
		a.note("%s", told)
		a.logMemory(told, slog.String("agent", o.agent), slog.Int("issueNumber", o.issue.number))
	}
	a.tellMemory(ctx, s, controllers.NewMemoryEvent(controllers.MemoryRecalled, o.agent, o.issue.number,
		found.IDs, found.Tokens, a.now()))
}

// tellMemory writes an event of the memory into the logs. The event log can be lost, so that an event that cannot be written
// is a warning.
func (a *app) tellMemory(ctx context.Context, s *state.Store, e controllers.Event) {
	if err := eventlog.Append(ctx, s, a.log, e); err != nil {
		a.warnMemory("event log: " + err.Error())
	}
}
