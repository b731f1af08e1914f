package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/admission"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// turn records reports, decides, starts effects, and writes files, all under the tree's lock; then it cancels unwanted
// effects.
func (s *run) turn(ctx context.Context) error {
	start := time.Now()
	defer func() { s.turnCost = time.Since(start) }()
	if err := s.record(); err != nil {
		return err
	}
	err := s.advance(ctx)
	s.perform(nil)
	s.cancel()
	s.tell()
	if err == nil && s.loop.Observe != nil {
		s.loop.Observe(nil, s.tree)
	}
	return err
}

// advance refreshes the tree, decides, starts effects, and writes.
func (s *run) advance(ctx context.Context) error {
	if err := s.takeLock(ctx); err != nil {
		return err
	}
	err := s.decideLocked(ctx)
	if err == nil {
		err = s.keepOrUnlock()
	} else {
		err = errors.Join(err, s.unlock())
	}
	if s.journal != nil {
		err = errors.Join(err, s.journal.Sync())
	}
	return err
}

func (s *run) decideLocked(ctx context.Context) error {
	if err := errors.Join(s.scan(ctx), s.moveDamaged(ctx), s.renumberLedgers(ctx)); err != nil {
		return err
	}
	if err := s.startEffects(ctx); err != nil {
		return err
	}
	if err := s.foldLedgers(ctx); err != nil {
		return err
	}
	s.stopClocks()
	if err := s.flush(ctx, false); err != nil {
		return err
	}
	return s.forgetUnconfined()
}

// startEffects decides, writes the files that must exist first, and claims and starts effects.
func (s *run) startEffects(ctx context.Context) error {
	for tries := 1; ; tries++ {
		s.decide()
		held, err := s.checkReady(ctx)
		proved, proofErr := s.checkProofs(ctx)
		asked, toolErr := s.askTools(ctx)
		if err := errors.Join(err, proofErr, toolErr); err != nil {
			return err
		}
		if (held || proved || asked) && tries < inputTries {
			continue
		}
		if err := errors.Join(s.deriveSpecs(ctx), s.foldLedgers(ctx), s.flushEarly(ctx), s.settleMemory(ctx, false)); err != nil {
			return err
		}
		claims := s.claimable()
		moved, err := s.inputsChanged(ctx, claims)
		if err != nil {
			return err
		}
		if !moved || tries == inputTries {
			return s.claim(claims)
		}
	}
}

// inputTries bounds how often a turn decides again because inputs change while it reads them.
const inputTries = 10

// record stores the performer's reports in the journal. Results are durable before anything is written or started
// because of them, and at the end of the turn.
func (s *run) record() error {
	var runs []schemas.Run
	var given []string
	ended := endedIn(s.inbox)
	for _, r := range s.inbox {
		switch r.Kind {
		case settle.Started:
			if ended[r.Key] {
				continue // its process is not needed any more
			}
			if err := s.journal.Started(r.Key, r.At, r.PID); err != nil {
				return err
			}
			continue
		case settle.Progressed:
			if ended[r.Key] {
				continue
			}
			if err := s.journal.Progressed(r.Key, r.At, r.Turn); err != nil {
				return err
			}
			continue
		case settle.Finished:
			if s.alreadyRecorded(r.Key) {
				given = append(given, r.Key)
				break
			}
			runs = append(runs, *r.Run)
			s.unwrittenBytes[s.mine[r.Key].Owner] += sizeOf(r.Run)
			delete(s.deferred, s.mine[r.Key].Owner)
			s.paths = append(s.paths, s.outputsOf(r.Key)...)
			s.countRun(r.Run)
			s.noteUnpushed(r.Key)
			if r.Run.Lands != "" || r.Run.Sandbox == schemas.SandboxNone {
				s.rescan = true // a commit of any files is on the branch now, or the run may have written any file
			}
		case settle.Held:
			s.held[r.Key] = r.Why
			given = append(given, r.Key)
		case settle.Broken:
			s.fault = errors.Join(s.fault, fmt.Errorf("%s: %w", r.Key, r.Err))
			given = append(given, r.Key)
		case settle.Released:
			given = append(given, r.Key)
			if r.Run != nil {
				runs = append(runs, *r.Run)
			}
			if e := s.mine[r.Key]; r.Waits != "" && e.Task != nil {
				s.holdLanding(e, r.Waits)
			}
			s.paths = append(s.paths, r.Missing...)
			s.pollAt = time.Now() // another reconciler may have it
		}
		delete(s.mine, r.Key)
		s.ends = append(s.ends[max(0, len(s.ends)+1-mostAhead):], s.loop.Now())
		s.endedSinceScan = true
	}
	s.inbox = nil
	if len(runs) > 0 {
		if err := s.journal.Record(runs); err != nil {
			return err
		}
	}
	if len(given) > 0 {
		return s.journal.Release(given)
	}
	return nil
}

