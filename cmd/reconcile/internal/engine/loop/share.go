package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/spans"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Share is the branch of a remote repository that several reconcilers work on. Its methods are not called concurrently.
type Share interface {
	// Fetch fetches the state of the remote, and reports whether Adopt has work to do. turn announces a push: if many
	// reconcilers push, Fetch waits for its turn.
	Fetch(ctx context.Context, turn bool) (news bool, err error)
	// Adopt rebases the tree on the fetched commits, and reports whether a file changed. It is called under the lock of
	// the tree, whose state is t.
	Adopt(ctx context.Context, t *state.Tree) (moved bool, err error)
	// Push pushes the commits that the remote lacks; sent reports whether there were any. again reports that another
	// push came first. done are the effects whose results are included: their claims are released.
	Push(ctx context.Context, done []string) (sent, again bool, err error)
	// PushPending pushes commits that lost the race to a separate reference of the remote, from which other reconcilers
	// merge them.
	PushPending(ctx context.Context) error
	// Unpushed names the effects that killed runs on this tree had claimed, and whose results are here but were missing
	// on the remote at the last fetch: other reconcilers wait for them.
	Unpushed(ctx context.Context) ([]string, error)
	// OtherClaims names the effects that other reconcilers have claimed, by key, with the expiry of each claim.
	OtherClaims() map[string]time.Time
	// Holds are the unexpired parts of budgets that other reconcilers have reserved. seen changes with each reservation of another;
	// behind says that the tree may lack the record of one that is over: Adopt first.
	Holds() (all []budgets.Hold, seen int, behind bool)
}

// Bounds of the exchange with a remote.
const (
	firstPoll        = time.Second      // first interval between fetches while this run waits for other reconcilers; doubled each time
	lastPoll         = 15 * time.Second // upper bound of that interval
	batch            = 2 * time.Second  // results are batched this long before a push while effects run
	freshFor         = time.Second      // a push that follows this soon needs no further fetch
	pushTries        = 10
	pushFor          = time.Minute
	unreachableLimit = time.Minute     // a one-shot run that waits for an unreachable remote gives up then
	flushLimit       = 5 * time.Second // time for the last push of a run that was told to stop
)

// errMoved says that the branch moved since the decision: decide again.
var errMoved = errors.New("the branch moved")

// remoteState is the state of a run that concerns the remote. Its times come from the process's clock, even if the
// clock of the records is fixed.
type remoteState struct {
	otherClaims      map[string]time.Time // the result of Share.OtherClaims
	awaited          []settle.Effect      // effects that are wanted, selected, and claimed by other reconcilers
	remoteOwners     []schemas.Ref        // the owners of all wanted effects that other reconcilers have claimed
	awaitedSince     time.Time            // when the run began to wait for them
	awaitedWarned    bool                 // a warning about it was given
	unpushed         []string             // keys of effects whose results the remote lacks
	oldest           time.Time            // time of the first of them
	fetchedAt        time.Time            // time of the last successful fetch
	pollAt           time.Time
	pollPause        time.Duration // interval between fetches
	lostPushes       int           // consecutive pushes that lost the race
	firstLostPush    time.Time     // time of the first of these
	failingSince     time.Time     // since when the remote fails; zero: it works
	pushFailingSince time.Time     // since when pushes fail, even if fetches work; zero: they work
	flushDeadline    time.Time     // when a run that was told to stop gives up pushing
	withheld         bool          // statuses of running objects were left for a later commit
	finalized        bool          // the run has finalized; nothing was written since, unless changedAt is set
	pushed           bool          // all commits are on the remote
	sent             bool          // this run pushed a commit
	pulled           bool          // this run adopted commits of others
}

// exchange fetches from the remote and publishes results during the run, if either is due.
func (s *run) exchange(ctx context.Context) error {
	if s.loop.Share == nil {
		return nil
	}
	if s.pollDue() {
		if _, err := s.pull(ctx, false); err != nil {
			if err = s.handleRemoteError(ctx, err); err != nil {
				return err
			}
		}
	}
	if !s.publishDue() {
		return nil
	}
	return s.handleRemoteError(ctx, s.finalize(ctx))
}

