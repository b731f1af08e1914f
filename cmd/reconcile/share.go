package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/claims"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/state"
)

// pushes reports whether the branch is shared with other reconcilers.
func (w *wiring) pushes() bool { return w.options.push || w.settings.Git.Push }

// share is the branch that this run shares with others: what the loop and the keeper of claims need of a remote.
type share struct {
	*committer
	remote *gitrepo.Remote
	api    *github.Client // makes commits that git may not push; nil: nobody does
	keeper *claims.Keeper
	reach  reach
	// private are the specs of which it was said that what follows from them is not shared.
	private string

	mu     sync.Mutex // guards what follows; the keeper asks beside the loop
	holder string     // who has our claims; "" until it is needed
	tip    gitrepo.Tip
	made   map[string]string        // by the name of a commit here, the one that GitHub made in its place
	before bool                     // tip was fetched before the loop began, and is as good for its first look
	base   string                   // the commit that this run knows the branch at; other runs on this tree move it, too
	asked  bool                     // the remote, at least once
	kept   []byte                   // what sightsPath holds
	since  map[string]time.Duration // of what is in it, by hash
}

// openShare finds the remote, if something is to be pushed.
func (w *wiring) openShare(ctx context.Context) error {
	if !w.pushes() {
		return nil
	}
	api, err := w.openAPI()
	if err != nil {
		return err
	}
	remote, err := w.repo.git.Remote(ctx, w.settings.Git.Remote, w.settings.Git.Branch)
	if err != nil {
		return fmt.Errorf("push: %w; nothing was run", err)
	}
	w.share = &share{committer: w.repo, remote: remote, api: api, made: map[string]string{},
		since: map[string]time.Duration{}}
	w.share.reach = reach{name: remote.String(), watching: w.options.watch, warn: w.warn}
	return nil
}

// inStep reports whether the remote has all that there is here, and nothing more.
func (w *wiring) inStep(ctx context.Context) (bool, error) {
	if w.share == nil {
		return true, nil
	}
	news, err := w.share.Fetch(ctx, false)
	if err != nil {
		return false, fmt.Errorf("%w; nothing was run", err)
	}
	w.share.before = true
	head, err := w.repo.git.Head(ctx)
	return !news && err == nil && w.share.tip.Head == head.Hash, err
}

// guard puts the keeper of claims before the runner.
func (s *share) guard(r *runner.Runner) *claims.Keeper {
	s.keeper = claims.New(claims.Options{Inner: r, Remote: claimed{s}, For: s.settings.Git.ClaimFor.Std(),
		Grace: s.settings.Runs.Grace.Std(), Retry: s.reach.retry})
	return s.keeper
}

// close gives back what is left on the remote of this run, for as long as a run that was told to end may take.
func (s *share) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	s.keeper.Stop(ctx)
	_ = s.remote.Close(ctx) // others find out by themselves
}