// endedIn are the keys of the effects whose end is among the reports.
func endedIn(reports []settle.Report) map[string]bool {
	ended := map[string]bool{}
	for _, r := range reports {
		if r.Kind.Ends() {
			ended[r.Key] = true
		}
	}
	return ended
}

// scan refreshes the tree: from the journals always; from all files if a scan is requested or another process wrote;
// otherwise from the hinted files, and, after an effect ended, from specs that it may have changed.
func (s *run) scan(ctx context.Context) error {
	start := s.loop.Now()
	var open []string
	var err error
	if s.rescan || s.stopping { // only a look at all files takes note of them
		if open, err = s.loop.Store.Unconfined(); err != nil {
			return fmt.Errorf("find the runs without a sandbox: %w", err)
		}
		s.rescan = s.rescan || len(open) > 0 // what they wrote, before people write more
	}
	var hints []string // nil: all files
	if !s.rescan {
		hints = append([]string{}, s.paths...)
		if s.endedSinceScan {
			hints = append(hints, s.loop.Store.ChangedHints(func() []string { return append(s.specsInUse(), s.questionFolders()...) })...)
		}
	}
	whole := s.filesReplaced || start.Sub(s.fullScanAt) >= s.tree.Settings().Watch.Rescan.Std()
	if hints == nil && !whole {
		if err = s.useTree(s.loop.Store.RefreshChanged(ctx, s.tree)); err == nil {
			err = s.distrust(ctx)
		}
	} else {
		err = s.refresh(ctx, hints)
	}
	if err != nil {
		return err
	}
	s.paths = nil
	if hints != nil {
		return nil
	}
	s.seenWhole(open)
	s.rescan, s.endedSinceScan = false, false
	s.scannedAt, s.scanCost = s.loop.Now(), s.loop.Now().Sub(start)
	if whole {
		s.filesReplaced, s.fullScanAt = false, s.scannedAt
	}
	return nil
}

