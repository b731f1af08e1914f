package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/admission"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/spans"
	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// run is one run of a loop. It is confined to one goroutine.
type run struct {
	loop            *Loop
	journal         *state.Journal
	tree            *state.Tree
	decider         settle.Decider
	deriver         derive.Deriver
	hints           <-chan Hint
	watching        bool
	turns           admission.Turns
	stopping        bool   // nothing new is started
	performerClosed bool   // the performer is closed
	warnedDay       string // for which the budget of the day was said to be low
	leftOrphans     bool   // a process was killed too late for this run to end its remaining processes

	// The current decisions, by object; only objects with effects, restores or timers are listed.
	effects   map[schemas.Ref][]settle.Effect
	restores  map[schemas.Ref][]settle.Restore
	scheduled map[schemas.Ref]bool // a time of their schedules has come
	// unrestored says that cached outputs could not be written: the next run retries.
	unrestored   bool
	unkept       error  // why the kept outputs in git are not up to date
	unkeptWarned string // the last warning about it
	wakes        map[schemas.Ref]wake

	holders map[string]holder // other processes that this run waits for

	notReady map[settle.NodeRef]heldTask // nodes that cannot go on before git says so
	// unproved are the actions that wait for the proof of who wrote them; identities are those that were looked for.
	unproved   map[schemas.Ref]bool
	identities map[schemas.Ref]settle.Identity
	// overUnconfined are marked runs without a sandbox that have ended, and all of whose files were looked at.
	overUnconfined []string
	// warnedReplies are the replies, by name, about which it is decided whether to warn.
	warnedReplies map[string]bool

	starts startReading

	health    map[string]*health // agents that were checked
	checked   chan checked       // results of checks
	checks    context.Context    // of the checks that run; endChecks ends them
	endChecks context.CancelFunc

	tools     map[string]settle.Tool   // that were asked for their versions
	toolUsers map[schemas.Ref][]string // the DAGs that declare tools, and which

	dirty  map[schemas.Ref]bool // to be decided again; nil: everything
	inbox  []settle.Report      // reports of the performer that are not recorded yet
	paths  []string             // hinted and not scanned yet
	rescan bool                 // scan everything at the next turn

	requests     map[schemas.Ref]bool // requests and ledgers that changed since the last fold; nil: any may have
	ledgersSwept bool                 // leftover ledger locks of killed processes were removed
	// busyLedgers are the ledgers whose locks were not available, by issue, with the error; ledgerTriedAt is the time
	// of the last try.
	busyLedgers   map[int]error
	ledgerTriedAt time.Time

	lock     *state.Lock // kept since the last turn; nil if not held
	lockedAt time.Time   // when it was taken
	// lockWaits is the process that the run waits for to take it; 0 for none. whole ends when the run is told to stop, which a turn does not
	// look at; nil for a run that only decides.
	lockWaits int
	whole     context.Context

	memoryState memoryState // relation of the memory to tree
	memorySwept bool        // leftover locks in the memory's folder were removed
	compacted   time.Time   // time of the last check for compaction

	archiveAt time.Time // when a spec is due for the archive; zero: never
	// restingDue is that of objects that may rest, dormantDue of those that were dormant when the tree was loaded; stay are the paths of
	// specs that are due and must not be moved.
	restingDue, dormantDue time.Time
	stay                   map[string]bool

	began          time.Time
	worked         map[schemas.Ref]bool         // owners of effects that this run has claimed
	mine           map[string]settle.Effect     // claimed by this process and not finished, by key
	held           map[string]string            // keys that cannot be started, and why
	fault          error                        // why this process cannot perform effects
	unwritten      map[schemas.Ref]bool         // status in tree differs from the file
	deferred       map[schemas.Ref]bool         // of these, it was found to wait, and neither it nor its records have changed since
	unreported     map[schemas.Ref]*state.Entry // requests before a transition that is not reported yet
	transitions    []transition                 // not recorded yet; recorded before any file is written
	removed        map[schemas.Ref]*state.Entry // objects whose status and records are to be removed, in their last state
	written        map[schemas.Ref]statusStamp  // the last written versions
	unwrittenBytes map[schemas.Ref]int          // bytes of results since the last write
	scannedAt      time.Time                    // end of the last scan of all changes
	fullScanAt     time.Time                    // end of the last scan of every file
	filesReplaced  bool                         // git replaced files: every file must be scanned
	scanCost       time.Duration                // duration of that scan
	turnCost       time.Duration                // duration of the last turn
	endedSinceScan bool                         // an effect ended since the last scan
	removedAgents  []string                     // to be removed from the projection
	changedAt      time.Time                    // time of the last uncommitted write; zero: none
	successes      map[string]int               // successes of each node in this run
	repeating      string                       // a node that exceeded maxRepeats
	ends           []time.Time                  // when the latest effects ended, mostAhead of them at most
	ran            int
	wrote          int
	commit         string
	remoteState
}

