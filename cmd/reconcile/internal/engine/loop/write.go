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

// flush writes the statuses that differ from their files, as far as they may not wait. force writes everything.
func (s *session) flush(ctx context.Context, force bool) error {
	s.tellNews()
	now := s.Now()
	var changes, applied []state.Change
	stamps := map[schemas.Ref]stamp{}
	for _, ref := range sortedRefs(s.unwritten) {
		e := s.tree.Entry(ref)
		if e == nil || !e.HasStatus() {
			delete(s.unwritten, ref) // removals sees to it, if there is a file
			continue
		}
		if !force && s.mayWait(e) || ref.Kind == schemas.ClarificationRequestKind.Name && s.onBarredLedger(ref, "") {
			continue
		}
		s.Store.Working()
		data, err := state.EncodeStatus(ref, e.Status())
		if err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
		c := state.Change{Path: e.StatusPath, Data: data, Status: e.Status()}
		if ref.Kind == schemas.ActionKind.Name {
			applied = append(applied, c) // after its target, or a kill in between could lose what it asked for
		} else {
			changes = append(changes, c)
		}
		stamps[ref] = stampOf(e, len(data))
	}
	changes = append(append(changes, applied...), s.removals(force)...)
	if err := s.write(ctx, changes, now); err != nil {
		return err
	}
	return s.flushed(ctx, stamps)
}

// save writes what was decided of a large tree before the memory is brought in step, which may take as long: if the run is
// killed then, the next one does not begin anew.
func (s *session) save(ctx context.Context) error {
	if len(s.unwritten) < state.Batch {
		return nil
	}
	return s.flush(ctx, false)
}

// flushed notes what was written, and brings the projection of the agents along.
func (s *session) flushed(ctx context.Context, stamps map[schemas.Ref]stamp) error {
	agents := len(s.removedAgents) > 0
	for ref, is := range stamps {
		delete(s.unwritten, ref)
		delete(s.recordedOf, ref)
		s.written[ref] = is
		agents = agents || ref.Kind == schemas.AgentKind.Name
	}
	if !agents {
		return nil
	}
	return s.project(ctx)
}

// setAside moves files under state/ that cannot be used out of the way, so that what they said is decided again. Ledgers
// with the conflict markers of a git merge are united; of others, what is whole is kept.
func (s *session) setAside(ctx context.Context) error {
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
		if found = true; s.united(ctx, p) {
			tell(p, "both sides were united")
		} else {
			rest[p.Path] = p
		}
	}
	if !found {
		return nil
	}
	moved, err := s.Store.MoveAside(ctx, clarify.Salvage)
	for _, path := range moved {
		if p, ok := rest[path]; ok {
			tell(p, "it was moved to .reconcile/damaged, and is decided again")
			delete(rest, path)
		}
	}
	s.tell(events)
	if err != nil {
		return err
	}
	return s.refresh(ctx, append([]string{}, slices.Sorted(maps.Keys(rest))...)) // what is left was being written
}

func (s *session) warn(text string) {
	if s.Warn != nil {
		s.Warn(text)
	}
}

func (s *session) write(ctx context.Context, changes []state.Change, now time.Time) error {
	if len(changes) == 0 {
		return nil
	}
	done := 0
	for part := range slices.Chunk(changes, state.Batch) {
		n, err := s.Store.Write(ctx, part)
		if n > 0 {
			s.wrote += n
			s.changedAt = now
		}
		if err != nil {
			return fmt.Errorf("write statuses: %w", err)
		}
		done += len(part)
		s.doing("write", done, len(changes))
	}
	return nil
}

// project brings state/agent-status.json up to date with the agents' statuses.
func (s *session) project(ctx context.Context) error {
	path := s.tree.Settings().Folders.State + "/agent-status.json"
	fold := func(old []byte) ([]byte, error) { return controllers.FoldAgentStatus(old, s.tree, s.removedAgents...) }
	err := s.Store.Fold(ctx, path, fold)
	if errors.Is(err, controllers.ErrNoAgentStatus) {
		s.warn(fmt.Sprintf("%v; it was moved to .reconcile/damaged, and is written anew", err))
		damaged := func(data []byte) bool {
			_, err := fold(data)
			return errors.Is(err, controllers.ErrNoAgentStatus)
		}
		if err = s.Store.SetAside(ctx, path, damaged, nil); err == nil {
			err = s.Store.Fold(ctx, path, fold)
		}
	}
	if err == nil {
		s.removedAgents = nil
	}
	return err
}