// pull fetches from the remote and adopts new commits.
func (s *run) pull(ctx context.Context, turn bool) (moved bool, err error) {
	ctx, cancel := s.network(ctx)
	defer cancel()
	news, err := s.loop.Share.Fetch(ctx, turn)
	if err == nil {
		first := s.fetchedAt.IsZero()
		s.fetchedAt, s.failingSince = time.Now(), time.Time{}
		if news {
			moved, err = s.adoptTip(ctx)
		}
		if err == nil && first {
			err = s.publishUnpushed(ctx)
		}
	}
	s.schedule(moved)
	return moved, err
}

// publishUnpushed schedules the results of killed runs for the next push: other reconcilers may have waited long for
// them.
func (s *run) publishUnpushed(ctx context.Context) error {
	owed, err := s.loop.Share.Unpushed(ctx)
	if len(owed) > 0 {
		s.unpushed, s.oldest = append(s.unpushed, owed...), time.Time{}
	}
	return err
}

// adoptTip rebases the tree on the fetched commits. It first derives specs from ledger entries of other programs, since
// the remote's version replaces the ledger.
func (s *run) adoptTip(ctx context.Context) (moved bool, err error) {
	err = s.withLock(ctx, func() error {
		if err := s.refresh(ctx, []string{s.tree.Settings().Folders.State + "/clarifications"}); err != nil {
			return err
		}
		s.decide()
		if err := s.deriveSpecs(ctx); err != nil {
			return err
		}
		moved, err = s.loop.Share.Adopt(ctx, s.tree)
		return err
	})
	if moved {
		s.rescan, s.filesReplaced, s.pulled = true, true, true
		if s.watching {
			s.changedAt = s.loop.Now() // a user's commit is to be pushed, and with it the commits that depend on it
		}
	}
	return moved, err
}

// network limits how long a run that was told to stop uses the remote.
func (s *run) network(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.flushDeadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, s.flushDeadline)
}

// schedule sets the time of the next fetch: soon while new commits arrive.
func (s *run) schedule(moved bool) {
	s.pollPause = min(max(2*s.pollPause, firstPoll), lastPoll)
	if moved {
		s.pollPause = firstPoll
	}
	wait := s.pollPause/2 + rand.N(s.pollPause/2) + 1
	if poll := s.tree.Settings().Git.Poll.Std(); s.watching && len(s.awaited) == 0 {
		if wait = poll; !s.failingSince.IsZero() {
			wait = max(poll, s.pollPause)
		}
	}
	s.pollAt = time.Now().Add(wait)
}

// publishDue reports whether a push is due before the run is idle: other reconcilers may wait for the results.
func (s *run) publishDue() bool {
	if len(s.unpushed) == 0 || len(s.inbox) > 0 || s.backingOff() {
		return false
	}
	return len(s.mine) == 0 && !s.idle() || !time.Now().Before(s.oldest.Add(batch))
}

// backingOff reports whether the remote failed and the next try is not due yet.
func (s *run) backingOff() bool { return !s.failingSince.IsZero() && time.Now().Before(s.pollAt) }

// untilShared is the time until the next fetch or push is due.
func (s *run) untilShared() time.Duration {
	next := time.Hour
	if s.loop.Share == nil {
		return next
	}
	if s.watching || len(s.awaited) > 0 || s.backingOff() {
		next = min(next, time.Until(s.pollAt))
	}
	for _, e := range s.awaited {
		next = min(next, time.Until(s.otherClaims[e.Key])) // when its claim expires
	}
	if len(s.awaited) > 0 && len(s.mine) == 0 && !s.awaitedWarned {
		next = min(next, time.Until(s.awaitedSince.Add(warnAfter)))
	}
	if len(s.unpushed) > 0 && !s.backingOff() {
		next = min(next, time.Until(s.oldest.Add(batch)))
	}
	return max(next, time.Millisecond)
}

