package ops_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
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

// A program of a project that nobody has allowed is not asked for its version, also not by a link from outside; others are, without the
// project's folders on their PATH.
func TestUntrustedIsNotAsked(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir, outside := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	asked := filepath.Join(outside, "asked")
	own := filepath.Join(dir, ".venv", "bin")
	write(filepath.Join(dir, "a.py"), "")
	for _, name := range []string{"mypy.ini", ".flake8", "pytest.ini"} {
		write(filepath.Join(dir, name), "")
	}
	write(filepath.Join(own, "mypy"), "#!/bin/sh\necho own >> "+asked+"\necho mypy 1.0\n")
	write(filepath.Join(own, "helper"), "#!/bin/sh\necho helper >> "+asked+"\n")
	write(filepath.Join(dir, "tools", "pytest"), "#!/bin/sh\necho linked >> "+asked+"\necho pytest 8.0\n")
	write(filepath.Join(outside, "flake8"), "#!/bin/sh\nhelper 2>/dev/null\necho 7.1.0\n")
	if err := os.Symlink(filepath.Join(dir, "tools", "pytest"), filepath.Join(outside, "pytest")); err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string {
		if name == "PATH" {
			return strings.Join([]string{own, outside, os.Getenv("PATH")}, string(filepath.ListSeparator))
		}
		return ""
	}
	env := ops.Env{Tree: tree.Config{Dir: dir, Now: time.Now, Getenv: getenv}, Caller: caller.Caller{Dir: dir, Getenv: getenv}}
	r, err := ops.Tools(t.Context(), env, ops.ToolsRequest{CheckRequest: ops.CheckRequest{Dir: dir}})
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, d := range r.Tools {
		versions[d.Tool] = d.Version
	}
	if versions["flake8"] != "7.1.0" || versions["mypy"] != "" || versions["pytest"] != "" {
		t.Errorf("%q", versions)
	}
	if text, err := os.ReadFile(asked); err == nil {
		t.Errorf("these ran: %s", text)
	}
}
