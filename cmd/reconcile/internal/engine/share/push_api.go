package share

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/schemas"
)

// viaGit is the value of git.via for git push; with the other value GitHub makes the commits.
const viaGit = "git"

// openAPI returns the client with which GitHub makes and signs commits on behalf of the token, where git may not push.
// nil: no client is available, and none is required.
func openAPI(o Options) (*github.Client, error) {
	asked := o.Settings.Git.Via != viaGit
	repo := cmp.Or(o.Settings.GitHub.Repo, o.Egress.Getenv("GITHUB_REPOSITORY"))
	switch {
	case o.Egress.GitHubToken() != "" && repo != "":
		client, err := o.Egress.GitHub(o.Dir, &o.Settings.GitHub, repo, nil)
		if err != nil && asked {
			return nil, fmt.Errorf("%s: git.via: %s: %w; nothing was run", schemas.SettingsPath, o.Settings.Git.Via, err)
		}
		return client, nil
	case asked && repo == "":
		return nil, fmt.Errorf("%s: git.via: %s needs github.repo: the repository that makes the commits; nothing was run",
			schemas.SettingsPath, o.Settings.Git.Via)
	case asked:
		return nil, fmt.Errorf("%s: git.via: %s needs %s: a token that may write contents; nothing was run", schemas.SettingsPath,
			o.Settings.Git.Via, egress.TokenVariable)
	}
	return nil, nil
}

// pushCommit pushes a commit to the remote. again says that the branch is at another commit: one of others, or the one
// that GitHub made instead of ours. Both must be adopted.
func (s *Share) pushCommit(ctx context.Context, commit string) (sent, again bool, err error) {
	if s.o.Settings.Git.Via == viaGit {
		err = s.remote.Push(ctx, commit)
		s.health.observe(writing, err)
		switch {
		case errors.Is(err, gitrepo.ErrRefused):
			return false, true, nil
		case err == nil:
			return true, false, nil
		case s.api == nil || !errors.Is(err, gitrepo.ErrProtected):
			return false, false, fmt.Errorf("push: %w; %s", err, loop.CommittedHere)
		}
	}
	refused := err
	switch sent, err = s.commitByAPI(ctx, commit); {
	case err == nil:
		return sent, true, nil
	case refused != nil:
		return false, false, fmt.Errorf("push: %v; and by GitHub's API: %w; %s", refused, err, loop.CommittedHere)
	}
	return false, false, fmt.Errorf("commit by GitHub's API: %w; %s", err, loop.CommittedHere)
}

// commitByAPI lets GitHub make a commit with the same files and message. Without an error the branch must be fetched,
// whether the commit was made, possibly made, or another push came first: GitHub refuses a second commit on the same
// base.
func (s *Share) commitByAPI(ctx context.Context, commit string) (made bool, err error) {
	s.mu.Lock()
	tip := s.tip
	s.mu.Unlock()
	p, err := s.remote.Patch(ctx, tip, commit)
	if errors.Is(err, gitrepo.ErrRefused) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	k := github.CommitOnBranch{Branch: p.Branch, Head: p.Base, Headline: p.Headline, Body: p.Body, Delete: p.Delete}
	for _, f := range p.Write {
		k.Write = append(k.Write, github.File{Path: f.Path, Content: f.Data})
	}
	oid, err := s.api.CommitOnBranch(ctx, k)
	var moved *github.HeadMoved
	var uncertain *github.Uncertain
	switch {
	case errors.As(err, &moved), errors.As(err, &uncertain):
		return false, nil
	case github.Later(err):
		return false, fmt.Errorf("%w: %v", gitrepo.ErrUnreachable, err)
	case err != nil:
		return false, err
	}
	s.mu.Lock()
	s.replacedBy[commit] = oid
	s.mu.Unlock()
	return true, nil
}

// isOurs reports whether a tip is the commit that GitHub made instead of our base commit, so that it contains nothing
// of others; s.mu is held.
func (s *Share) isOurs(tip gitrepo.Tip) bool {
	return tip.Head != "" && s.replacedBy[s.base] == tip.Head && len(tip.Pending) == 0
}

// RemoteHash returns the hash that replaced a commit on the remote branch; GitHub may have made another commit there.
// s may be nil.
func (s *Share) RemoteHash(commit string) string {
	if s == nil {
		return commit
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.replacedBy[commit], commit)
}