// handleRemoteError handles an error of the exchange. A watcher continues with local work. A one-shot run does so for a
// while, since the results of its effects are kept locally. Anything that must be decided again is decided at the next
// turn.
func (s *run) handleRemoteError(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, errMoved) || errors.Is(err, state.ErrChanged):
		return nil
	case ctx.Err() != nil:
		return errStopped // retried at the end
	case !s.transient(err) || errors.As(err, new(*starvedError)) && !s.watching:
		return err
	case s.loop.Share == nil:
		return nil
	}
	now := time.Now()
	if s.failingSince.IsZero() {
		s.failingSince = now
	}
	if !s.watching && now.Sub(spans.Sooner(s.failingSince, s.pushFailingSince)) >= unreachableLimit && len(s.mine) == 0 {
		return err
	}
	s.schedule(false)
	return nil
}

// alreadyRecorded reports whether another reconciler also performed an effect and pushed its result first: then that
// result is valid. This happens to a reconciler that could not renew its claim in time.
func (s *run) alreadyRecorded(key string) bool {
	if s.loop.Share == nil {
		return false
	}
	_, err := s.loop.Store.Root().Lstat(s.loop.Store.RunPath(key))
	return err == nil
}

// noteUnpushed notes that the remote lacks a result.
func (s *run) noteUnpushed(key string) {
	if s.loop.Share == nil {
		return
	}
	if len(s.unpushed) == 0 {
		s.oldest = time.Now()
	}
	s.unpushed = append(s.unpushed, key)
}

// excludeOtherClaims removes from the wanted effects those that other reconcilers have claimed.
func (s *run) excludeOtherClaims(wanted []*settle.Effect) []*settle.Effect {
	if s.loop.Share == nil {
		return wanted
	}
	s.otherClaims, s.awaited, s.remoteOwners = s.loop.Share.OtherClaims(), nil, nil
	in := s.loop.Only.In(s.tree)
	var free []*settle.Effect
	for _, e := range wanted {
		if _, theirs := s.otherClaims[e.Key]; !theirs || s.mine[e.Key].Key != "" {
			free = append(free, e)
			continue
		}
		s.remoteOwners = append(s.remoteOwners, e.Owner)
		if in(e.Owner, e.Node) {
			s.awaited = append(s.awaited, *e)
		}
	}
	return free
}

// otherHolds are the parts of budgets and the concurrency groups that other reconcilers have reserved, and the wanted effects that may
// start with them: those that reserve something wait until the records of former reservations are here, and those of a group while
// another DAG of it works elsewhere.
func (s *run) otherHolds(wanted []*settle.Effect) (holds []budgets.Hold, seen int, free []*settle.Effect) {
	if s.loop.Share == nil {
		return nil, 0, wanted
	}
	holds, seen, behind := s.loop.Share.Holds()
	if !behind && len(holds) == 0 {
		return holds, seen, wanted
	}
	in := s.loop.Only.In(s.tree)
	for _, e := range wanted {
		until := budgets.Excluded(e, holds)
		if behind && (len(e.Allowances) > 0 || e.Exclusive != "") {
			until = time.Now().Add(freshFor)
		}
		if until.IsZero() || settle.ClaimOf(s.tree.Entry(e.Owner), e.Key) != nil {
			free = append(free, e)
		} else if in(e.Owner, e.Node) {
			s.otherClaims[e.Key] = until
			s.awaited = append(s.awaited, *e)
			if behind {
				s.pollAt = time.Now()
			}
		}
	}
	return holds, seen, free
}

