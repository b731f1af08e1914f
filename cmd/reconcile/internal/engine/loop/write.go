package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// flush writes the statuses that differ from their files, except those that can be deferred. force writes all of them.
func (s *run) flush(ctx context.Context, force bool) error {
	s.recordTransitions()
	now := s.loop.Now()
	var changes, applied []state.Change
	stamps := map[schemas.Ref]statusStamp{}
	for _, ref := range sortedRefs(s.unwritten) {
		e := s.tree.Entry(ref)
		if e == nil || !e.HasStatus() {
			delete(s.unwritten, ref) // removals deletes its file, if there is one
			continue
		}
		if !force && s.canDefer(e) || ref.Kind == schemas.ClarificationRequestKind.Name && s.onBusyLedger(ref, "") {
			continue
		}
		s.loop.Store.Working()
		data, err := state.EncodeStatus(ref, e.Status())
		if err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
		c := state.Change{Path: e.StatusPath, Data: data, Status: e.Status()}
		if ref.Kind == schemas.ActionKind.Name {
			applied = append(applied, c) // written after its target: a kill in between could otherwise lose the action
		} else {
			changes = append(changes, c)
		}
		stamps[ref] = stampOf(e, len(data))
	}
	changes = append(append(changes, applied...), s.removals(force)...)
	if err := s.write(ctx, changes, now); err != nil {
		return err
	}
	return s.noteFlushed(ctx, stamps)
}

// flushLarge writes the statuses of a large tree before the memory is updated, which may take equally long. The run
// that follows a killed one then does not start over.
func (s *run) flushLarge(ctx context.Context) error {
	if len(s.unwritten) < state.Batch {
		return nil
	}
	return s.flush(ctx, false)
}

// noteFlushed notes which statuses were written, and updates the projection of the agents.
func (s *run) noteFlushed(ctx context.Context, stamps map[schemas.Ref]statusStamp) error {
	agents := len(s.removedAgents) > 0
	for ref, is := range stamps {
		delete(s.unwritten, ref)
		delete(s.unwrittenBytes, ref)
		s.written[ref] = is
		agents = agents || ref.Kind == schemas.AgentKind.Name
	}
	if !agents {
		return nil
	}
	return s.projectAgents(ctx)
}

// moveDamaged moves damaged files under state/ away, so that their content is decided again. Ledgers with git conflict
// markers are merged; of other ledgers, the intact records are kept.
func (s *run) moveDamaged(ctx context.Context) error {
	var events []controllers.Event
	tell := func(p schemas.Problem, how string) {
		text := fmt.Sprintf("%s: %s; %s", p.Place, p.Message, how)
		s.warn(text)
		events = append(events, controllers.Event{Ref: p.Ref, Reason: "DamagedState", Message: text, Warning: true})
	}
	rest := map[string]schemas.Problem{}
	found := false
	for _, p := range s.tree.Problems() {
		if p.Code != state.DamagedState {
			continue
		}
		if found = true; s.resolveConflict(ctx, p) {
			tell(p, "both sides were united")
		} else {
			rest[p.Path] = p
		}
	}
	if !found {
		return nil
	}
	moved, err := s.loop.Store.MoveAside(ctx, clarify.Salvage)
	for _, path := range moved {
		if p, ok := rest[path]; ok {
			tell(p, "it was moved to .reconcile/damaged, and is decided again")
			delete(rest, path)
		}
	}
	s.recordEvents(events)
	if err != nil {
		return err
	}
	return s.refresh(ctx, append([]string{}, slices.Sorted(maps.Keys(rest))...)) // the remaining files were being written
}

func (s *run) warn(text string) {
	if s.loop.Warn != nil {
		s.loop.Warn(text)
	}
}

func (s *run) write(ctx context.Context, changes []state.Change, now time.Time) error {
	if len(changes) == 0 {
		return nil
	}
	done := 0
	for part := range slices.Chunk(changes, state.Batch) {
		n, err := s.loop.Store.Write(ctx, part)
		if n > 0 {
			s.wrote += n
			s.changedAt = now
		}
		if err != nil {
			return fmt.Errorf("write statuses: %w", err)
		}
		done += len(part)
		s.progress("write", done, len(changes))
	}
	return nil
}

