package ops_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
)

func linterOf(t *testing.T, env ops.Env) tools.Discovered {
	t.Helper()
	r, err := ops.Tools(t.Context(), env, ops.ToolsRequest{CheckRequest: ops.CheckRequest{Dir: env.Tree.Dir}, Categories: []checks.Category{checks.Linter}, Language: "python"})
	if err != nil || len(r.Tools) > 1 {
		t.Fatal(r, err)
	}
	if len(r.Tools) == 0 {
		return tools.Discovered{}
	}
	return r.Tools[0]
}

// A person's choice wins over an agent's, whichever comes later, and an agent's over nothing.
func TestChooseTool(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	env := open(t)
	if err := os.WriteFile(filepath.Join(env.Tree.Dir, "a.py"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	choose := func(env ops.Env, tool string) error {
		_, err := ops.ChooseTool(t.Context(), env, ops.ChooseToolRequest{Category: checks.Linter, Language: "python", Tool: tool})
		return err
	}
	if was := linterOf(t, env); was.Tool != "" {
		t.Fatal(was)
	}
	for _, step := range []struct {
		env        ops.Env
		tool, want string
		confidence tools.Confidence
		tier       int
	}{
		{inRun(env, "engineer"), "pylint", "pylint", tools.Medium, 2},
		{env, "flake8", "flake8", tools.High, 3},
		{inRun(env, "engineer"), "ruff", "flake8", tools.High, 3},
	} {
		if err := choose(step.env, step.tool); err != nil {
			t.Fatal(err)
		}
		if got := linterOf(t, env); got.Tool != step.want || got.Confidence != step.confidence || got.Tier != step.tier {
			t.Errorf("after %s: %s %s, tier %d: %s", step.tool, got.Tool, got.Confidence, got.Tier, got.Why)
		}
	}
	badRequest(t, choose(env, "ruf"), `did you mean "ruff"?`)
	all, err := ops.ToolOptions(t.Context(), env, env.Tree.Dir, ops.ChooseToolRequest{Category: checks.Linter, Language: "python"})
	if err != nil || len(all) < 3 || !all[0].Recommended {
		t.Error(all, err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.ChooseTool(ctx, env, ops.ChooseToolRequest{Category: checks.Linter, Language: "python", Tool: "ruff"})
		return err
	})
}
