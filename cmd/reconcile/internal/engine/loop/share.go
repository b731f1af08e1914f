package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Share is the branch of a remote repository that several reconcilers work on. Nothing of it is called concurrently.
type Share interface {
	// Fetch asks the remote how it stands, and reports whether Adopt has something to do. turn says that a push is to
	// follow: where many push, it waits until this one may.
	Fetch(ctx context.Context, turn bool) (news bool, err error)
	// Adopt puts the tree on top of what was fetched, and reports whether a file changed. It is called under the lock of
	// the tree, which is as t.
	Adopt(ctx context.Context, t *state.Tree) (moved bool, err error)
	// Push brings what was committed to the remote, if that lacks anything, which sent says. again says that someone else
	// was first. done are the effects whose results are in it: their claims are over.
	Push(ctx context.Context, done []string) (sent, again bool, err error)
	// Leave puts what could not be pushed on the remote in another way, so that others take it in.
	Leave(ctx context.Context) error
	// Owed names the effects that were claimed by killed runs on this tree and whose results are here, but were not on the
	// remote when it was fetched: others wait for them.
	Owed(ctx context.Context) ([]string, error)
	// Elsewhere names the effects that other reconcilers have claimed, by key, and until when.
	Elsewhere() map[string]time.Time
}

// Bounds of the exchange with a remote.
const (
	firstPoll  = time.Second      // between looks at the remote while something of others is waited for; doubled each time
	lastPoll   = 15 * time.Second //
	batch      = 2 * time.Second  // results are gathered this long before they are pushed while more is running
	freshFor   = time.Second      // a look at the remote is not repeated before a push that follows this soon
	pushTries  = 10
	pushFor    = time.Minute
	awayFor    = time.Minute     // a one-shot run that waits for a remote that is away gives up then
	flushFor   = 5 * time.Second // a run that is told to end has this long to push
	sharedLook = 2               // effects claimed beyond what may run at once where others could perform them, at least
)

// errMoved says that the branch is not what was decided on any more: decide again.
var errMoved = errors.New("the branch moved")

// starved says that a run gave up pushing; it is an ErrBusy.
type starved struct {
	tries int
	took  time.Duration
}

func (e *starved) Error() string {
	return fmt.Sprintf("others keep pushing to the branch: %d tries in %s; what this run recorded is committed here, and the "+
		"next run pushes it", e.tries, e.took.Round(time.Second))
}
func (e *starved) Unwrap() error { return state.ErrBusy }

// sharing is how a session stands to the remote. Its times are those of the process, also where the clock of the records
// stands still.
type sharing struct {
	theirs   map[string]time.Time // as Share.Elsewhere
	awaited  []controllers.Effect // wanted, selected, and claimed elsewhere
	abroad   []schemas.Ref        // the owners of all that is wanted and claimed elsewhere
	since    time.Time            // when the run began to wait for them
	told     bool                 // and said so
	unpushed []string             // keys of effects whose results the remote lacks
	oldest   time.Time            // when the first of them came in
	looked   time.Time            // the last successful look at the remote
	pollAt   time.Time
	pause    time.Duration // between polls
	tries    int           // pushes in a row that others were quicker than
	first    time.Time     // of these
	away     time.Time     // since when the remote fails; zero: it does not
	stuck    time.Time     // since when it takes no push, though it may well answer; zero: it does
	flushBy  time.Time     // when a run that was told to end gives up pushing
	withheld bool          // statuses were left for a later commit, since something is being performed
	tidied   bool          // the run has tidied up; unless changedAt says otherwise, nothing was written since
	pushed   bool          // everything that was committed is on the remote
	sent     bool          // something was pushed
	took     bool          // something of others was taken in
}

// exchange looks at the remote and publishes results while the run goes on, as far as either is due.
func (s *session) exchange(ctx context.Context) error {
	if s.Share == nil {
		return nil
	}
	if s.pollDue() {
		if _, err := s.pull(ctx, false); err != nil {
			if err = s.endure(ctx, err); err != nil {
				return err
			}
		}
	}
	if !s.publishDue() {
		return nil
	}
	return s.endure(ctx, s.tidy(ctx))
}

// pull takes in what is new on the remote.
func (s *session) pull(ctx context.Context, turn bool) (moved bool, err error) {
	ctx, cancel := s.network(ctx)
	defer cancel()
	news, err := s.Share.Fetch(ctx, turn)
	if err == nil {
		first := s.looked.IsZero()
		s.looked, s.away = time.Now(), time.Time{}
		if news {
			moved, err = s.adoptTip(ctx)
		}
		if err == nil && first {
			err = s.owe(ctx)
		}
	}
	s.schedule(moved)
	return moved, err
}

