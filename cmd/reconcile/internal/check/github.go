package main

import (
	"context"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github/githubtest"
)

// onGitHub are the packages whose tests speak with an emulator of GitHub.
var onGitHub = []string{"./cmd/reconcile/internal/github/..."}

// githubTests tests what speaks with GitHub, against an emulator that is installed for it. Where that is not possible
// the tests that need no emulator are run, and the step says loudly that it left out the rest.
func githubTests(ctx context.Context, c *checker) result {
	_, err := githubtest.Install(ctx)
	if err != nil && c.ci {
		return failed(fmt.Sprintf("%v; with CI=true that is an error", err))
	}
	if err != nil {
		r := c.goTest(ctx, onGitHub)
		r.excuse = fmt.Sprintf("NOT TESTED AGAINST A GITHUB: %v", err)
		return r
	}
	required := *c
	required.env = append(required.env[:len(required.env):len(required.env)], githubtest.Required+"=required")
	return required.goTest(ctx, onGitHub)
}
