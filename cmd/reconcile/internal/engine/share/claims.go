package share

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/claims"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// holderPath is the file with the name under which a tree claims effects.
const holderPath = ".reconcile/holder"

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

// location distinguishes copies of a tree.
func (s *Share) location() (string, error) {
	dir, err := filepath.Abs(s.o.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(host + "\x00" + dir))
	return hex.EncodeToString(sum[:16]), nil
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

// Done implements claims.Remote. Another run on this tree may have adopted commits that this one does not know yet.
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
