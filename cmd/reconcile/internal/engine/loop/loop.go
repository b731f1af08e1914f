// Package loop drives a tree to its fixed point: load, decide, write, perform, until nothing changes any more.
//
// One turn happens under the lock of the whole tree and takes milliseconds:
//
//	take in what happened (results, other processes' writes, changed files)
//	→ decide (controllers.Settle) → claim what may start (controllers.Admit) → decide again
//	→ write the claims to the journal (synced), start what was claimed, write the statuses as files
//
// and, the lock released, end what is no longer wanted. Results come back from the
// [Performer], are synced to the journal, and cause the next turn. [Loop.Once] ends at the fixed point; [Loop.Watch]
// goes on, with hints from a watcher. Both are the same turns: given the same inputs and clock they leave the same
// bytes.
package loop

import (
	"context"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Performer runs effects. Its methods return at once, but for Close and Reap.
type Performer interface {
	// Submit queues an effect; it starts when its groups and the processors have room, and not before what this process
	// recorded is durable ([state.Store.SyncJournal]).
	Submit(controllers.Effect)
	// SetForeign tells how many places of each group other processes hold.
	SetForeign(map[string]int)
	// Cancel ends an effect, running or queued.
	Cancel(key, why string)
	// Notify has a token whenever there are reports to drain; Drain returns those since its last call.
	Notify() <-chan struct{}
	Drain() []controllers.Report
	// Backlog counts submitted effects that have not started.
	Backlog() int
	// ReapAll ends what killed processes left running, within the grace time.
	ReapAll(ctx context.Context, orphans []state.Orphan) error
	// Close ends everything; what is to say of it can be drained afterwards.
	Close(ctx context.Context) error
}

// Hint says where to look again; Full means everywhere.
type Hint struct {
	Paths []string
	Full  bool
	// Written says that files were written beside the loop that Commit is to record.
	Written bool
}

// Loop drives one tree. Store, Perform and Now must be set.
type Loop struct {
	Store   *state.Store
	Perform Performer
	Now     func() time.Time
	// CPUs is the number of processors that limits.concurrentTasks 0 stands for.
	CPUs int
	// Linger keeps the lock of the tree from turn to turn while what runs ends at once, for some milliseconds. Others wait
	// that long for it.
	Linger bool
	// Only is what is performed, by Once and Look; nil: everything. Everything is decided and recorded, whatever it is.
	Only *controllers.Selection
	// Memory keeps what agents learned; nil when nothing is to be kept.
	Memory Memory
	// Movable returns the spec files of these that may go to the archive: those without changes that have yet to be
	// committed. nil: none goes.
	Movable func(ctx context.Context, paths []string) ([]string, error)
	// Outputs keeps what nodes leave behind; nil when nothing is to be restored.
	Outputs Outputs
	// Commit records what was written in git; nil when nothing is to be committed.
	Commit func(ctx context.Context, t *state.Tree, scope Scope) (Committed, error)
	// Share is the branch that commits are pushed to; nil when nothing is pushed. Then Perform claims effects there, too.
	Share Share
	// Warn is told of what a person should know and no object's status says; may be nil.
	Warn func(string)
	// Passing reports an error of Commit or Share that a watcher outlives by trying again later; may be nil.
	Passing func(error) bool
	// Record keeps what changed in the event log; may be nil.
	Record func([]controllers.Event)
	// Observe is told of reports as they come, with the tree as it is then, and of the tree after each turn; may be nil.
	Observe func([]controllers.Report, *state.Tree)
	// Doing is told what a turn is at and how much of it is done, again and again while it goes on; may be nil.
	Doing func(step string, done, total int)
}

// Scope says what a commit may hold.
type Scope struct {
	// Whole says that the memory is whole. If not, it and the observations are left for a later commit.
	Whole bool
	// Open are objects of which something is being performed. Their statuses, and those that depend on them, are left for
	// a later commit.
	Open []schemas.Ref
}

// Committed is what became of a commit.
type Committed struct {
	// Hash is the new commit, "" when there was nothing to record.
	Hash string
	// Behind says that a later run has to finish something: git's index has not followed yet.
	Behind bool
}

// Result is how a run ended.
type Result struct {
	Tree *state.Tree
	// Ran counts the effects that were performed by this process, Wrote the files: statuses, specs that were derived, and
	// those of the memory.
	Ran, Wrote int
	// Commit is the commit that was made, or "".
	Commit string
	// Pushed says that all that was recorded is on the remote, Sent that this run pushed something of it, and Took that
	// something of others was taken in.
	Pushed, Sent, Took bool
	// Interrupted says that the run was told to stop before the fixed point.
	Interrupted bool
	// Held says that something is not in the memory because a lock could not be had: a later run takes it in.
	Held bool
	// Busy names the ledgers that could not be had, as an ErrBusy: a later run does what rests on them. nil: all could.
	Busy error
	// Wake is when a later run has something to do although nothing changed; zero means never.
	Wake time.Time
}

// Bounds of a run.
const (
	lookahead   = 64                     // effects claimed beyond what may run at once, so that none waits for a turn
	gatherFor   = 40 * time.Millisecond  // results are gathered this long while enough work is queued
	startFor    = 5 * time.Millisecond   // what started is put on record this soon, unless it has ended
	pollForeign = 100 * time.Millisecond // while another process performs something
	pollLedgers = 10 * time.Second       // a watcher tries a ledger again that could not be had
	pollSpecs   = 500 * time.Millisecond // a one-shot run looks for changed files this often while something runs
	maxLaps     = 25                     // runs of one node in a one-shot run that did not fail; more: it chases itself
)

// Once runs until nothing changes any more: every object is ready, failed, or waits for someone. When ctx ends, what
// runs is ended, recorded as interrupted, and Result.Interrupted is set. An error means that the run could not go on;
// what was recorded until then is kept.
func (l *Loop) Once(ctx context.Context) (Result, error) {
	s, err := l.begin(ctx, false)
	if err != nil {
		return Result{}, err
	}
	return s.end(ctx, s.once(ctx))
}

// Look decides once and writes what follows from that. It starts and ends nothing, and waits neither for what runs, here or
// left behind by a killed run, nor for what becomes due. Perform is not used.
func (l *Loop) Look(ctx context.Context) (Result, error) {
	s := l.newSession(false)
	s.stopping = true
	if err := s.load(ctx); err != nil {
		return Result{}, err
	}
	err := s.advance(ctx)
	return Result{Tree: s.tree, Wrote: s.wrote, Held: s.forgets(), Busy: s.ledgerError(), Wake: s.nextWake()}, err
}

// Watch runs until ctx ends, which is its normal end and no error.
func (l *Loop) Watch(ctx context.Context, hints <-chan Hint) (Result, error) {
	s, err := l.begin(ctx, true)
	if err != nil {
		return Result{}, err
	}
	s.hints = hints
	return s.end(ctx, s.watch(ctx))
}

// Latest returns a function that hands values to a channel with room for one, of which only the latest counts.
func Latest[T any](to chan T) func(T) {
	return func(v T) {
		select {
		case <-to:
		default:
		}
		to <- v
	}
}