// wake is when an object is decided again although nothing changed.
type wake struct {
	at    time.Time
	await bool
}

// load reads the tree. If the differences from the last settled tree are known, only those objects are decided: the
// statuses and ledgers of the rest are valid, and had no pending work.
func (s *run) load(ctx context.Context) error {
	open, err := s.loop.Store.Unconfined()
	if err != nil {
		return err
	}
	tree, changed, was, err := s.loop.Store.LoadChanged(ctx, s.loop.Only == nil)
	if err != nil {
		return err
	}
	s.tree, s.restingDue = tree, s.loop.Now() // until it is known
	if was != nil {
		s.restingDue, s.dormantDue = was.Archive, was.Archive
	}
	if was != nil && s.loop.Only == nil { // work selected by name may be pending in a settled tree
		s.dirty, s.requests = map[schemas.Ref]bool{}, map[schemas.Ref]bool{}
		for _, ref := range changed {
			if ref.Kind == schemas.ClarificationRequestKind.Name {
				s.requests[ref] = true // a ledger may lack it
			}
		}
		s.trustMemory(was)
		s.touch(changed...)
		s.touchNotReady()
		s.touchUnproved()
		s.findToolUsers()
	}
	err = s.distrust(ctx)
	s.seenWhole(open)
	return err
}

// recoverKilled recovers from killed processes: it turns their results into files and ends their remaining processes
// before anything may start under the same key.
func (s *run) recoverKilled(ctx context.Context) error {
	var orphans []state.Orphan
	err := s.withLock(ctx, func() (err error) {
		orphans, err = s.loop.Store.Recover(ctx)
		return err
	})
	if err != nil || len(orphans) == 0 {
		return err
	}
	if s.performerClosed {
		s.leftOrphans = true // the next run must end them: this one no longer can
		return nil
	}
	reaped := s.loop.Perform.ReapAll(ctx, orphans)
	return s.withLock(ctx, func() error {
		left, err := s.loop.Store.Recover(ctx)
		if err != nil {
			return err
		}
		all := len(orphans)
		orphans = stillThere(orphans, left)
		switch {
		case reaped != nil && len(orphans) == all:
			return fmt.Errorf("end what a killed run left behind: %w", reaped)
		case reaped != nil: // another process runs some of them again: what is left is looked at anew
			return nil
		}
		torn, err := s.loop.Store.MoveTornAside(ctx, orphans)
		for _, p := range torn {
			s.warn(fmt.Sprintf("%s: the run that was making it again was killed; what it left was moved to .reconcile/damaged", p))
		}
		used := settle.InterruptedBy(orphans)
		s.rescan = s.rescan || len(used) > 0
		return errors.Join(err, s.loop.Store.ForgetOrphans(ctx, orphans, used))
	})
}

// stillThere are those of some orphans that are among those that are left: of the others another process has taken care.
func stillThere(orphans, left []state.Orphan) []state.Orphan {
	return slices.DeleteFunc(orphans, func(o state.Orphan) bool {
		return !slices.ContainsFunc(left, func(l state.Orphan) bool { return l.Key == o.Key && l.Process == o.Process })
	})
}

// errStopped ends a run that was told to stop.
var errStopped = errors.New("stopped")