// projectAgents updates state/agent-status.json from the agents' statuses.
func (s *run) projectAgents(ctx context.Context) error {
	path := s.tree.Settings().Folders.State + "/agent-status.json"
	fold := func(old []byte) ([]byte, error) { return controllers.FoldAgentStatus(old, s.tree, s.removedAgents...) }
	err := s.loop.Store.Fold(ctx, path, fold)
	if errors.Is(err, controllers.ErrNoAgentStatus) {
		s.warn(fmt.Sprintf("%v; it was moved to .reconcile/damaged, and is written anew", err))
		damaged := func(data []byte) bool {
			_, err := fold(data)
			return errors.Is(err, controllers.ErrNoAgentStatus)
		}
		if err = s.loop.Store.SetAside(ctx, path, damaged, nil); err == nil {
			err = s.loop.Store.Fold(ctx, path, fold)
		}
	}
	if err == nil {
		s.removedAgents = nil
	}
	return err
}

// removals deletes the files of objects that must not have any: the status of an object without problems, and the
// status and records of an object whose spec was removed, once nothing of it runs. The journal has the records of this
// process first; they become files at a checkpoint, so only a forced flush, which follows a checkpoint, removes those.
func (s *run) removals(force bool) []state.Change {
	var changes []state.Change
	for _, ref := range sortedRefs(s.removed) {
		was, is := s.removed[ref], s.tree.Entry(ref)
		if is != nil && is.Gone() {
			was = is
		}
		switch {
		case len(was.Claims) > 0 && is == was || s.hasMine(ref):
			continue // its effect is being stopped; the result comes first
		case !force && s.journal != nil && was.RunCount() > 0:
			continue
		case is == nil || is.Gone():
			changes = append(changes, s.removeEntry(was)...)
		case !is.HasStatus():
			changes = append(changes, state.Change{Path: was.StatusPath})
		}
		delete(s.removed, ref)
	}
	return changes
}

// removeEntry removes an object without a spec from the tree.
func (s *run) removeEntry(e *state.Entry) []state.Change {
	if e.Kind == schemas.AgentKind.Name {
		s.removedAgents = append(s.removedAgents, e.Name)
	}
	changes := []state.Change{{Path: e.StatusPath}}
	for _, r := range e.Runs() {
		changes = append(changes, state.Change{Path: s.loop.Store.RunPath(r.Key)})
	}
	s.tree = s.tree.With(&state.Entry{Ref: e.Ref})
	return changes
}

func (s *run) hasMine(ref schemas.Ref) bool {
	for _, e := range s.mine {
		if e.Owner == ref {
			return true
		}
	}
	return false
}

// finalize turns the journal into files, drops old records, commits, publishes, and marks the tree as settled if no
// work is left.
func (s *run) finalize(run context.Context) error {
	ctx := context.WithoutCancel(run) // only the remote is given up at once
	if err := s.recoverKilled(ctx); err != nil {
		return err
	}
	if err := s.pullBeforePush(run); err != nil {
		return err
	}
	done := slices.Clone(s.unpushed)
	err := s.withLock(ctx, func() error {
		if err := s.checkpoint(ctx); err != nil {
			return err
		}
		return s.archive(ctx)
	})
	if err != nil {
		return err
	}
	behind := false
	open := s.openObjects()
	if s.loop.Commit != nil {
		made, err := s.loop.Commit(ctx, s.tree, Scope{MemorySettled: !s.memoryPending(), Open: open})
		if err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		if made.Hash != "" {
			s.commit = made.Hash
		}
		behind = made.Incomplete
	}
	s.keepOutputs(ctx)
	if err := s.publish(run, done); err != nil {
		return err
	}
	s.publishOutputs(run)
	s.changedAt, s.finalized, s.withheld = time.Time{}, true, len(open) > 0
	if s.loop.Memory != nil {
		s.loop.Memory.Save()
	}
	if behind || s.leftOrphans || s.busy() || len(s.effects) > 0 || s.awaits(nil) || s.restoring() || s.unrestored || s.unkept != nil || s.memoryPending() || len(s.busyLedgers) > 0 {
		return nil // a tree with pending work must not count as settled
	}
	return s.withLock(ctx, func() error { return s.loop.Store.Settle(s.summary()) })
}

// finish finalizes at the end of a run. It includes writes of other runs since the last scan: such a run may rely on
// this one to mark the tree as settled.
func (s *run) finish(ctx context.Context) error {
	if s.published() {
		return nil
	}
	err := s.finalize(ctx)
	for tries := 0; errors.Is(err, errMoved) || errors.Is(err, state.ErrChanged) && tries < 3; tries++ {
		s.rescan = true
		if err = s.turn(ctx); err == nil {
			err = s.finalize(ctx)
		}
	}
	if errors.Is(err, state.ErrChanged) {
		return nil // left to the next run
	}
	return s.flushError(err)
}