// Fetch implements loop.Share.
func (s *share) Fetch(ctx context.Context, turn bool) (news bool, err error) {
	s.mu.Lock()
	tip, known := s.tip, s.before
	s.before = false
	s.mu.Unlock()
	if known {
		err = s.seen(tip)
	} else {
		tip, err = s.ask(ctx, turn)
	}
	if err != nil {
		return false, err
	}
	head, err := s.git.Head(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base == "" {
		s.base = head.Hash
	}
	return tip.Head != "" && (tip.Head != head.Hash || len(tip.Pending) > 0) || s.base != head.Hash, err
}

// stand notes where the branch is, and reports whether it was elsewhere.
func (s *share) stand(commit string) (moved bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved = s.base != commit
	s.base = commit
	return moved
}

// ask asks the remote how it stands.
func (s *share) ask(ctx context.Context, turn bool) (tip gitrepo.Tip, err error) {
	s.mu.Lock()
	if !s.asked {
		s.asked = true
		s.recall()
	}
	s.mu.Unlock()
	if turn {
		tip, err = s.remote.Turn(ctx)
	} else {
		tip, err = s.remote.Fetch(ctx)
	}
	s.reach.heard(reading, err)
	if err != nil {
		return tip, err
	}
	s.mu.Lock()
	s.tip = tip
	s.remember()
	s.mu.Unlock()
	return tip, s.seen(tip)
}

// seen tells the keeper, if there is one yet, who has claimed what.
func (s *share) seen(tip gitrepo.Tip) error {
	if s.keeper == nil {
		return nil
	}
	me, err := s.name()
	var others []claims.Claim
	for _, c := range tip.Claims {
		if c.Holder != me {
			others = append(others, claims.Claim{Key: c.Key, Until: c.Expires})
		}
	}
	s.keeper.Seen(others)
	return err
}

// Adopt implements loop.Share.
func (s *share) Adopt(ctx context.Context, t *state.Tree) (moved bool, err error) {
	s.mu.Lock()
	tip, ours := s.tip, s.isOurs(s.tip)
	s.mu.Unlock()
	got, err := s.remote.Adopt(ctx, tip, owners(s.store, t))
	if err != nil {
		return false, err
	}
	if got.Warning != "" {
		s.warn(got.Warning)
	}
	head, err := s.git.Head(ctx)
	moved = s.stand(head.Hash)
	if ours && head.Hash == tip.Head && len(got.Paths) == 0 {
		return false, err // it has another name, and is what was here
	}
	return moved || got.Moved, err
}

// Push implements loop.Share.
func (s *share) Push(ctx context.Context, done []string) (sent, again bool, err error) {
	head, err := s.remote.Ready(ctx)
	if err != nil {
		return false, false, err
	}
	s.mu.Lock()
	same := head == "" || head == s.tip.Head
	s.mu.Unlock()
	if !same {
		if sent, again, err := s.send(ctx, head); again || err != nil {
			return sent, again, err
		}
		s.mu.Lock()
		s.tip.Head = head
		s.mu.Unlock()
	}
	s.keeper.Pushed(done)
	s.sweep(ctx, head)
	s.remote.SweepTickets(ctx)
	return !same, false, nil
}

// sweep gives back claims that nobody needs any more: those that have run out, and those of killed runs on this tree whose
// results are on the branch. What fails is left for the next time.
func (s *share) sweep(ctx context.Context, head string) {
	me, err := s.name()
	if err != nil || head == "" {
		return
	}
	s.mu.Lock()
	var over, own []string
	for _, c := range s.tip.Claims {
		switch {
		case c.Key == "" || s.keeper.Has(c.Key):
		case !time.Now().Before(c.Expires):
			over = append(over, c.Key)
		case c.Holder == me:
			own = append(own, c.Key)
		}
	}
	s.tip.Claims = nil // once for each look at the remote
	s.mu.Unlock()
	done, err := s.recorded(ctx, head, own)
	if over = append(over, done...); err != nil || len(over) == 0 {
		return
	}
	if _, err := (claimed{s}).Take(ctx, over); err == nil {
		_ = s.remote.Drop(ctx, over)
	}
}

// Owed implements loop.Share.
func (s *share) Owed(ctx context.Context) ([]string, error) {
	me, err := s.name()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	head := s.tip.Head
	var here []string
	for _, c := range s.tip.Claims {
		if c.Key != "" && c.Holder == me && !s.keeper.Has(c.Key) && s.done(c.Key) {
			here = append(here, c.Key)
		}
	}
	s.mu.Unlock()
	if head == "" || len(here) == 0 {
		return here, nil
	}
	there, err := s.recorded(ctx, head, here)
	return slices.DeleteFunc(here, func(key string) bool { return slices.Contains(there, key) }), err
}

// done reports whether the result of an effect is a file of this tree.
func (s *share) done(key string) bool {
	_, err := s.store.Root().Lstat(s.store.RunPath(key))
	return err == nil
}

// recorded are the keys whose results a commit has.
func (s *share) recorded(ctx context.Context, commit string, keys []string) (done []string, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	paths := make([]string, len(keys))
	for i, key := range keys {
		paths[i] = s.store.RunPath(key)
	}
	err = s.git.Files(ctx, commit, paths, func(f gitrepo.Stored) error {
		if i := slices.Index(paths, f.Path); i >= 0 {
			done = append(done, keys[i])
		}
		return nil
	})
	return done, err
}

// Leave implements loop.Share.
func (s *share) Leave(ctx context.Context) error {
	head, err := s.git.Head(ctx)
	if err != nil {
		return err
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // it never fails
	return s.remote.Leave(ctx, hex.EncodeToString(id[:]), head.Hash)
}

// Elsewhere implements loop.Share.
func (s *share) Elsewhere() map[string]time.Time { return s.keeper.Elsewhere() }