// removals are the files of objects that are to have none: the status of one with which nothing is wrong any more, and
// the status and records of one whose spec is gone, once nothing of it runs. What ran in this process is in the journal
// first; its records become files at a checkpoint, so that only a forced flush, which follows one, removes those, too.
func (s *session) removals(force bool) []state.Change {
	var changes []state.Change
	for _, ref := range sortedRefs(s.gone) {
		was, is := s.gone[ref], s.tree.Entry(ref)
		if is != nil && is.Gone() {
			was = is
		}
		switch {
		case len(was.Claims) > 0 && is == was || s.hasMine(ref):
			continue // it is being ended; its result comes first
		case !force && s.journal != nil && was.RunCount() > 0:
			continue
		case is == nil || is.Gone():
			changes = append(changes, s.remove(was)...)
		case !is.HasStatus():
			changes = append(changes, state.Change{Path: was.StatusPath})
		}
		delete(s.gone, ref)
	}
	return changes
}

// remove takes an object whose spec is gone out of the tree.
func (s *session) remove(e *state.Entry) []state.Change {
	if e.Kind == schemas.AgentKind.Name {
		s.removedAgents = append(s.removedAgents, e.Name)
	}
	changes := []state.Change{{Path: e.StatusPath}}
	for _, r := range e.Runs() {
		changes = append(changes, state.Change{Path: s.Store.RunPath(r.Key)})
	}
	s.tree = s.tree.With(&state.Entry{Ref: e.Ref})
	return changes
}

func (s *session) hasMine(ref schemas.Ref) bool {
	for _, e := range s.mine {
		if e.Owner == ref {
			return true
		}
	}
	return false
}

// tidy makes files of what the journal holds, drops old records, commits, and, when nothing is left to do, remembers
// that.
func (s *session) tidy(run context.Context) error {
	ctx := context.WithoutCancel(run) // only what waits for the remote is given up at once
	if err := s.recover(ctx); err != nil {
		return err
	}
	if err := s.overtake(run); err != nil {
		return err
	}
	done := slices.Clone(s.unpushed)
	err := s.locked(ctx, func() error {
		if err := s.checkpoint(ctx); err != nil {
			return err
		}
		return s.archive(ctx)
	})
	if err != nil {
		return err
	}
	behind := false
	open := s.open()
	if s.Commit != nil {
		made, err := s.Commit(ctx, s.tree, Scope{Whole: !s.forgets(), Open: open})
		if err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		if made.Hash != "" {
			s.commit = made.Hash
		}
		behind = made.Behind
	}
	s.keepOutputs(ctx)
	if err := s.publish(run, done); err != nil {
		return err
	}
	s.publishOutputs(run)
	s.changedAt, s.tidied, s.withheld = time.Time{}, true, len(open) > 0
	if s.Memory != nil {
		s.Memory.Save()
	}
	if behind || s.left || s.busy() || len(s.effects) > 0 || s.awaits(nil) || s.restoring() || s.unrestored || s.unkept != nil || s.forgets() || len(s.barredLedgers) > 0 {
		return nil // nothing may be believed settled while there is something to do
	}
	return s.locked(ctx, func() error { return s.Store.Settle(s.summary()) })
}

// finish tidies up at the end of a run. What another run wrote since this one looked is looked at, too: that run may
// have left it to this one to say that the tree is settled.
func (s *session) finish(ctx context.Context) error {
	if s.done() {
		return nil
	}
	err := s.tidy(ctx)
	for tries := 0; errors.Is(err, errMoved) || errors.Is(err, state.ErrChanged) && tries < 3; tries++ {
		s.rescan = true
		if err = s.turn(ctx); err == nil {
			err = s.tidy(ctx)
		}
	}
	if errors.Is(err, state.ErrChanged) {
		return nil // then it is for the next run to say
	}
	return s.flushError(err)
}

