package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// session is one run of a loop. Only its own goroutine touches it.
type session struct {
	*Loop
	journal  *state.Journal
	tree     *state.Tree
	decider  controllers.Decider
	hints    <-chan Hint
	watching bool
	stopping bool // nothing new is started
	over     bool // the performer is closed
	left     bool // a process was killed too late for this run to end what it left

	// What the decisions over tree say, by object; only objects that want something are listed.
	effects  map[schemas.Ref][]controllers.Effect
	restores map[schemas.Ref][]controllers.Restore
	// unrestored says that the cache has outputs that could not be written: the next run tries again.
	unrestored bool
	unkept     error  // why git is not in step with the outputs that are to be kept
	unkeptTold string // what was said of that last
	wakes      map[schemas.Ref]wake

	holders map[string]holder // other processes that this run waits for

	dirty  map[schemas.Ref]bool // to be decided again; nil: everything
	inbox  []controllers.Report // from the performer, not yet taken in
	paths  []string             // hinted, not yet looked at
	rescan bool                 // look everywhere at the next turn

	requests map[schemas.Ref]bool // requests and ledgers that changed since the ledgers were folded; nil: any may have
	swept    bool                 // what killed processes left of the locks of ledgers
	// barredLedgers are those that could not be had, by issue, and why; barredAt is when one was tried last.
	barredLedgers map[int]error
	barredAt      time.Time

	lock     *state.Lock // kept since the last turn; nil: none is
	lockedAt time.Time   // when it was taken
	started  bool        // the last turn started something

	recollect recollection // how the memory stands to tree
	compacted time.Time    // when it was looked last whether something is to be compacted

	archiveAt time.Time // when a spec is due for the archive; zero: none will be

	began         time.Time
	worked        map[schemas.Ref]bool          // whose effects this run has claimed
	mine          map[string]controllers.Effect // claimed by this process and not finished, by key
	held          map[string]string             // keys that cannot be started, and why
	fault         error                         // why this process cannot perform anything
	unwritten     map[schemas.Ref]bool          // status in tree differs from the file
	untold        map[schemas.Ref]*state.Entry  // requests as they were before what Record is still to be told of
	news          []news                        // of decisions, to be told before anything is written
	gone          map[schemas.Ref]*state.Entry  // objects whose status, and records, are to go, as last seen
	written       map[schemas.Ref]stamp         // what was last written
	recordedOf    map[schemas.Ref]int           // bytes of results since then
	scanned       time.Time                     // end of the last look for changes everywhere
	whole         time.Time                     // end of the last look at every file
	moved         bool                          // git put other files in place: every file is to be looked at
	scanCost      time.Duration                 // what it took
	stale         bool                          // something ran since the last full scan
	removedAgents []string                      // whose entries in the projection are to go
	changedAt     time.Time                     // of the last write that was not committed yet; zero: none
	laps          map[string]int                // successes of each node in this run
	chasing       string                        // the node that has had too many
	ran           int
	wrote         int
	commit        string
	sharing
}

// wake is when an object is decided again although nothing changed.
type wake struct {
	at    time.Time
	await bool
}

func (l *Loop) newSession(watching bool) *session {
	return &session{
		Loop: l, decider: controllers.Decider{Only: l.Only}, watching: watching, began: l.Now(), worked: map[schemas.Ref]bool{},
		effects: map[schemas.Ref][]controllers.Effect{}, wakes: map[schemas.Ref]wake{},
		restores: map[schemas.Ref][]controllers.Restore{},
		mine:     map[string]controllers.Effect{}, held: map[string]string{}, laps: map[string]int{},
		holders: map[string]holder{}, unwritten: map[schemas.Ref]bool{},
		gone: map[schemas.Ref]*state.Entry{}, written: map[schemas.Ref]stamp{},
		recordedOf: map[schemas.Ref]int{},
	}
}

func (l *Loop) begin(ctx context.Context, watching bool) (*session, error) {
	s := l.newSession(watching)
	if err := s.recover(ctx); err != nil {
		return nil, err
	}
	if !watching {
		l.Store.Watch()
	}
	start := l.Now()
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	s.scanned, s.scanCost = l.Now(), l.Now().Sub(start)
	s.whole = s.scanned
	if l.Share == nil {
		return s, nil
	}
	// What others did is known before anything is decided. A watcher that cannot know it goes on with what is here.
	if _, err := s.pull(ctx, false); err != nil && !(watching && s.endure(ctx, err) == nil) {
		return nil, fmt.Errorf("%w; nothing was run", err)
	}
	return s, nil
}

// load reads the tree. Where it is known what differs from the tree that was settled last, only that is decided: what the
// statuses and the ledgers say of the rest stands, and nothing of it was to be done.
func (s *session) load(ctx context.Context) error {
	tree, changed, known, err := s.Store.LoadChanged(ctx, s.Only == nil)
	if err != nil {
		return err
	}
	s.tree = tree
	if known && s.Only == nil { // what was asked for by name may be to do in a tree that was settled
		s.dirty, s.requests = map[schemas.Ref]bool{}, map[schemas.Ref]bool{}
		for _, ref := range changed {
			if ref.Kind == schemas.ClarificationRequestKind.Name {
				s.requests[ref] = true // a ledger may not have it yet
			}
		}
		s.touch(changed...)
	}
	return nil
}