// owe lets what killed runs recorded be published at once: others may have waited for it for long.
func (s *session) owe(ctx context.Context) error {
	owed, err := s.Share.Owed(ctx)
	if len(owed) > 0 {
		s.unpushed, s.oldest = append(s.unpushed, owed...), time.Time{}
	}
	return err
}

// adoptTip puts the tree on top of what was fetched. What other programs wrote into ledgers is made specs first: a ledger
// of the remote takes the place of ours.
func (s *session) adoptTip(ctx context.Context) (moved bool, err error) {
	err = s.locked(ctx, func() error {
		if err := s.refresh(ctx, []string{s.tree.Settings().Folders.State + "/clarifications"}); err != nil {
			return err
		}
		s.decide()
		if err := s.derive(ctx); err != nil {
			return err
		}
		moved, err = s.Share.Adopt(ctx, s.tree)
		return err
	})
	if moved {
		s.rescan, s.moved, s.took = true, true, true
		if s.watching {
			s.changedAt = s.Now() // a commit of the user's is to be pushed, and with it what had to wait for it
		}
	}
	return moved, err
}

// network bounds what a run that was told to end spends on the remote.
func (s *session) network(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.flushBy.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, s.flushBy)
}

// schedule says when to look at the remote again: soon while something new comes in.
func (s *session) schedule(moved bool) {
	s.pause = min(max(2*s.pause, firstPoll), lastPoll)
	if moved {
		s.pause = firstPoll
	}
	wait := s.pause/2 + rand.N(s.pause/2) + 1
	if poll := s.tree.Settings().Git.Poll.Std(); s.watching && len(s.awaited) == 0 {
		if wait = poll; !s.away.IsZero() {
			wait = max(poll, s.pause)
		}
	}
	s.pollAt = time.Now().Add(wait)
}

func (s *session) pollDue() bool {
	return (s.watching || len(s.awaited) > 0) && !time.Now().Before(s.pollAt)
}

// publishDue reports whether results are to be pushed before the run is idle: others may wait for them.
func (s *session) publishDue() bool {
	if len(s.unpushed) == 0 || len(s.inbox) > 0 || s.barred() {
		return false
	}
	return len(s.mine) == 0 && !s.idle() || !time.Now().Before(s.oldest.Add(batch))
}

// barred reports whether the remote is away and it is not yet time to try it again.
func (s *session) barred() bool { return !s.away.IsZero() && time.Now().Before(s.pollAt) }

// untilShared is the time until the remote is to be looked at, or results are to be pushed.
func (s *session) untilShared() time.Duration {
	next := time.Hour
	if s.Share == nil {
		return next
	}
	if s.watching || len(s.awaited) > 0 || s.barred() {
		next = min(next, time.Until(s.pollAt))
	}
	for _, e := range s.awaited {
		next = min(next, time.Until(s.theirs[e.Key])) // then its claim has run out
	}
	if len(s.awaited) > 0 && len(s.mine) == 0 && !s.told {
		next = min(next, time.Until(s.since.Add(patience)))
	}
	if len(s.unpushed) > 0 && !s.barred() {
		next = min(next, time.Until(s.oldest.Add(batch)))
	}
	return max(next, time.Millisecond)
}

// endure takes in an error of the exchange. A watcher goes on with what it can do here; a one-shot run does for a while,
// for what it has started is not lost with the remote. What is to be decided again is decided at the next turn.
func (s *session) endure(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, errMoved) || errors.Is(err, state.ErrChanged):
		return nil
	case ctx.Err() != nil:
		return errStopped // and tried again at the end
	case !s.passing(err) || errors.As(err, new(*starved)) && !s.watching:
		return err
	case s.Share == nil:
		return nil
	}
	now := time.Now()
	if s.away.IsZero() {
		s.away = now
	}
	if !s.watching && now.Sub(earlier(s.away, s.stuck)) >= awayFor && len(s.mine) == 0 {
		return err
	}
	s.schedule(false)
	return nil
}

// recorded reports whether another reconciler performed an effect, too, and was first to push what came of it: then that
// stands. It happens to one that could not tell in time that it performs it still.
func (s *session) recorded(key string) bool {
	if s.Share == nil {
		return false
	}
	_, err := s.Store.Root().Lstat(s.Store.RunPath(key))
	return err == nil
}

// result notes that the remote lacks a result.
func (s *session) result(key string) {
	if s.Share == nil {
		return
	}
	if len(s.unpushed) == 0 {
		s.oldest = time.Now()
	}
	s.unpushed = append(s.unpushed, key)
}

