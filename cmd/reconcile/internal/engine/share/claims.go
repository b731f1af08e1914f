package share

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/claims"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// holderPath is the file with the name under which a tree claims effects. Its time is that of the last fetch.
const holderPath = ".reconcile/holder"

// LastFetch returns when a run on the tree in a folder last fetched from the remote; zero if none has.
func LastFetch(tree *os.Root) (at time.Time) {
	if fi, err := tree.Lstat(holderPath); err == nil {
		at = fi.ModTime()
	}
	return at
}

// noteFetch has LastFetch return the present time. What it cannot note, it leaves.
func (s *Share) noteFetch() {
	if _, err := s.holderName(); err == nil {
		now := time.Now()
		_ = s.o.Store.Root().Chtimes(holderPath, now, now)
	}
}

// holderName returns the holder of this tree's claims. It identifies the tree and not the process: the next run on the
// same tree continues the claims of a killed run without waiting for their expiry. A copy of the tree has another name.
func (s *Share) holderName() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder != "" {
		return s.holder, nil
	}
	place, err := s.location()
	if err != nil {
		return "", err
	}
	root := s.o.Store.Root()
	if was, err := regular.Read(root, holderPath); err == nil {
		if name, at, ok := strings.Cut(strings.TrimSpace(string(was)), " "); ok && at == place && len(name) == 16 {
			s.holder = name
			return name, nil
		}
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // it never fails
	name := hex.EncodeToString(id[:])
	if err := durable.WriteFile(root, ".reconcile/tmp", holderPath, []byte(name+" "+place+"\n")); err != nil {
		return "", fmt.Errorf("keep the name of this tree: %w", err)
	}
	s.holder = name
	return name, nil
}

// Claims returns the claims of this tree on the remote.
func (s *Share) Claims() claims.Remote { return claimRemote{s} }

// claimRemote implements [claims.Remote].
type claimRemote struct{ s *Share }

// claims returns claims for keys that start now.
func (c claimRemote) claims(keys []string) ([]gitrepo.Claim, error) {
	name, err := c.s.holderName()
	until := time.Now().Add(c.s.o.Settings.Git.ClaimFor.Std())
	out := make([]gitrepo.Claim, len(keys))
	for i, key := range keys {
		out[i] = gitrepo.Claim{Key: key, Holder: name, Expires: until}
	}
	return out, err
}

// Take implements claims.Remote.
func (c claimRemote) Take(ctx context.Context, keys []string) (refused []claims.Claim, err error) {
	want, err := c.claims(keys)
	if err != nil {
		return nil, err
	}
	others, err := c.s.remote.Take(ctx, want)
	for key, other := range others {
		refused = append(refused, claims.Claim{Key: key, Until: other.Expires})
	}
	return refused, err
}

// Reserve implements claims.Remote.
func (c claimRemote) Reserve(ctx context.Context, effects []settle.Effect) (refused []claims.Claim, again []string, err error) {
	keys := make([]string, len(effects))
	for i := range effects {
		keys[i] = effects[i].Key
	}
	plain, err := c.claims(keys)
	if err != nil {
		return nil, nil, err
	}
	want := make([]gitrepo.Reservation, len(plain))
	for i := range plain {
		want[i] = gitrepo.Reservation{Claim: plain[i], Seen: effects[i].Seen}
		if want[i].Text, err = json.Marshal(budgets.HoldOf(&effects[i])); err != nil {
			return nil, nil, err
		}
	}
	others, again, err := c.s.remote.Reserve(ctx, want)
	for key, other := range others {
		refused = append(refused, claims.Claim{Key: key, Until: other.Expires})
	}
	if len(again) > 0 && err == nil {
		_, err = c.s.fetchTip(ctx, false) // the next decision counts them
	}
	return refused, again, err
}

// Renew implements claims.Remote.
func (c claimRemote) Renew(ctx context.Context, keys []string) (lost []string, err error) {
	want, err := c.claims(keys)
	if err != nil {
		return nil, err
	}
	return c.s.remote.Renew(ctx, want)
}