// recover takes over what killed processes left: their results become files, and what they left running is ended
// before anything may start under the same key.
func (s *session) recover(ctx context.Context) error {
	var orphans []state.Orphan
	err := s.locked(ctx, func() (err error) {
		orphans, err = s.Store.Recover(ctx)
		return err
	})
	if err != nil || len(orphans) == 0 {
		return err
	}
	if s.over {
		s.left = true // for the next run to end: this one cannot any more
		return nil
	}
	if err := s.Perform.ReapAll(ctx, orphans); err != nil {
		return fmt.Errorf("end what a killed run left behind: %w", err)
	}
	return s.locked(ctx, func() error {
		torn, err := s.Store.MoveTornAside(ctx, orphans)
		for _, p := range torn {
			s.warn(fmt.Sprintf("%s: the run that was making it again was killed; what it left was moved to .reconcile/damaged", p))
		}
		return errors.Join(err, s.Store.ForgetOrphans(ctx, orphans))
	})
}

// errStopped ends a session that was told to stop.
var errStopped = errors.New("stopped")

// once turns until idle, and looks at everything once more before it believes so.
func (s *session) once(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.turn(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		if s.fault != nil {
			return s.fault
		}
		if s.Store.Orphaned() {
			if err := s.recover(ctx); err != nil {
				return err
			}
			continue
		}
		if s.chasing != "" {
			return fmt.Errorf("%s was run %d times in this run, because what it does changes what it depends on; "+
				"take what it writes out of its inputs", s.chasing, maxLaps+1)
		}
		if s.restoreOutputs(ctx) {
			continue
		}
		if err := s.exchange(ctx); err != nil {
			return err
		}
		if !s.idle() {
			s.tellOfHolders()
			s.tellOfAwaited()
			if err := s.wait(ctx); err != nil {
				return err
			}
			continue
		}
		if !s.stale && !s.rescan {
			s.Store.Unwatch()
			if s.Share == nil {
				return nil
			}
			err := s.tidy(ctx)
			switch {
			case errors.Is(err, errMoved) || errors.Is(err, state.ErrChanged):
			case err != nil && ctx.Err() != nil:
				return errStopped // it is tried again at the end
			default:
				return err
			}
		}
		s.rescan = true
		clear(s.barredLedgers) // they are tried once more, too
	}
	return errStopped
}

// watch turns for ever, and tidies up whenever it is quiet.
func (s *session) watch(ctx context.Context) error {
	for ctx.Err() == nil {
		if s.Now().Sub(s.barredAt) >= pollLedgers {
			clear(s.barredLedgers)
		}
		// A turn takes milliseconds: it is not interrupted, so that what it claimed is also performed.
		if err := s.turn(context.WithoutCancel(ctx)); err != nil && !s.passing(err) {
			return err
		}
		if s.fault != nil {
			return s.fault
		}
		if s.Store.Orphaned() {
			err := s.recover(ctx)
			if err == nil {
				continue
			}
			if !s.passing(err) {
				return err
			}
		}
		if s.restoreOutputs(ctx) {
			continue
		}
		if err := s.exchange(ctx); err != nil {
			return err
		}
		if s.quiet() {
			if err := s.tidyQuietly(ctx); err != nil {
				return err
			}
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	return errStopped
}

// tidyQuietly tidies up between the turns of a watcher.
func (s *session) tidyQuietly(ctx context.Context) error {
	err := s.tidy(ctx)
	if err != nil && !errors.Is(err, errMoved) && !errors.Is(err, state.ErrChanged) {
		s.changedAt = s.Now() // again after the next quiet time
	}
	return s.endure(ctx, err)
}

// passing reports an error that a watcher outlives by trying again at its next turn.
func (s *session) passing(err error) bool {
	return errors.Is(err, state.ErrBusy) || s.Passing != nil && s.Passing(err)
}

// idle reports whether nothing runs, here or elsewhere, and no object has work that a one-shot run waits for.
func (s *session) idle() bool {
	if len(s.mine) > 0 || len(s.inbox) > 0 || len(s.awaited) > 0 || s.foreign() {
		return false
	}
	return !s.awaits(s.Only)
}

// awaits reports whether something selected becomes due that a one-shot run waits for.
func (s *session) awaits(only *controllers.Selection) bool {
	for ref, w := range s.wakes {
		if w.await && only.Works(s.tree, ref) {
			return true
		}
	}
	return false
}

// foreign reports whether another process performs something selected, be it that nobody wants it any more: while it is
// being ended, the statuses are not what they will be. Anything else matters while it may take the places of what is
// selected.
func (s *session) foreign() bool {
	return s.Store.ClaimedElsewhere() && (s.Only == nil || s.selectedElsewhere() || s.queued())
}

// selectedElsewhere reports whether another process has claimed something selected.
func (s *session) selectedElsewhere() bool {
	in := s.Only.In(s.tree)
	for e := range s.Only.Entries(s.tree) {
		for i := range e.Claims {
			if c := &e.Claims[i]; c.Process != s.id() && in(e.Ref, c.Node) {
				return true
			}
		}
	}
	return false
}

// queued reports whether something selected is wanted and not claimed by this process.
func (s *session) queued() bool {
	in := s.Only.In(s.tree)
	return slices.ContainsFunc(s.wanted(), func(e *controllers.Effect) bool {
		return s.mine[e.Key].Key == "" && in(e.Owner, e.Node)
	})
}

// id names this process in claims; "" before it claimed anything.
func (s *session) id() string {
	if s.journal == nil {
		return ""
	}
	return s.journal.ID()
}