// awaitHolds adds to the awaited effects those that were not admitted and whose budgets others have reserved.
func (s *run) awaitHolds(wanted []*settle.Effect, admitted []settle.Effect, holds []budgets.Hold) {
	if len(holds) == 0 {
		return
	}
	in := s.loop.Only.In(s.tree)
	for _, e := range wanted {
		until := budgets.Waits(e, holds)
		if until.IsZero() || s.mine[e.Key].Key != "" || !in(e.Owner, e.Node) ||
			slices.ContainsFunc(admitted, func(a settle.Effect) bool { return a.Key == e.Key }) {
			continue
		}
		s.otherClaims[e.Key] = until
		s.awaited = append(s.awaited, *e)
	}
}

// noteAwaited notes since when this run waits for other reconcilers.
func (s *run) noteAwaited() {
	if len(s.awaited) == 0 {
		s.awaitedSince, s.awaitedWarned = time.Time{}, false
	} else if s.awaitedSince.IsZero() {
		s.awaitedSince = time.Now()
		s.pollPause, s.pollAt = 0, time.Now()
	}
}

// openObjects are the objects with running effects, here or elsewhere. Their statuses differ between the reconcilers on
// the branch, and are not committed.
func (s *run) openObjects() []schemas.Ref {
	if s.loop.Share == nil {
		return nil
	}
	open := map[schemas.Ref]bool{}
	for _, kind := range s.tree.Kinds() {
		for _, e := range s.tree.Active(kind) {
			if len(e.Claims) > 0 {
				open[e.Ref] = true
			}
		}
	}
	for _, owner := range s.remoteOwners {
		open[owner] = true
	}
	return slices.SortedFunc(maps.Keys(open), schemas.Ref.Compare)
}

// CommittedHere says what is left of a run that could not push.
const CommittedHere = "what was recorded is committed here, and the next run pushes it"

// pullBeforePush makes sure that the next commit is based on the current tip of the remote, or a recent one.
func (s *run) pullBeforePush(ctx context.Context) error {
	if s.loop.Share == nil || time.Since(s.fetchedAt) < freshFor || s.changedAt.IsZero() && len(s.unpushed) == 0 {
		return nil
	}
	moved, err := s.pull(ctx, true)
	if err == nil && moved {
		return errMoved
	}
	return err
}

// publish pushes the commits. If another push came first, it adopts that and returns errMoved: decide again before the
// next try.
func (s *run) publish(ctx context.Context, done []string) error {
	if s.loop.Share == nil {
		return nil
	}
	net, cancel := s.network(ctx)
	defer cancel()
	sent, again, err := s.loop.Share.Push(net, done)
	if err != nil {
		s.pushFailingSince = spans.Sooner(s.pushFailingSince, time.Now())
		return err
	}
	s.sent, s.pushFailingSince = s.sent || sent, time.Time{}
	if !again {
		s.pushed, s.lostPushes, s.failingSince = true, 0, time.Time{}
		s.unpushed = slices.DeleteFunc(s.unpushed, func(key string) bool { return slices.Contains(done, key) })
		s.oldest = time.Now()
		return nil
	}
	if s.lostPushes++; s.lostPushes == 1 {
		s.firstLostPush = time.Now()
	}
	if s.lostPushes >= pushTries || time.Since(s.firstLostPush) >= pushFor {
		return s.giveUpPush(net)
	}
	if _, err := s.pull(ctx, true); err != nil {
		return err
	}
	return errMoved
}

// giveUpPush hands the unpushed commits over to other reconcilers.
func (s *run) giveUpPush(ctx context.Context) error {
	err := &starvedError{s.lostPushes, time.Since(s.firstLostPush)}
	s.lostPushes = 0
	return errors.Join(err, s.loop.Share.PushPending(ctx))
}

// published reports whether everything is on the remote already.
func (s *run) published() bool {
	return s.loop.Share != nil && s.finalized && !s.withheld && s.changedAt.IsZero() && len(s.unpushed) == 0
}

// flushError explains an expired push deadline of a run that was told to stop.
func (s *run) flushError(err error) error {
	if s.flushDeadline.IsZero() || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("what this run recorded could not be pushed within %s of the signal; it is kept here, and the next run "+
		"pushes it: %w", flushLimit, state.ErrBusy)
}
