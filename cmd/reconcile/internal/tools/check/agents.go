package main

import (
	"context"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/agenttest"
)

// onAgents runs the scripts with real coding agents, which it installs. If the installation fails, the step fails.
func onAgents(ctx context.Context, c *checker) result {
	folders, err := agenttest.Install(ctx, c.out)
	if err != nil {
		return failed(err.Error())
	}
	wanted := *c
	wanted.env = append(c.env[:len(c.env):len(c.env)], agenttest.Wanted+"="+folders)
	return wanted.goTest(ctx, []string{"-count=1", "-run", "TestScripts/real_(team|agents|health|lost)$", "-timeout=20m", scriptsPackage})
}

// skip represents a step that was not named.
func skip(s step) func(context.Context, *checker) result {
	return func(ctx context.Context, c *checker) result {
		if s.inCI && c.ci {
			return s.run(ctx, c)
		}
		return excused("not asked for; go run ./cmd/reconcile/internal/tools/check " + s.name)
	}
}
