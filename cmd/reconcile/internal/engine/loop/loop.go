// Package loop drives a tree to its fixed point: load, decide, write and perform, until nothing changes.
//
// One turn runs under the lock of the whole tree and takes milliseconds:
//
//	ingest events (results, writes of other processes, changed files)
//	→ decide (settle.Tree) → claim what may start (settle.Admit)
//	→ write the claims to the journal (synced), start the claimed effects, write the statuses as files
//
// After it releases the lock, it cancels unwanted effects. The [Performer] reports results, which are
// synced to the journal and cause the next turn. [Loop.Once] ends at the fixed point; [Loop.Watch] continues with hints
// from a watcher. Both use the same turns: with the same inputs and clock they write the same bytes.
package loop

import (
	"context"
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Performer runs effects. Its methods return at once, except Close and ReapAll.
type Performer interface {
	// Submit queues an effect. It starts when its groups and the processors have room, and only after the records of
	// this process are durable ([state.Store.SyncJournal]).
	Submit(settle.Effect)
	// SetLimits sets the settings of runs, how many slots there are, and how many places of each group other processes use.
	SetLimits(runs *schemas.RunSettings, slots int, foreign map[string]int)
	// Withdraw releases an effect that is queued. One whose turn has come goes on, and its start is reported.
	Withdraw(key, why string)
	// Cancel stops an effect, running or queued.
	Cancel(key, why string)
	// Hurry ends the time of grace of an effect that was cancelled.
	Hurry(key string)
	// Tell gives texts of people to the running turn of an effect, each once.
	Tell(key string, all []settle.Message)
	// Notify has a token whenever there are reports to drain; Drain returns those since its last call.
	Notify() <-chan struct{}
	Drain() []settle.Report
	// Backlog counts submitted effects that have not started.
	Backlog() int
	// ReapAll ends the remaining processes of killed runs, within the grace time.
	ReapAll(ctx context.Context, orphans []state.Orphan) error
	// Close ends everything; the last reports can be drained afterwards.
	Close(ctx context.Context) error
}

// Hint names the paths to scan; Full means all.
type Hint struct {
	Paths []string
	Full  bool
	// Written says that files were written outside of the loop which Commit must include.
	Written bool
}

// Loop drives one tree. Store, Perform and Now must be set.
type Loop struct {
	Store   *state.Store
	Perform Performer
	Now     func() time.Time
	// CPUs is the number of processors; limits.concurrentTasks: 0 allows that many tasks.
	CPUs int
	// Linger keeps the lock of the tree from turn to turn, for some milliseconds, while effects end at once. Other
	// processes wait that long.
	Linger bool
	// Only selects what Once and DecideOnce perform; nil: everything. Decisions and records cover everything in any
	// case.
	Only *settle.Selection
	// Memory stores what agents learned; nil disables it.
	Memory Memory
	// Archivable returns those of the spec files that may be archived: files without uncommitted changes. nil: none is
	// archived.
	Archivable func(ctx context.Context, paths []string) ([]string, error)
	// Outputs keeps the declared outputs of nodes; nil: none are restored.
	Outputs Outputs
	// NotReady says why a task that needs git cannot be performed yet, "" if it can; nil: nothing is asked.
	NotReady func(ctx context.Context, task settle.Task) (string, error)
	// CheckAgent says why an agent cannot work on this machine; "" if nothing is known against it. It may take seconds, and be called from
	// any goroutine. nil: agents are not checked.
	CheckAgent func(ctx context.Context, settings *schemas.SettingsSpec, spec *schemas.AgentSpec) (why string)
	// Tools knows the versions of programs that nodes declare; nil: they are not asked, and recorded versions count.
	Tools Tools
	// Identify says who wrote an action, and how that is proved; nil: no one looks.
	Identify func(ctx context.Context, settings *schemas.SettingsSpec, o *schemas.Object) (settle.Identity, error)
	// ReadIssue reads an issue of the settings' repository on GitHub; nil: no one does.
	ReadIssue func(ctx context.Context, settings *schemas.SettingsSpec, number int) (derive.Issue, error)
	// Commit commits the written files to git; nil: nothing is committed.
	Commit func(ctx context.Context, t *state.Tree, scope Scope) (Committed, error)
	// Share is the branch that commits are pushed to; nil: nothing is pushed. If set, Perform also claims effects on
	// the remote.
	Share Share
	// Warn is called with notes for the user that no object's status has; may be nil.
	Warn func(string)
	// Transient reports whether a watcher should retry after an error of Commit or Share; may be nil.
	Transient func(error) bool
	// Record writes changes to the event log; may be nil.
	Record func([]settle.Event)
	// Observe is called with each batch of reports and the tree at that time, and with the tree after each turn; may be
	// nil.
	Observe func([]settle.Report, *state.Tree)
	// Progress is called repeatedly during a turn with its current step and how much of it is done; may be nil.
	Progress func(step string, done, total int)
}

// Scope says what a commit may contain.
type Scope struct {
	// MemorySettled says that the memory is up to date. Otherwise a later commit records it and the observations.
	MemorySettled bool
	// Open are objects with running effects. A later commit records their statuses and those that depend on them.
	Open []schemas.Ref
}

// Committed is the result of a commit.
type Committed struct {
	// Hash is the new commit, "" if there was nothing to commit.
	Hash string
	// Incomplete says that a later run has to finish the commit: git's index was not updated yet.
	Incomplete bool
}

// Result is the outcome of a run.
type Result struct {
	Tree *state.Tree
	// Ran counts the effects that this process performed, Wrote the files it wrote: statuses, derived specs, and those
	// of the memory.
	Ran, Wrote int
	// Commit is the new commit, or "".
	Commit string
	// Pushed says that all records are on the remote, Sent that this run pushed some of them, and Pulled that it
	// adopted commits of others.
	Pushed, Sent, Pulled bool
	// Interrupted says that the run was told to stop before the fixed point.
	Interrupted bool
	// MemoryBusy says that a lock was not available, so that the memory is incomplete: a later run completes it.
	MemoryBusy bool
	// LedgersBusy names the ledgers whose locks were not available, as an ErrBusy; a later run does the work that
	// depends on them. nil if all locks were available.
	LedgersBusy error
}

// Bounds of a run.
const (
	fewAhead    = 2                      // effects claimed beyond those that may run at once, at least, so that none waits for a turn
	mostAhead   = 512                    // and at most, where they end soon
	gatherFor   = 40 * time.Millisecond  // results are batched this long while enough work is queued
	maxGather   = 8                      // and up to this multiple where turns take long
	startFor    = 5 * time.Millisecond   // a start is recorded this soon, unless the effect has ended by then
	pollForeign = 100 * time.Millisecond // while another process performs an effect
	pollLedgers = 10 * time.Second       // a watcher retries a busy ledger this often
	pollSpecs   = 500 * time.Millisecond // a one-shot run scans for changed files this often while effects run
	maxRepeats  = 25                     // successful runs of one node in a one-shot run; more mean that the node triggers itself
)

// Once runs the loop until nothing changes: every object is ready, failed, or waits for a person. When ctx ends,
// running effects are stopped and recorded as interrupted, and Result.Interrupted is set. An error means that the run
// could not continue; earlier records are kept.
func (l *Loop) Once(ctx context.Context) (Result, error) {
	s, err := l.begin(ctx, false)
	if err != nil {
		return Result{}, err
	}
	return s.end(ctx, s.once(ctx))
}

// DecideOnce runs the loop to decide once, and writes the resulting files. It starts and stops nothing. It does not
// wait for running effects, for remaining processes of a killed run, or for timers. Perform is not used.
func (l *Loop) DecideOnce(ctx context.Context) (Result, error) {
	s := l.newRun(false)
	s.stopping = true
	if err := s.load(ctx); err != nil {
		return Result{}, err
	}
	err := s.advance(ctx)
	return Result{Tree: s.tree, Wrote: s.wrote, MemoryBusy: s.memoryPending(), LedgersBusy: s.busyLedgersError()}, err
}

// Watch runs the loop, and again with each of the hints, until ctx ends, which is its normal end and not an error.
func (l *Loop) Watch(ctx context.Context, hints <-chan Hint) (Result, error) {
	s, err := l.begin(ctx, true)
	if err != nil {
		return Result{}, err
	}
	s.hints = hints
	return s.end(ctx, s.watch(ctx))
}

// Latest returns a function that sends a value to a channel of capacity one, and replaces an unread value: the latest
// wins.
func Latest[T any](to chan T) func(T) {
	return func(v T) {
		select {
		case <-to:
		default:
		}
		to <- v
	}
}

func (l *Loop) newRun(watching bool) *run {
	s := &run{
		loop: l, decider: settle.Decider{Only: l.Only}, watching: watching, began: l.Now(), worked: map[schemas.Ref]bool{},
		effects: map[schemas.Ref][]settle.Effect{}, wakes: map[schemas.Ref]wake{}, scheduled: map[schemas.Ref]bool{},
		restores: map[schemas.Ref][]settle.Restore{},
		mine:     map[string]settle.Effect{}, held: map[string]string{}, successes: map[string]int{},
		holders: map[string]holder{}, unwritten: map[schemas.Ref]bool{}, deferred: map[schemas.Ref]bool{},
		removed: map[schemas.Ref]*state.Entry{}, written: map[schemas.Ref]statusStamp{},
		unwrittenBytes: map[schemas.Ref]int{}, notReady: map[settle.NodeRef]heldTask{},
		identities: map[schemas.Ref]settle.Identity{}, unproved: map[schemas.Ref]bool{},
		starts: startReading{waiting: map[schemas.Ref]bool{}, read: map[schemas.Ref]derive.Issue{}},
		health: map[string]*health{}, checked: make(chan checked, maxChecks), endChecks: func() {},
	}
	s.decider.Identify = s.identify
	if l.Tools != nil {
		s.tools, s.toolUsers, s.decider.Tool = map[string]settle.Tool{}, map[schemas.Ref][]string{}, s.tool
	}
	if l.CheckAgent != nil {
		s.decider.Ailing = s.ailing
		s.checks, s.endChecks = context.WithCancel(context.Background())
	}
	return s
}

func (l *Loop) begin(ctx context.Context, watching bool) (*run, error) {
	s := l.newRun(watching)
	s.whole = ctx
	if err := s.recoverKilled(ctx); err != nil {
		return nil, err
	}
	if !watching {
		l.Store.Watch()
	}
	start := l.Now()
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	s.scannedAt, s.scanCost = l.Now(), l.Now().Sub(start)
	s.fullScanAt = s.scannedAt
	if l.Share == nil {
		return s, nil
	}
	// Changes of others are adopted before any decision. A watcher continues with the local state if it cannot fetch
	// them.
	if _, err := s.pull(ctx, false); err != nil && !(watching && s.handleRemoteError(ctx, err) == nil) {
		return nil, fmt.Errorf("%w; nothing was run", err)
	}
	return s, nil
}