// Drop implements claims.Remote.
func (c claimRemote) Drop(ctx context.Context, keys []string) error {
	return c.s.remote.Drop(ctx, keys)
}

// Done returns which of the claimed keys have a result on the shared branch already. Another run on this tree may have adopted commits that this one does not know yet.
func (c claimRemote) Done(ctx context.Context, keys []string) (done []string, err error) {
	tip, err := c.s.fetchTip(ctx, false)
	if err != nil {
		return nil, err
	}
	head, err := c.s.git.Head(ctx)
	if err == nil && tip.Head != "" && tip.Head != head.Hash {
		done, err = c.s.Recorded(ctx, tip.Head, keys)
	}
	for _, key := range keys {
		if c.s.hasResult(key) && !slices.Contains(done, key) {
			done = append(done, key)
		}
	}
	return done, err
}

// Guard wraps a performer with the keeper of claims.
func (s *Share) Guard(inner loop.Performer) *claims.Keeper {
	s.keeper = claims.New(claims.Options{Inner: inner, Remote: s.Claims(), For: s.o.Settings.Git.ClaimFor.Std(),
		Grace: s.o.Settings.Runs.Grace.Std(), Retry: s.health.retry})
	return s.keeper
}

// reportClaims passes the claims of other reconcilers to the keeper, if there is one yet.
func (s *Share) reportClaims(tip gitrepo.Tip) error {
	if s.keeper == nil {
		return nil
	}
	me, err := s.holderName()
	var others []claims.Claim
	for _, c := range tip.Claims {
		if c.Holder != me {
			others = append(others, claims.Claim{Key: c.Key, Until: c.Expires})
		}
	}
	s.noteHolds(tip, others)
	s.keeper.Seen(others)
	return err
}

// noteHolds notes what other reconcilers have reserved. A claim that is gone may have a record that is not adopted yet: its
// reservation counts until then.
func (s *Share) noteHolds(tip gitrepo.Tip, others []claims.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserves, s.claimed = tip.Reserves, map[string]bool{}
	for _, c := range others {
		var h budgets.Hold
		if text := tip.Reserved[c.Key]; text != nil && json.Unmarshal(text, &h) == nil && h.Sound() {
			h.Until = c.Until
			s.holds[c.Key], s.claimed[c.Key] = h, true
		}
	}
	if tip.Head == s.adopted {
		s.dropHolds()
	}
}

// dropHolds drops what no one has claimed any more; s.mu is held.
func (s *Share) dropHolds() {
	maps.DeleteFunc(s.holds, func(key string, _ budgets.Hold) bool { return !s.claimed[key] })
}

// Holds implements loop.Share.
func (s *Share) Holds() (all []budgets.Hold, seen int, behind bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.holds)) {
		if h := s.holds[key]; time.Now().Before(h.Until) {
			all = append(all, h)
		}
	}
	return all, s.reserves, s.accounted != s.reserves
}

// sweep releases unneeded claims: expired ones, and those of killed runs on this tree whose results are on the branch.
// Failures are left for the next call.
func (s *Share) sweep(ctx context.Context, head string) {
	me, err := s.holderName()
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
	s.tip.Claims = nil // once for each fetch
	s.mu.Unlock()
	done, err := s.Recorded(ctx, head, own)
	if over = append(over, done...); err != nil || len(over) == 0 {
		return
	}
	if _, err := s.Claims().Take(ctx, over); err == nil {
		_ = s.remote.Drop(ctx, over)
	}
}

// hasResult reports whether the result of an effect is a file of this tree.
func (s *Share) hasResult(key string) bool {
	_, err := s.o.Store.Root().Lstat(s.o.Store.RunPath(key))
	return err == nil
}

// OtherClaims implements loop.Share.
func (s *Share) OtherClaims() map[string]time.Time { return s.keeper.OtherClaims() }
