package main

import (
	"context"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
)

// githubPackages are those whose tests mostly exercise GitHub.
var githubPackages = []string{"./cmd/reconcile/internal/github/...", "./cmd/reconcile/internal/engine/mirroring/...",
	"./cmd/reconcile/internal/tools/githubtest"}

// onGitHub makes a step of tests that need an emulator of GitHub, which it installs; args are those of go test. If that is not
// possible, the step runs the other tests, and reports the omitted ones prominently.
func onGitHub(args ...string) func(context.Context, *checker) result {
	return func(ctx context.Context, c *checker) result {
		_, missing := githubtest.Install(ctx)
		required := *c
		if missing == nil {
			required.env = append(required.env[:len(required.env):len(required.env)], githubtest.Required+"=required")
		}
		r := required.goTest(ctx, args)
		switch {
		case missing != nil && c.ci:
			r.failed++
			r.text += fmt.Sprintf("%v; with CI=true that is an error\n", missing)
		case missing != nil:
			r.excuse = fmt.Sprintf("NOT TESTED AGAINST A GITHUB: %v", missing)
		}
		return r
	}
}