// once runs turns until idle, and scans everything again before it ends.
func (s *run) once(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.turn(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		if s.fault != nil {
			return s.fault
		}
		if s.loop.Store.Orphaned() {
			if err := s.recoverKilled(ctx); err != nil {
				return err
			}
			continue
		}
		if s.repeating != "" {
			return fmt.Errorf("%s was run %d times in this run, because what it does changes what it depends on; "+
				"take what it writes out of its inputs", s.repeating, s.successes[s.repeating])
		}
		if s.restoreOutputs(ctx) || s.readIssues(ctx) {
			continue
		}
		if err := s.exchange(ctx); err != nil {
			return err
		}
		if !s.idle() {
			s.warnOfHolders()
			s.warnOfAwaited()
			if err := s.wait(ctx); err != nil {
				return err
			}
			continue
		}
		if !s.endedSinceScan && !s.rescan {
			s.loop.Store.Unwatch()
			if s.loop.Share == nil {
				return nil
			}
			err := s.finalize(ctx)
			switch {
			case errors.Is(err, errMoved) || errors.Is(err, state.ErrChanged):
			case err != nil && ctx.Err() != nil:
				return errStopped // retried at the end
			default:
				return err
			}
		}
		s.rescan = true
		clear(s.busyLedgers) // these are retried, too
	}
	return errStopped
}

