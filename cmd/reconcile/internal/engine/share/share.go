// Package share works on a branch of a remote repository together with other reconcilers: it fetches, adopts and pushes
// commits, and holds claims on effects there.
package share

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/claims"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/commits"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/ownership"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Options configure a Share.
type Options struct {
	Dir      string // of the tree
	Store    *state.Store
	Settings *schemas.SettingsSpec
	Commits  *commits.Committer
	Egress   egress.Policy
	Watching bool // the run does not end by itself, so it waits for an unreachable remote
	Warn     func(text string)
}

// Share is a branch that this run shares with others. It implements the remote for the loop and for the keeper of
// claims.
type Share struct {
	o      Options
	git    *gitrepo.Repo
	remote *gitrepo.Remote
	api    *github.Client // makes commits that git may not push; nil: not available
	keeper *claims.Keeper
	health health
	// private are the uncommitted specs in the last warning of reportPrivate.
	private string

	mu             sync.Mutex // guards the fields below; the keeper reads them concurrently with the loop
	holder         string     // the holder of our claims; "" until it is needed
	tip            gitrepo.Tip
	replacedBy     map[string]string        // by local hash, the hash of the commit that GitHub made instead
	prefetched     bool                     // tip was fetched before the loop began; its first fetch uses it
	base           string                   // the commit that this run knows the branch at; other runs on this tree move it, too
	asked          bool                     // the remote was asked at least once
	savedSightings []byte                   // the content of sightingsPath
	firstSeen      map[string]time.Duration // of the claims in it, by hash
	// holds has what other reconcilers have reserved, by key, as of reserves; claimed those whose claims exist, and adopted is the
	// commit of the remote whose records are in the tree.
	holds    map[string]budgets.Hold
	claimed  map[string]bool
	reserves int
	adopted  string
	// accounted is the value of reserves up to which the tree has the records of all reservations that are not in holds.
	accounted int
}

// Open opens the remote, and connects the committer to the shared branch.
func Open(ctx context.Context, o Options) (*Share, error) {
	api, err := openAPI(o)
	if err != nil {
		return nil, err
	}
	remote, err := o.Commits.Git.Remote(ctx, o.Settings.Git.Remote, o.Settings.Git.Branch)
	if err != nil {
		return nil, fmt.Errorf("push: %w; nothing was run", err)
	}
	s := newShare(o, remote)
	s.api = api
	o.Commits.Shared = s
	return s, nil
}

func newShare(o Options, remote *gitrepo.Remote) *Share {
	return &Share{o: o, git: o.Commits.Git, remote: remote, replacedBy: map[string]string{}, firstSeen: map[string]time.Duration{},
		holds:  map[string]budgets.Hold{},
		health: health{name: remote.String(), watching: o.Watching, warn: o.Warn}}
}

// InSync fetches, and reports whether the remote and the local branch are in sync, at the same head commit.
func (s *Share) InSync(ctx context.Context) (bool, error) {
	news, err := s.Fetch(ctx, false)
	if err != nil {
		return false, fmt.Errorf("%w; nothing was run", err)
	}
	s.prefetched = true
	head, err := s.git.Head(ctx)
	return !news && err == nil && s.tip.Head == head.Hash, err
}

// Remote returns the remote repository.
func (s *Share) Remote() *gitrepo.Remote { return s.remote }

// Close closes the share: it stops the claim keeper and closes the remote, which removes this run's claims and tickets,
// within the time that an interrupted run may use.
func (s *Share) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	s.keeper.Stop(ctx)
	_ = s.remote.Close(ctx) // others notice by themselves
}

