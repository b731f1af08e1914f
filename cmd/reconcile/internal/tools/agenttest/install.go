// Package agenttest installs real coding agents for tests, which run only where they are asked for.
package agenttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"reconcile.dev/reconcile/state/filelock"
)

// Wanted names the variable that asks for the tests: it is the list of the folders with the agents' programs, as in PATH.
const Wanted = "RECONCILE_REAL_AGENTS"

// agent is a coding agent in the versions that the tests were made with.
type agent struct {
	Name     string
	Packages []string // of npm, with their versions; {platform} is that of this machine
	// Program is where the program is below node_modules. One in JavaScript is run by the node that is installed with it.
	Program string
}

// node runs agents that are written in JavaScript: some need a newer one than machines have.
const node = "node-{platform}@22.23.3"

// agents are all agents that can be installed.
var agents = []agent{
	{"claude", []string{"@anthropic-ai/claude-code@2.1.332"}, "@anthropic-ai/claude-code-{platform}/claude"},
	{"codex", []string{"@openai/codex@0.171.0"}, "@openai/codex-{platform}/vendor/*/bin/codex"},
	{"copilot", []string{"@github/copilot@1.0.102"}, "@github/copilot-{platform}/copilot"},
	{"opencode", []string{"opencode-ai@1.18.33"}, "opencode-{platform}/bin/opencode"},
	{"gemini", []string{"@google/gemini-cli@0.61.0", node}, "@google/gemini-cli/bundle/gemini.js"},
	{"qwen", []string{"@qwen-code/qwen-code@0.24.4", node}, "@qwen-code/qwen-code/cli-entry.js"},
	{"claude-agent-acp", []string{"@agentclientprotocol/claude-agent-acp@0.101.0", node}, "@agentclientprotocol/claude-agent-acp/dist/index.js"},
	{"codex-acp", []string{"@agentclientprotocol/codex-acp@2.6.0", node}, "@agentclientprotocol/codex-acp/dist/index.js"},
}

// Install installs the agents that are not there yet in a folder of the user's cache, and returns the folders of their programs as a
// list, as in PATH. It needs npm, and runs no script of a package. One process installs at a time; existing folders are complete.
// It says on log what takes its time.
func Install(ctx context.Context, log io.Writer) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("where to install coding agents: %w", err)
	}
	root := filepath.Join(cache, "reconcile", "agents")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(root, "lock"), log)
	if err != nil {
		return "", err
	}
	defer unlock()
	var folders []string
	for _, a := range agents {
		dir := filepath.Join(root, a.folder())
		if err := a.install(ctx, dir, log); err != nil {
			return "", err
		}
		folders = append(folders, filepath.Join(dir, "bin"))
	}
	return strings.Join(folders, string(filepath.ListSeparator)), nil
}

// lock keeps other processes from installing.
func lock(name string, log io.Writer) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	l, err := filelock.Try(f)
	if l == nil && err == nil {
		fmt.Fprintf(log, "waiting for another process that installs coding agents (it has locked %s)\n", name)
		l, err = filelock.Wait(f)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return func() {
		_ = l.Unlock() // closing does it, too
		f.Close()
	}, nil
}

// folder is the name of the agent's folder, after its packages.
func (a agent) folder() string {
	return a.Name + "-" + a.Packages[0][strings.LastIndexByte(a.Packages[0], '@')+1:]
}

// install makes the agent's folder, unless it is there. It gets its name when it is complete.
func (a agent) install(ctx context.Context, dir string, log io.Writer) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	fmt.Fprintf(log, "installing %s with npm\n", a.Packages[0])
	if err := a.npm(ctx, part); err != nil {
		return err
	}
	if err := a.link(part); err != nil {
		return err
	}
	return os.Rename(part, dir)
}

// npm installs the agent's packages below dir.
func (a agent) npm(ctx context.Context, dir string) error {
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%s is needed to install coding agents with npm: install Node.js, then run the step again (%w)", name, err)
		}
	}
	args := []string{"install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund"}
	for _, p := range a.Packages {
		args = append(args, onPlatform(p))
	}
	out, err := exec.CommandContext(ctx, "npm", args...).CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("npm install %s: %w", a.Packages[0], context.Cause(ctx))
	case err != nil && unreachable.Match(out):
		return fmt.Errorf("the registry of npm cannot be reached, so %s cannot be installed: look at the network and at \"npm config get registry\"\n%s", a.Packages[0], out)
	case err != nil:
		return fmt.Errorf("npm install %s: %w\n%s", a.Packages[0], err, out)
	}
	return nil
}

// unreachable matches what npm says where it has no connection.
var unreachable = regexp.MustCompile(`ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT`)

// link makes the folder bin below dir, with the agent's program under its name.
func (a agent) link(dir string) error {
	found, err := filepath.Glob(filepath.Join(dir, "node_modules", filepath.FromSlash(onPlatform(a.Program))))
	if err != nil || len(found) != 1 {
		return errors.Join(err, fmt.Errorf("%s has no program for %s/%s", a.Packages[0], runtime.GOOS, runtime.GOARCH))
	}
	rel, err := filepath.Rel(dir, found[0])
	if err != nil {
		return err
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	program := filepath.Join(bin, a.Name)
	if filepath.Ext(rel) != ".js" {
		return os.Symlink(filepath.Join("..", rel), program)
	}
	script := fmt.Sprintf("#!/bin/sh\nd=$(dirname \"$0\")/..\nexec \"$d/node_modules/%s/bin/node\" \"$d/%s\" \"$@\"\n", onPlatform("node-{platform}"), rel)
	return os.WriteFile(program, []byte(script), 0o755)
}

// onPlatform names this machine as npm does.
func onPlatform(s string) string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return strings.ReplaceAll(s, "{platform}", runtime.GOOS+"-"+arch)
}
