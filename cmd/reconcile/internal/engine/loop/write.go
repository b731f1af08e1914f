package loop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
)

// flush writes the statuses that differ from their files, except those that can be deferred. force writes all of them.
func (s *run) flush(ctx context.Context, force bool) error {
	s.recordTransitions()
	now := s.loop.Now()
	var changes, applied []state.Change
	stamps := map[schemas.Ref]statusStamp{}
	for _, ref := range s.toWrite(force || s.idle()) {
		e := s.tree.Entry(ref)
		if e == nil || !e.HasStatus() {
			delete(s.unwritten, ref) // removals deletes its file, if there is one
			continue
		}
		if s.deferred[ref] = !force && s.canDefer(e); s.deferred[ref] || ref.Kind == schemas.ClarificationRequestKind.Name && s.onBusyLedger(ref, "") {
			continue
		}
		s.loop.Store.Working("write")
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

// toWrite lists the statuses that differ from their files, without those that were found to wait and have not changed since, unless all are
// asked for.
func (s *run) toWrite(all bool) []schemas.Ref {
	var refs []schemas.Ref
	for ref := range s.unwritten {
		if all || !s.deferred[ref] {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, schemas.Ref.Compare)
	return refs
}

// flushEarly writes statuses before effects start, where a kill could not be mended otherwise: those of actions and preferences, since one
// without a status counts as written by a program that works without a sandbox; and all of a large tree, before the memory is updated, which
// may take equally long, so that the run that follows a killed one does not start over.
func (s *run) flushEarly(ctx context.Context) error {
	early := len(s.unwritten) >= state.Batch
	for ref := range s.unwritten {
		early = early || ref.Kind == schemas.ActionKind.Name || ref.Kind == schemas.PreferenceKind.Name
	}
	if !early {
		return nil
	}
	return s.flush(ctx, false)
}

// noteFlushed notes which statuses were written, and updates the projection of the agents.
func (s *run) noteFlushed(ctx context.Context, stamps map[schemas.Ref]statusStamp) error {
	agents := len(s.removedAgents) > 0
	for ref, is := range stamps {
		delete(s.unwritten, ref)
		delete(s.deferred, ref)
		delete(s.unwrittenBytes, ref)
		s.written[ref] = is
		agents = agents || ref.Kind == schemas.AgentKind.Name
	}
	if !agents {
		return nil
	}
	return s.projectAgents(ctx)
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
	fold := func(old []byte) ([]byte, error) { return agents.FoldStatus(old, s.tree, s.removedAgents...) }
	err := s.loop.Store.Fold(ctx, path, fold)
	if errors.Is(err, agents.ErrNoAgentStatus) {
		s.warn(fmt.Sprintf("%v; it was moved to .reconcile/damaged, and is written anew", err))
		damaged := func(data []byte) bool {
			_, err := fold(data)
			return errors.Is(err, agents.ErrNoAgentStatus)
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

// finalize turns the journal into files, drops old records, commits, publishes, and marks the tree as settled if no
// work is left. While the remote is away it commits all the same, and the next run pushes that.
func (s *run) finalize(run context.Context) error {
	ctx := context.WithoutCancel(run) // only the remote is given up at once
	if err := s.recoverKilled(ctx); err != nil {
		return err
	}
	away := s.pullBeforePush(run)
	if away != nil && (s.loop.Transient == nil || !s.loop.Transient(away)) {
		return away
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
	if away != nil {
		return fmt.Errorf("push: %w; %s", away, CommittedHere)
	}
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
	return s.withLock(ctx, func() error {
		sum, err := s.summary()
		if err != nil {
			return err
		}
		return s.loop.Store.Settle(sum)
	})
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
	if s.loop.Commit != nil { // the statuses follow from these records, too: no commit has the one without the other
		if err := s.loop.Store.RecordElsewhere(ctx); err != nil {
			return err
		}
	}
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

// deriveSpecs writes the missing specs that records call for: the question of a node's agent, a question that another
// program wrote into a ledger, an observation that an agent learned. Input from outside becomes a file first and takes
// effect through that file. At the end of a run it derives no new questions. Written specs may call for further ones, as a plan
// change does for the DAG of its answer: without effects, no other turn would write them.
func (s *run) deriveSpecs(ctx context.Context) error {
	const most = 1000 // each round writes files that did not exist
	for range most {
		if wrote, err := s.deriveOnce(ctx); err != nil || !wrote {
			return err
		}
		s.decide()
	}
	return fmt.Errorf("the specs that follow from records do not end: after %d rounds there are further ones; look at the newest files below "+s.tree.Settings().Folders.Specs, most)
}

// deriveOnce writes the specs that the present tree calls for, and reports whether there were any.
func (s *run) deriveOnce(ctx context.Context) (bool, error) {
	var changes []state.Change
	var paths []string
	specs, kept := s.deriver.Derive(s.tree, sortedRefs(s.scheduled)...)
	specs = append(specs, s.readStarts()...)
	if err := s.keepCheckpoints(ctx, kept); err != nil {
		return false, err
	}
	for _, spec := range specs {
		if o, ok := spec.Spec.(*schemas.ObservationSpec); ok && s.loop.Memory != nil {
			s.loop.Memory.Anchor(o)
		} else if s.stopping {
			continue
		}
		data, err := document.SpecWithLabels(spec.Ref, spec.Labels, spec.Spec)
		if err != nil {
			return false, fmt.Errorf("%s: %w", spec.Ref, err)
		}
		if _, err := s.loop.Store.Root().Lstat(spec.Path); !errors.Is(err, fs.ErrNotExist) {
			s.warn(fmt.Sprintf("%s is to be written, and %s is in the way: move that file", spec.Ref, spec.Path))
			continue
		}
		if err := state.Vouch(s.loop.Store.Root(), spec.Path, data); err != nil {
			return false, err
		}
		changes = append(changes, state.Change{Path: spec.Path, Data: data})
		paths = append(paths, spec.Path)
	}
	edits, err := s.editSpecs(ctx)
	if err != nil {
		return false, err
	}
	for _, c := range edits {
		changes, paths = append(changes, c), append(paths, c.Path)
	}
	if len(changes) == 0 {
		return false, nil
	}
	if err := s.write(ctx, changes, s.loop.Now()); err != nil {
		return false, err
	}
	return true, s.refresh(ctx, paths)
}

// keepCheckpoints writes the checkpoints that follow from records, and removes the oldest of too many. The prompts of their
// nodes are made again.
func (s *run) keepCheckpoints(ctx context.Context, kept derive.Checkpoints) error {
	var changes []state.Change
	for _, c := range kept.Add {
		data, err := state.EncodeCheckpoint(c)
		if err != nil {
			return err
		}
		changes = append(changes, state.Change{Path: s.loop.Store.CheckpointPath(c), Data: data})
		if dag, _, ok := schemas.SplitRunKey(c.Run); ok {
			s.touch(schemas.DAGKind.Ref(dag))
		}
	}
	for _, c := range kept.Drop {
		changes = append(changes, state.Change{Path: s.loop.Store.CheckpointPath(c)})
	}
	if len(changes) == 0 {
		return nil
	}
	if err := s.write(ctx, changes, s.loop.Now()); err != nil {
		return err
	}
	s.tree = s.tree.WithCheckpoints(kept.Add, kept.Drop)
	s.decide()
	return nil
}

func (s *run) recordEvents(events []settle.Event) {
	if s.loop.Record != nil && len(events) > 0 {
		s.recordTransitions() // earlier ones first
		s.loop.Record(events)
	}
}

// canDefer reports whether writing a status that differs from its file can wait. While effects run, readers reconstruct
// progress below phase and readiness from the journal ([controllers.Current]). The status is written when the results
// since the last write are as large as the file, so the bytes of all writes grow linearly with the results. A node that
// waits for a person is written at once.
func (s *run) canDefer(e *state.Entry) bool {
	was, ok := s.written[e.Ref]
	if !ok || !controllers.Foretold(s.tree, e.Ref) || s.idle() {
		return false
	}
	is := stampOf(e, 0)
	return was.waits(&is) && s.unwrittenBytes[e.Ref] < was.size
}

// sizeOf estimates the bytes of a record.
func sizeOf(r *schemas.Run) int {
	const frame = 500
	return frame + len(r.Message) + len(r.Output) + len(r.Result)
}

func (s *run) recordTransitions() {
	var events []settle.Event
	for _, n := range s.transitions {
		events = append(events, settle.Events(s.tree, n.was, n.is)...)
	}
	s.transitions = nil
	if len(events) > 0 {
		s.loop.Record(events)
	}
}

func sortedRefs[V any](m map[schemas.Ref]V) []schemas.Ref {
	return slices.SortedFunc(maps.Keys(m), schemas.Ref.Compare)
}
