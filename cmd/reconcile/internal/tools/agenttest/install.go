// Package agenttest installs a real coding agent for tests, which run only where they are asked for.
package agenttest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Wanted names the variable that asks for the tests: it is the folder with the agent's program.
const Wanted = "RECONCILE_REAL_AGENTS"

// claude is the package that the tests were made with.
const claude = "@anthropic-ai/claude-code@2.1.329"

// Install installs Claude Code in a folder of the user's cache, unless it is there, and returns the folder of its program. It needs
// npm, and runs no script of a package.
func Install(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("where to install coding agents: %w", err)
	}
	root := filepath.Join(cache, "reconcile", "agenttest-2.1.329")
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	folder := filepath.Join(root, "node_modules", "@anthropic-ai", "claude-code-"+runtime.GOOS+"-"+arch)
	program := filepath.Join(folder, "claude")
	if _, err := os.Stat(program); err == nil {
		return folder, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("npm is needed to install Claude Code: %w", err)
	}
	cmd := exec.CommandContext(ctx, npm, "install", "--prefix", root, "--ignore-scripts", "--no-audit", "--no-fund", claude)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install %s: %w\n%s", claude, err, out)
	}
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("%s has no program for this machine: %w", claude, err)
	}
	return folder, nil
}