// split takes from the wanted effects those that other reconcilers have claimed.
func (s *session) split(wanted []*controllers.Effect) []*controllers.Effect {
	if s.Share == nil {
		return wanted
	}
	s.theirs, s.awaited, s.abroad = s.Share.Elsewhere(), nil, nil
	in := s.Only.In(s.tree)
	var free []*controllers.Effect
	for _, e := range wanted {
		if _, theirs := s.theirs[e.Key]; !theirs || s.mine[e.Key].Key != "" {
			free = append(free, e)
			continue
		}
		s.abroad = append(s.abroad, e.Owner)
		if in(e.Owner, e.Node) {
			s.awaited = append(s.awaited, *e)
		}
	}
	if len(s.awaited) == 0 {
		s.since, s.told = time.Time{}, false
	} else if s.since.IsZero() {
		s.since = time.Now()
		s.pause, s.pollAt = 0, time.Now()
	}
	return free
}

// ahead is how many effects more than may run at once are claimed. What is claimed here nobody else performs.
func (s *session) ahead() int {
	if s.Share == nil {
		return lookahead
	}
	return max(sharedLook, s.CPUs) // so many that none waits for the remote
}

// open are the objects of which something is performed, here or elsewhere. What their statuses say meanwhile is not the
// same for all who share the branch, and is not committed.
func (s *session) open() []schemas.Ref {
	if s.Share == nil {
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
	for _, owner := range s.abroad {
		open[owner] = true
	}
	return slices.SortedFunc(maps.Keys(open), schemas.Ref.Compare)
}

// overtake makes sure that what is about to be committed stands on what is on the remote now, or nearly so.
func (s *session) overtake(ctx context.Context) error {
	if s.Share == nil || time.Since(s.looked) < freshFor || s.changedAt.IsZero() && len(s.unpushed) == 0 {
		return nil
	}
	moved, err := s.pull(ctx, true)
	if err == nil && moved {
		return errMoved
	}
	return err
}

// publish pushes what was committed. Where someone else was first, it takes in what they pushed, and errMoved is
// returned: what follows from that is to be decided before it is tried again.
func (s *session) publish(ctx context.Context, done []string) error {
	if s.Share == nil {
		return nil
	}
	net, cancel := s.network(ctx)
	defer cancel()
	sent, again, err := s.Share.Push(net, done)
	if err != nil {
		s.stuck = earlier(s.stuck, time.Now())
		return err
	}
	s.sent, s.stuck = s.sent || sent, time.Time{}
	if !again {
		s.pushed, s.tries, s.away = true, 0, time.Time{}
		s.unpushed = slices.DeleteFunc(s.unpushed, func(key string) bool { return slices.Contains(done, key) })
		s.oldest = time.Now()
		return nil
	}
	if s.tries++; s.tries == 1 {
		s.first = time.Now()
	}
	if s.tries >= pushTries || time.Since(s.first) >= pushFor {
		return s.giveUp(net)
	}
	if _, err := s.pull(ctx, true); err != nil {
		return err
	}
	return errMoved
}

// giveUp leaves for others what this run could not push.
func (s *session) giveUp(ctx context.Context) error {
	err := &starved{s.tries, time.Since(s.first)}
	s.tries = 0
	return errors.Join(err, s.Share.Leave(ctx))
}

// tellOfAwaited says, once, for what of others this run has been waiting.
func (s *session) tellOfAwaited() {
	if s.told || len(s.awaited) == 0 || len(s.mine) > 0 || time.Since(s.since) < patience {
		return
	}
	s.told = true
	e := s.awaited[0]
	what := e.Node + " of " + e.Owner.String()
	if n := len(s.awaited) - 1; n > 0 {
		what += fmt.Sprintf(" and %d more", n)
	}
	s.warn(fmt.Sprintf("waiting for %s, which another reconciler performs; unless it renews its claim on the remote, this run "+
		"takes over in %s", what, time.Until(s.theirs[e.Key]).Round(time.Second)))
}

// done reports whether everything is on the remote already.
func (s *session) done() bool {
	return s.Share != nil && s.tidied && !s.withheld && s.changedAt.IsZero() && len(s.unpushed) == 0
}

// flushError says of a run that was told to end what has become of what it could not push in time.
func (s *session) flushError(err error) error {
	if s.flushBy.IsZero() || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("what this run recorded could not be pushed within %s of the signal; it is kept here, and the next run "+
		"pushes it: %w", flushFor, state.ErrBusy)
}