// checkpoint leaves everything that is known as files. Records of objects that are gone become files too, and then go
// with the rest of the object.
func (s *session) checkpoint(ctx context.Context) error {
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
	s.rest()
	if err := s.flush(ctx, true); err != nil {
		return err
	}
	if len(s.tree.Entries(schemas.AgentKind.Name)) > 0 {
		// Also when no agent changed: a run may have been killed between the statuses and their projection.
		if err := s.project(ctx); err != nil {
			return err
		}
	}
	if err := s.Store.Prune(ctx, s.tree, s.tree.Settings().Runs.Keep); err != nil || s.Outputs == nil || s.busy() {
		return err
	}
	return s.Outputs.Sweep(s.tree)
}

func (s *session) busy() bool {
	return len(s.mine) > 0 || len(s.inbox) > 0 || len(s.awaited) > 0 || s.Store.ClaimedElsewhere()
}

// rest stops the clocks of the DAGs of which nothing runs: of those that are not selected, and of all when this run is
// about to end.
func (s *session) rest() {
	all := !s.busy() && !s.watching && (s.stopping || s.idle())
	if !all && s.Only == nil {
		return
	}
	var dags []schemas.Ref // one whose time runs is decided again when that is over
	for ref := range s.wakes {
		if ref.Kind == schemas.DAGKind.Name && (all || ref.Name != s.Only.DAG) {
			dags = append(dags, ref)
		}
	}
	stopped := controllers.StopClocks(s.tree, s.Now(), dags, s.began, s.worked)
	for _, e := range stopped {
		s.unwritten[e.Ref] = true
	}
	if len(stopped) > 0 {
		s.tree = s.tree.With(stopped...)
	}
}

// summary is what a run with nothing to do prints instead of looking at every object.
func (s *session) summary() state.Summary {
	const most = 100 // as many as fit a screen are shown anyway
	var lines []string
	for _, w := range controllers.Waits(s.tree) {
		if lines = append(lines, w.String()); len(lines) == most {
			break
		}
	}
	return state.Summary{
		Lines: lines,
		Wake:  earlier(earlier(s.nextWake(), s.wakeMemory()), s.archiveAt), Exit: int(controllers.Verdict(s.tree)), Counts: controllers.Counts(s.tree),
		Clocks: sortedRefs(s.wakes), Dormant: controllers.Dormant(s.tree), Commit: s.Commit != nil, Push: s.tree.Settings().Git.Push, Mirror: s.tree.Settings().GitHub.Mirror,
	}
}

// end brings a run to its end: what still runs is ended, and everything that is known is written.
func (s *session) end(ctx context.Context, cause error) (Result, error) {
	interrupted := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	s.stopping, s.watching = true, false
	if interrupted {
		s.flushBy = time.Now().Add(flushFor)
	}
	err := errors.Join(s.unlock(), s.drain(ctx))
	if errors.Is(cause, errStopped) {
		cause = nil
	}
	switch {
	case err == nil && (cause == nil || s.fault != nil):
		err = s.turn(ctx) // nothing runs any more, and the statuses are to say so
	default:
		err = errors.Join(err, s.record()) // what has finished is not done again: closing the journal makes it durable
	}
	if err == nil && cause == nil {
		err = s.finish(ctx)
	}
	if s.journal != nil {
		err = errors.Join(err, s.journal.Close())
	}
	return Result{
		Tree: s.tree, Ran: s.ran, Wrote: s.wrote, Commit: s.commit, Wake: s.nextWake(), Interrupted: interrupted,
		Held: s.forgets(), Busy: s.ledgerError(), Pushed: s.pushed, Sent: s.sent, Took: s.took,
	}, errors.Join(cause, err)
}

// drain ends what still runs and hears its last words.
func (s *session) drain(ctx context.Context) error {
	err := s.Perform.Close(ctx)
	s.over = true
	s.hear()
	return errors.Join(err, s.heldError())
}

// heldError is what a run ends with when something that a killed run left behind kept a node from starting.
func (s *session) heldError() error {
	for _, key := range slices.Sorted(maps.Keys(s.held)) {
		return fmt.Errorf("%s: %s: %w", key, s.held[key], state.ErrBusy)
	}
	return nil
}
