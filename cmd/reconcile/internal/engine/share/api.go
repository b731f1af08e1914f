package share

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/schemas"
)

// viaGit is the way of git.via that pushes; the other one has GitHub make commits.
const viaGit = "git"

// openAPI returns who makes commits where git may not push them: GitHub, which signs them, on behalf of the token. nil:
// there is nobody, and none is asked for.
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

// send brings a commit to the remote. again says that the branch is at another commit: somebody's, or the one that GitHub
// made in the place of ours. Both are to be adopted.
func (s *Share) send(ctx context.Context, commit string) (sent, again bool, err error) {
	const kept = "what was recorded is committed here, and the next run pushes it"
	if s.o.Settings.Git.Via == viaGit {
		err = s.remote.Push(ctx, commit)
		s.health.observe(writing, err)
		switch {
		case errors.Is(err, gitrepo.ErrRefused):
			return false, true, nil
		case err == nil:
			return true, false, nil
		case s.api == nil || !errors.Is(err, gitrepo.ErrProtected):
			return false, false, fmt.Errorf("push: %w; %s", err, kept)
		}
	}
	refused := err
	switch sent, err = s.make(ctx, commit); {
	case err == nil:
		return sent, true, nil
	case refused != nil:
		return false, false, fmt.Errorf("push: %v; and by GitHub's API: %w; %s", refused, err, kept)
	}
	return false, false, fmt.Errorf("commit by GitHub's API: %w; %s", err, kept)
}

// make has GitHub make a commit with the same files and message. Without an error the branch is worth a look, whether it
// was made, perhaps made, or somebody was first: what is made twice GitHub refuses, since its base is gone.
func (s *Share) make(ctx context.Context, commit string) (made bool, err error) {
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
	s.made[commit] = oid
	s.mu.Unlock()
	return true, nil
}

// isOurs reports whether a tip is the commit that GitHub made in the place of the one that this run knows the branch at, so
// that nothing in it is of others; s.mu is held.
func (s *Share) isOurs(tip gitrepo.Tip) bool {
	return tip.Head != "" && s.made[s.base] == tip.Head && len(tip.Pending) == 0
}

// Known is the name of a commit on the branch: where GitHub made it, another one than it had here. s may be nil.
func (s *Share) Known(commit string) string {
	if s == nil {
		return commit
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.made[commit], commit)
}