// Fetch implements loop.Share.
func (s *Share) Fetch(ctx context.Context, turn bool) (news bool, err error) {
	s.mu.Lock()
	tip, known := s.tip, s.prefetched
	s.prefetched = false
	s.mu.Unlock()
	if known {
		err = s.reportClaims(tip)
	} else {
		tip, err = s.fetchTip(ctx, turn)
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
	news = tip.Head != "" && (tip.Head != head.Hash || len(tip.Pending) > 0) || s.base != head.Hash
	if !news && err == nil {
		s.setAdopted(tip)
	}
	return news, err
}

// setAdopted notes that the records in a commit of the remote are in the tree; s.mu is held.
func (s *Share) setAdopted(tip gitrepo.Tip) {
	s.adopted, s.accounted = tip.Head, max(s.accounted, tip.Reserves)
	if s.tip.Head == tip.Head {
		s.dropHolds()
	}
}

// MovedTo sets the base commit of the share to where the branch is, and reports whether it moved.
func (s *Share) MovedTo(commit string) (moved bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved = s.base != commit
	s.base = commit
	return moved
}

// fetchTip fetches the state of the remote.
func (s *Share) fetchTip(ctx context.Context, turn bool) (tip gitrepo.Tip, err error) {
	s.mu.Lock()
	if !s.asked {
		s.asked = true
		s.restoreSightings()
	}
	s.mu.Unlock()
	if turn {
		tip, err = s.remote.Turn(ctx)
	} else {
		tip, err = s.remote.Fetch(ctx)
	}
	s.health.observe(reading, err)
	if err != nil {
		return tip, err
	}
	s.mu.Lock()
	s.tip = tip
	s.saveSightings()
	s.mu.Unlock()
	s.noteFetch()
	return tip, s.reportClaims(tip)
}

// Adopt implements loop.Share.
func (s *Share) Adopt(ctx context.Context, t *state.Tree) (moved bool, err error) {
	s.mu.Lock()
	tip, ours := s.tip, s.isOurs(s.tip)
	s.mu.Unlock()
	got, err := s.remote.Adopt(ctx, tip, ownership.Owners(s.o.Store, t))
	if err != nil {
		return false, err
	}
	if got.Warning != "" {
		s.o.Warn(got.Warning)
	}
	s.mu.Lock()
	s.setAdopted(tip)
	s.mu.Unlock()
	head, err := s.git.Head(ctx)
	moved = s.MovedTo(head.Hash)
	if ours && head.Hash == tip.Head && len(got.Paths) == 0 {
		return false, err // same content under another hash
	}
	return moved || got.Moved, err
}

// Push implements loop.Share.
func (s *Share) Push(ctx context.Context, done []string) (sent, again bool, err error) {
	head, err := s.remote.Ready(ctx)
	if err != nil {
		return false, false, err
	}
	s.mu.Lock()
	same := head == "" || head == s.tip.Head
	s.mu.Unlock()
	if !same {
		if sent, again, err := s.pushCommit(ctx, head); again || err != nil {
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

// Unpushed implements loop.Share.
func (s *Share) Unpushed(ctx context.Context) ([]string, error) {
	me, err := s.holderName()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	head := s.tip.Head
	var here []string
	for _, c := range s.tip.Claims {
		if c.Key != "" && c.Holder == me && !s.keeper.Has(c.Key) && s.hasResult(c.Key) {
			here = append(here, c.Key)
		}
	}
	s.mu.Unlock()
	if head == "" || len(here) == 0 {
		return here, nil
	}
	there, err := s.Recorded(ctx, head, here)
	return slices.DeleteFunc(here, func(key string) bool { return slices.Contains(there, key) }), err
}

// Recorded returns which of the keys have their run record in the files of a commit.
func (s *Share) Recorded(ctx context.Context, commit string, keys []string) (done []string, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	paths := make([]string, len(keys))
	for i, key := range keys {
		paths[i] = s.o.Store.RunPath(key)
	}
	err = s.git.Files(ctx, commit, paths, func(f gitrepo.Stored) error {
		if i := slices.Index(paths, f.Path); i >= 0 {
			done = append(done, keys[i])
		}
		return nil
	})
	return done, err
}

// PushPending implements loop.Share.
func (s *Share) PushPending(ctx context.Context) error {
	head, err := s.git.Head(ctx)
	if err != nil {
		return err
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // it never fails
	return s.remote.PushPending(ctx, hex.EncodeToString(id[:]), head.Hash)
}

func (s *Share) isRecord(t *state.Tree, path string) bool {
	return strings.HasPrefix(path, t.Settings().Folders.State+"/runs/")
}