// watch runs turns until ctx ends, and finalizes whenever it is quiet.
func (s *run) watch(ctx context.Context) error {
	for ctx.Err() == nil {
		if s.loop.Now().Sub(s.ledgerTriedAt) >= pollLedgers {
			clear(s.busyLedgers)
		}
		// A turn takes milliseconds: it is not interrupted, so that every claim is also performed.
		if err := s.turn(context.WithoutCancel(ctx)); err != nil && !s.transient(err) {
			return err
		}
		if s.fault != nil {
			return s.fault
		}
		if s.loop.Store.Orphaned() {
			err := s.recoverKilled(ctx)
			if err == nil {
				continue
			}
			if !s.transient(err) {
				return err
			}
		}
		if s.restoreOutputs(ctx) || s.readIssues(ctx) {
			continue
		}
		if err := s.exchange(ctx); err != nil {
			return err
		}
		if s.quiet() {
			if err := s.finalizeQuiet(ctx); err != nil {
				return err
			}
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	return errStopped
}

// finalizeQuiet finalizes between the turns of a watcher.
func (s *run) finalizeQuiet(ctx context.Context) error {
	err := s.finalize(ctx)
	if err != nil && !errors.Is(err, errMoved) && !errors.Is(err, state.ErrChanged) {
		s.changedAt = s.loop.Now() // again after the next quiet period
	}
	return s.handleRemoteError(ctx, err)
}

// transient reports whether a watcher retries after an error at its next turn.
func (s *run) transient(err error) bool {
	return errors.Is(err, state.ErrBusy) || s.loop.Transient != nil && s.loop.Transient(err)
}

// idle reports whether nothing runs, here or elsewhere, and no object has work that a one-shot run waits for.
func (s *run) idle() bool {
	if len(s.mine) > 0 || len(s.inbox) > 0 || len(s.awaited) > 0 || s.awaitsCheck() || s.waitsForOthers() {
		return false
	}
	return !s.awaits(s.loop.Only)
}

// awaits reports whether a selected object has a timer that a one-shot run waits for.
func (s *run) awaits(only *settle.Selection) bool {
	for ref, w := range s.wakes {
		if w.await && only.Works(s.tree, ref) {
			return true
		}
	}
	return false
}

// progress reports the current step of a turn, and renews the lock of the tree during long work.
func (s *run) progress(step string, done, total int) {
	s.loop.Store.Working(step)
	if s.loop.Progress != nil {
		s.loop.Progress(step, done, total)
	}
}

func (s *run) countRun(r *schemas.Run) {
	s.ran++
	if r.Outcome != schemas.OutcomeSucceeded && r.Outcome != schemas.OutcomeCancelled {
		return // the retry policy bounds failures
	}
	node := r.Owner + " " + r.Node
	if s.successes[node]++; s.successes[node] > maxRepeats && s.successes[node] > s.mostRuns(r.Owner) {
		s.repeating = node
	}
}

// mostRuns bounds how often a node of an object runs with success in one run. A loop adds its rounds; a DAG with a schedule has them for
// each time that it makes up for.
func (s *run) mostRuns(owner string) int {
	e := s.tree.Entry(schemas.DAGKind.Ref(strings.TrimPrefix(owner, "dag/")))
	if e == nil {
		return maxRepeats
	}
	rounds, times := 0, 1
	if spec := schemas.SpecAs[*schemas.DAGSpec](e.Object); spec != nil {
		for i := range spec.Nodes {
			if r := spec.Nodes[i].Repeat; r != nil {
				rounds = max(rounds, r.Max)
			}
		}
		if len(spec.Schedule) > 0 {
			times = schemas.MostMissed
		}
	}
	return (maxRepeats + rounds) * times
}

func set[V any](m map[schemas.Ref]V, ref schemas.Ref, v V, keep bool) {
	if keep {
		m[ref] = v
	} else {
		delete(m, ref)
	}
}

// quiet reports whether a watcher has something to finalize and nothing has happened for the commit delay.
func (s *run) quiet() bool {
	if s.withheld && s.changedAt.IsZero() && len(s.openObjects()) == 0 {
		s.changedAt = s.loop.Now() // the withheld statuses can be committed now
	}
	changed := !s.changedAt.IsZero() && !s.loop.Now().Before(s.changedAt.Add(s.commitDelay()))
	return len(s.mine) == 0 && (changed || s.compactionDue()) && !s.backingOff()
}

func (s *run) commitDelay() time.Duration { return s.tree.Settings().Watch.CommitDelay.Std() }

func (s *run) warn(text string) {
	if s.loop.Warn != nil {
		s.loop.Warn(text)
	}
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

func (s *run) busy() bool {
	return len(s.mine) > 0 || len(s.inbox) > 0 || len(s.awaited) > 0 || s.loop.Store.ClaimedElsewhere()
}

// summary is what a run without work prints instead of reading every object.
func (s *run) summary() (state.Summary, error) {
	const most = 100 // more than fit a screen
	var lines []string
	for _, w := range work.Waits(s.tree, nil, s.loop.Now()) {
		if lines = append(lines, w.String()); len(lines) == most {
			break
		}
	}
	verdict := readiness.Verdict(s.tree, nil)
	var report json.RawMessage
	if verdict != readiness.ExitReady {
		var err error
		if report, err = json.Marshal(readiness.ReportOf(s.tree)); err != nil {
			return state.Summary{}, fmt.Errorf("report what is not ready: %w", err)
		}
	}
	return state.Summary{
		Lines: lines, Report: report,
		Wake: spans.Sooner(spans.Sooner(spans.Sooner(s.nextWake(), s.nextCompaction()), s.archiveAt), spans.Sooner(s.commitWake(), s.healthWake())), Exit: int(verdict), Counts: readiness.Counts(s.tree),
		Compacted: s.compacted, Clocks: sortedRefs(s.wakes), Archive: s.restingDue, Dormant: s.resting(), Commit: s.loop.Commit != nil, Push: s.tree.Settings().Git.Push, Mirror: s.tree.Settings().GitHub.Mirror || len(s.starts.waiting) > 0,
	}, nil
}

// resting lists the objects that want nothing by themselves. One with a timer wants something later.
func (s *run) resting() []schemas.Ref {
	return slices.DeleteFunc(controllers.Resting(s.tree), func(ref schemas.Ref) bool {
		return !s.wakes[ref].at.IsZero() || len(s.effects[ref])+len(s.restores[ref]) > 0 || s.stay[s.tree.Entry(ref).Object.Path]
	})
}

// end ends a run: it stops the running effects and writes all known state.
func (s *run) end(ctx context.Context, cause error) (Result, error) {
	interrupted := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	s.endChecks()
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
		Tree: s.tree, Ran: s.ran, Wrote: s.wrote, Commit: s.commit, Interrupted: interrupted,
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

func (s *run) hasMine(ref schemas.Ref) bool {
	for _, e := range s.mine {
		if e.Owner == ref {
			return true
		}
	}
	return false
}