// specsInUse are the specs of the objects with effects, and of their sessions: they are read again before more effects
// start.
func (s *run) specsInUse() []string {
	var paths []string
	for ref := range s.effects {
		e := s.tree.Entry(ref)
		if e == nil || e.Object == nil {
			continue
		}
		paths = append(paths, e.Object.Path)
		for _, r := range e.Object.Refs {
			if on := s.tree.Entry(r.To); r.Hard && on != nil && on.Object != nil {
				paths = append(paths, on.Object.Path)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// questionFolders are the folders into which a command of a run writes questions, and people their texts for its agent: they are
// read before its end is evaluated.
func (s *run) questionFolders() []string {
	dir := s.tree.Settings().Folders.Specs + "/"
	return []string{dir + schemas.ActionKind.Plural + "/", dir + schemas.ClarificationRequestKind.Plural + "/", dir + schemas.ReplyKind.Plural + "/"}
}

func (s *run) refresh(ctx context.Context, hints []string) error {
	if err := s.useTree(s.loop.Store.Refresh(ctx, s.tree, hints)); err != nil {
		return err
	}
	return s.distrust(ctx)
}

// useTree replaces the tree by the result of a refresh.
func (s *run) useTree(tree *state.Tree, refs []schemas.Ref, err error) error {
	if err != nil {
		return fmt.Errorf("look at the tree again: %w", err)
	}
	if tree.Settings() != s.tree.Settings() {
		s.dirty = nil // every decision may depend on them
		s.memoryState = memoryStale
	}
	if slices.ContainsFunc(refs, func(ref schemas.Ref) bool { return lostStatus(s.tree, tree, ref) }) {
		s.dirty = nil // nothing says any more what waits for the object
	}
	s.tree = tree
	s.touch(refs...)
	return nil
}

// lostStatus reports whether the status of an object that is still there was removed, or cannot be read any more.
func lostStatus(was, is *state.Tree, ref schemas.Ref) bool {
	e := is.Entry(ref)
	if e == nil || e.HasStatus() {
		return false
	}
	before := was.Entry(ref)
	return before != nil && before.HasStatus()
}

// inputsChanged reports whether inputs of nodes that are about to start changed since the decision, because of an
// effect that ended after the last scan.
func (s *run) inputsChanged(ctx context.Context, claims []settle.Effect) (bool, error) {
	nodes := map[schemas.Ref][]string{}
	for _, e := range claims {
		if owner := s.tree.Entry(e.Owner); s.endedSinceScan && owner != nil && owner.Inputs[e.Node] != "" {
			nodes[e.Owner] = append(nodes[e.Owner], e.Node)
		}
	}
	if len(nodes) == 0 {
		return false, nil
	}
	tree, refs, err := s.loop.Store.RefreshInputs(ctx, s.tree, nodes)
	if err != nil {
		return false, fmt.Errorf("look at inputs again: %w", err)
	}
	s.tree = tree
	s.touch(refs...)
	return len(refs) > 0, nil
}

// touch marks objects for the next decision.
func (s *run) touch(refs ...schemas.Ref) {
	for _, r := range refs {
		if s.requests != nil && r.Kind == state.LedgerKind {
			s.requests[r] = true
		}
		if r.Kind == schemas.ObservationKind.Name || r.Kind == state.MemoryKind {
			s.memoryState = memoryStale
		}
		if s.dirty != nil {
			s.dirty[r] = true
		}
	}
}

// decide updates statuses and effects for the current tree.
func (s *run) decide() {
	now := s.loop.Now()
	for ref, w := range s.wakes {
		if !w.at.After(now) {
			s.touch(ref)
		}
	}
	var dirty []schemas.Ref
	if s.dirty == nil {
		clear(s.effects)
		clear(s.restores)
		clear(s.wakes)
		clear(s.scheduled)
	} else if dirty = sortedRefs(s.dirty); len(dirty) == 0 {
		return
	}
	s.decider.NotCommitted = s.whyNotReady()
	s.apply(s.decider.Settle(s.tree, now, dirty, func(done, total int) { s.progress("decide", done, total) }))
	s.dirty = map[schemas.Ref]bool{}
}

// apply makes a decision the current state of the run.
func (s *run) apply(d settle.Decision) {
	for _, ref := range d.Changed {
		s.unwritten[ref] = true
		delete(s.deferred, ref)
		if s.requests != nil && ref.Kind == schemas.ClarificationRequestKind.Name {
			s.requests[ref] = true
		}
		switch {
		case s.loop.Record == nil:
		case ref.Kind == schemas.ClarificationRequestKind.Name:
			s.keepUnreported(ref)
		default:
			s.transitions = append(s.transitions, transition{s.tree.Entry(ref), d.Tree.Entry(ref)})
		}
	}
	s.tree = d.Tree
	for ref, out := range d.Outs {
		s.noteUnproved(ref)
		s.noteUnread(ref)
		s.noteTools(ref)
		set(s.effects, ref, out.Effects, len(out.Effects) > 0)
		set(s.restores, ref, out.Restore, len(out.Restore) > 0)
		set(s.scheduled, ref, true, out.Due)
		set(s.wakes, ref, wake{out.Again, out.Await}, !out.Again.IsZero())
		if wants := len(out.Effects)+len(out.Restore) > 0 || out.Due || !out.Again.IsZero(); wants && s.tree.IsDormant(ref) {
			s.tree = s.tree.With(s.tree.Entry(ref)) // it rests no more
		}
		if e := s.tree.Entry(ref); e != nil && e.Gone() {
			s.removed[ref] = e // records were added after the spec was removed
		}
	}
	for _, e := range d.Removed {
		s.removed[e.Ref] = e
	}
}

// transition is a decision that Record has not seen yet. Nothing waits for it, except that files are written after it.
type transition struct{ was, is *state.Entry }

// claimable lists the effects that this process may start.
func (s *run) claimable() []settle.Effect {
	s.turns.Lacks = nil
	if s.stopping || s.loop.Store.Orphaned() {
		return nil // remaining processes of a killed run are ended before anything may start under the same key
	}
	ledger := &budgets.Ledger{Slots: s.slots()}
	s.recheck()
	wanted := s.withoutUnchecked(s.excludeOtherClaims(s.wanted()))
	if slices.ContainsFunc(wanted, func(e *settle.Effect) bool { return len(e.Allowances) > 0 }) {
		ledger.Sums = budgets.SumsOf(s.decider.OfRun(), s.tree, s.loop.Now())
	}
	s.warnOfDay()
	holds, seen, wanted := s.otherHolds(wanted)
	ledger.Hold(holds...)
	s.turns.Others, s.turns.Since = s.loop.Store.Waits()
	admitted := admission.Admit(s.tree, wanted, s.loop.Only, s.processID(), s.loop.CPUs, s.claimAhead(), ledger, &s.turns, s.loop.Now())
	for i := range admitted {
		admitted[i].Seen = seen
	}
	s.awaitHolds(wanted, admitted, holds)
	s.noteAwaited()
	return admitted
}

// claim journals the effects that this process is about to start, and starts them. The journal is synced while the
// performer prepares. The next turn decides about the claims, with the reports of the performer: a claim without a
// report changes no status.
func (s *run) claim(claims []settle.Effect) error {
	if s.journal == nil && len(claims)+len(s.turns.Lacks) == 0 {
		return nil
	}
	var err error
	if s.journal, err = s.loop.Store.Journal(); err == nil {
		err = s.journal.Wait(s.turns.Lacks, s.loop.Now())
	}
	if len(claims) == 0 || err != nil {
		return err
	}
	runs := make([]schemas.Run, len(claims))
	for i, e := range claims {
		runs[i] = e.Claim()
	}
	if err := s.journal.Claim(runs); err != nil {
		return err
	}
	for _, e := range claims {
		s.mine[e.Key], s.worked[e.Owner] = e, true
	}
	s.perform(claims)
	if err := s.journal.Sync(); err != nil {
		return err
	}
	s.recordTransitions()
	return nil
}

// wanted lists all effects that the decisions want and that are available, in a fixed order.
func (s *run) wanted() []*settle.Effect {
	var all []*settle.Effect
	for _, ref := range sortedRefs(s.effects) {
		effects := s.effects[ref]
		for i := range effects {
			e := &effects[i]
			if s.held[e.Key] == "" && !s.onBusyLedger(e.Owner, e.Node) {
				all = append(all, e)
			}
		}
	}
	return all
}

// slots is how many effects may run at once.
func (s *run) slots() int { return cmp.Or(s.tree.Settings().Limits.ConcurrentTasks, s.loop.CPUs) }

// perform starts the claimed effects, within the slots that other processes leave free.
func (s *run) perform(claimed []settle.Effect) {
	s.loop.Perform.SetLimits(&s.tree.Settings().Runs, s.slots(), s.turns.Foreign)
	for _, e := range claimed {
		s.loop.Perform.Submit(e)
	}
}

// cancel stops effects that became unwanted. One that was decided about before its start was on record is only withdrawn: it may be wanted
// once it is known to run.
func (s *run) cancel() {
	for key, e := range s.mine {
		if s.wants(e.Owner, key) != nil {
			continue
		}
		if c := settle.ClaimOf(s.tree.Entry(e.Owner), key); c != nil && c.StartedAt.IsZero() {
			s.loop.Perform.Withdraw(key, s.whyUnwanted(key))
			continue
		}
		s.loop.Perform.Cancel(key, s.whyUnwanted(key))
		if s.isKilled(key) {
			s.loop.Perform.Hurry(key)
		}
	}
}

// isKilled reports whether an effect that became unwanted gets no time to end on its own.
func (s *run) isKilled(key string) bool {
	e := s.mine[key]
	owner := s.tree.Entry(e.Owner)
	return owner != nil && schemas.NodesIn(owner.Status()).Of(e.Node).Reason == settle.ReasonKilling
}

// whyUnwanted says why an effect became unwanted.
func (s *run) whyUnwanted(key string) string {
	e := s.mine[key]
	if owner := s.tree.Entry(e.Owner); owner != nil {
		switch n := schemas.NodesIn(owner.Status()).Of(e.Node); n.Reason {
		case settle.ReasonContextFull, settle.ReasonInterrupted:
			return n.Message
		}
	}
	return "it is no longer wanted"
}

// tell gives texts of people to running effects.
func (s *run) tell() {
	for key, mine := range s.mine {
		if e := s.wants(mine.Owner, key); e != nil && len(e.Tell) > 0 {
			s.loop.Perform.Tell(key, e.Tell)
		}
	}
}

// wants returns the effect of an object by its key; nil if no decision wants it.
func (s *run) wants(owner schemas.Ref, key string) *settle.Effect {
	effects := s.effects[owner]
	if i := slices.IndexFunc(effects, func(e settle.Effect) bool { return e.Key == key }); i >= 0 {
		return &effects[i]
	}
	return nil
}

// hasUnclaimed reports whether a selected effect is wanted and not claimed by this process.
func (s *run) hasUnclaimed() bool {
	in := s.loop.Only.In(s.tree)
	return slices.ContainsFunc(s.wanted(), func(e *settle.Effect) bool {
		return s.mine[e.Key].Key == "" && in(e.Owner, e.Node)
	})
}

// processID names this process in claims; "" before its first claim.
func (s *run) processID() string {
	if s.journal == nil {
		return ""
	}
	return s.journal.ID()
}

// claimAhead is how many effects are claimed beyond those that may run at once: as many as ended in the last second, so that they can
// start soon. Other processes and reconcilers cannot perform claimed effects.
func (s *run) claimAhead() int {
	if s.loop.Share != nil {
		return max(fewAhead, s.loop.CPUs) // enough that none waits for the remote
	}
	now, recent := s.loop.Now(), 0
	for _, at := range slices.Backward(s.ends) {
		if now.Sub(at) >= time.Second {
			break
		}
		recent++
	}
	return max(fewAhead, recent)
}

func (s *run) specsDue() bool {
	return !s.watching && !s.loop.Now().Before(s.scannedAt.Add(s.scanEvery()))
}

// stopClocks stops the clocks of DAGs without running effects: of the unselected ones, and of all when this run is
// about to end.
func (s *run) stopClocks() {
	all := !s.busy() && !s.watching && (s.stopping || s.idle())
	if !all && s.loop.Only == nil {
		return
	}
	var refs []schemas.Ref // with a running clock; a DAG is decided again when its time is over
	for ref := range s.wakes {
		if ref.Kind == schemas.DAGKind.Name && (all || ref.Name != s.loop.Only.DAG) {
			refs = append(refs, ref)
		}
	}
	stopped := dags.StopClocks(s.tree, s.loop.Now(), refs, s.began, s.worked)
	for _, e := range stopped {
		s.unwritten[e.Ref] = true
		delete(s.deferred, e.Ref)
	}
	if len(stopped) > 0 {
		s.tree = s.tree.With(stopped...)
	}
}