// checkpoint writes all known state as files. Records of removed objects become files, too, and are then removed with
// the object.
func (s *run) checkpoint(ctx context.Context) error {
	if s.journal != nil {
		if err := s.journal.Checkpoint(ctx); err != nil {
			return err
		}
		if err := s.refresh(ctx, []string{}); err != nil {
			return err
		}
	}
	s.decide()
	if err := errors.Join(s.foldLedgers(ctx), s.settleMemory(ctx, true), s.compactMemory(ctx)); err != nil {
		return err
	}
	s.stopClocks()
	if err := s.flush(ctx, true); err != nil {
		return err
	}
	if len(s.tree.Entries(schemas.AgentKind.Name)) > 0 {
		// Also if no agent changed: a run may have been killed between the statuses and their projection.
		if err := s.projectAgents(ctx); err != nil {
			return err
		}
	}
	if err := s.loop.Store.Prune(ctx, s.tree, s.tree.Settings().Runs.Keep); err != nil || s.loop.Outputs == nil || s.busy() {
		return err
	}
	return s.loop.Outputs.Sweep(s.tree)
}

func (s *run) busy() bool {
	return len(s.mine) > 0 || len(s.inbox) > 0 || len(s.awaited) > 0 || s.loop.Store.ClaimedElsewhere()
}

// stopClocks stops the clocks of DAGs without running effects: of the unselected ones, and of all when this run is
// about to end.
func (s *run) stopClocks() {
	all := !s.busy() && !s.watching && (s.stopping || s.idle())
	if !all && s.loop.Only == nil {
		return
	}
	var dags []schemas.Ref // with a running clock; a DAG is decided again when its time is over
	for ref := range s.wakes {
		if ref.Kind == schemas.DAGKind.Name && (all || ref.Name != s.loop.Only.DAG) {
			dags = append(dags, ref)
		}
	}
	stopped := controllers.StopClocks(s.tree, s.loop.Now(), dags, s.began, s.worked)
	for _, e := range stopped {
		s.unwritten[e.Ref] = true
	}
	if len(stopped) > 0 {
		s.tree = s.tree.With(stopped...)
	}
}

// summary is what a run without work prints instead of reading every object.
func (s *run) summary() state.Summary {
	const most = 100 // more than fit a screen
	var lines []string
	for _, w := range controllers.Waits(s.tree) {
		if lines = append(lines, w.String()); len(lines) == most {
			break
		}
	}
	return state.Summary{
		Lines: lines,
		Wake:  earlier(earlier(s.nextWake(), s.nextCompaction()), s.archiveAt), Exit: int(controllers.Verdict(s.tree)), Counts: controllers.Counts(s.tree),
		Clocks: sortedRefs(s.wakes), Dormant: controllers.Dormant(s.tree), Commit: s.loop.Commit != nil, Push: s.tree.Settings().Git.Push, Mirror: s.tree.Settings().GitHub.Mirror,
	}
}

// end ends a run: it stops the running effects and writes all known state.
func (s *run) end(ctx context.Context, cause error) (Result, error) {
	interrupted := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	s.stopping, s.watching = true, false
	if interrupted {
		s.flushDeadline = time.Now().Add(flushLimit)
	}
	err := errors.Join(s.unlock(), s.drain(ctx))
	if errors.Is(cause, errStopped) {
		cause = nil
	}
	switch {
	case err == nil && (cause == nil || s.fault != nil):
		err = s.turn(ctx) // nothing runs any more; update the statuses
	default:
		err = errors.Join(err, s.record()) // finished effects must not run again: closing the journal makes their results durable
	}
	if err == nil && cause == nil {
		err = s.finish(ctx)
	}
	if s.journal != nil {
		err = errors.Join(err, s.journal.Close())
	}
	return Result{
		Tree: s.tree, Ran: s.ran, Wrote: s.wrote, Commit: s.commit, Wake: s.nextWake(), Interrupted: interrupted,
		MemoryBusy: s.memoryPending(), LedgersBusy: s.busyLedgersError(), Pushed: s.pushed, Sent: s.sent, Pulled: s.pulled,
	}, errors.Join(cause, err)
}

// drain stops the running effects and collects their last reports.
func (s *run) drain(ctx context.Context) error {
	err := s.loop.Perform.Close(ctx)
	s.performerClosed = true
	s.drainReports()
	return errors.Join(err, s.heldError())
}

// heldError is the error of a run in which a remaining process of a killed run kept a node from starting.
func (s *run) heldError() error {
	for _, key := range slices.Sorted(maps.Keys(s.held)) {
		return fmt.Errorf("%s: %s: %w", key, s.held[key], state.ErrBusy)
	}
	return nil
}
