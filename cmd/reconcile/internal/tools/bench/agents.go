package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/workspaces"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// team is a tree with nodes for agents: node i is for agent i % agents, and all of them print one line after a while.
type team struct {
	nodes, agents int
	workspace     string // one of the schemas.Workspace constants
	sandbox       string // one of the schemas.Sandbox constants; "": none is asked for
	takes         string // seconds
}

// write makes the tree in a new folder, which is a git work tree with one commit.
func (t team) write(ctx context.Context, dir string) error {
	files := map[string]string{
		"specs/session.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: one}\nspec: {title: one}\n",
		"reconcile.yaml":     fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {limits: {concurrentTasks: %d}}\n", t.agents),
		".gitignore":         "state/\n.reconcile/\n",
	}
	var spec strings.Builder
	spec.WriteString("apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: many}\nspec:\n  session: one\n  nodes:\n")
	for i := range t.nodes {
		fmt.Fprintf(&spec, "    - {name: n%d, agent: a%d, prompt: Do it.}\n", i, i%t.agents)
	}
	files["specs/dag.yaml"] = spec.String()
	confined := ""
	if t.sandbox != "" {
		confined = "sandbox: {level: " + t.sandbox + "}, "
	}
	for i := range t.agents {
		files[fmt.Sprintf("specs/agents/a%d.yaml", i)] = fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {name: a%d}\n"+
			"spec: {workspace: %s, %srunner: {command: {argv: [sh, -c, %q]}}}\n", i, t.workspace, confined, t.script())
	}
	for name, content := range files {
		if err := writeFile(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	return commitAll(ctx, dir)
}

// script is what the agents do: in a workspace they make a file of their node as well, so that there is a commit to land.
func (t team) script() string {
	text := "cat > /dev/null; sleep " + t.takes + "; echo done"
	if t.workspace != schemas.WorkspaceInPlace {
		text += " | tee ${RECONCILE_NODE:-/dev/null}"
	}
	return text
}

// commitAll makes a folder a git work tree with one commit of everything.
func commitAll(ctx context.Context, dir string) error {
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-qm", "bench"}} {
		if out, err := gitCommand(ctx, dir, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
	}
	return nil
}

// agents: the memory of reconcile while agents work, its time for each of their nodes, and that of their workspaces.
func (b *bench) agents(ctx context.Context, _ []int) error {
	dir, err := os.MkdirTemp("", "reconcile-bench-agents")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := b.agentMemory(ctx, filepath.Join(dir, "memory")); err != nil {
		return err
	}
	if err := b.agentOverhead(ctx, filepath.Join(dir, "overhead")); err != nil {
		return err
	}
	return b.workspaceTime(ctx, filepath.Join(dir, "workspace"))
}

// teamRun is a run of a team, whose workspaces lie below state.
func (b *bench) teamRun(ctx context.Context, dir, state string) *exec.Cmd {
	cmd := b.reconcile(ctx, dir)
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+state)
	return cmd
}

func (b *bench) agentMemory(ctx context.Context, dir string) error {
	t := team{nodes: 20, agents: 20, workspace: schemas.WorkspaceClone, takes: "2"}
	tree := filepath.Join(dir, "tree")
	if err := t.write(ctx, tree); err != nil {
		return err
	}
	peak, err := peakApart(ctx, b.teamRun(ctx, tree, filepath.Join(dir, "state")))
	if err != nil {
		return err
	}
	mb := float64(peak) / 1e6
	b.row("agents: memory with 20 at once, in workspaces", fmt.Sprintf("%.0f MB", mb), "", fmt.Sprintf("%.0f", mb), mb, 150, " MB")
	return nil
}

// agentOverhead compares nodes of one agent, one after the other, with the agent's program run as often by a shell.
func (b *bench) agentOverhead(ctx context.Context, dir string) error {
	type place struct{ kind, sandbox string }
	for _, at := range []place{{schemas.WorkspaceInPlace, ""}, {schemas.WorkspaceInPlace, schemas.SandboxLandlock},
		{schemas.WorkspaceInPlace, schemas.SandboxBwrap}, {schemas.WorkspaceClone, ""}} {
		kind := at.kind
		if _, err := exec.LookPath("bwrap"); at.sandbox == schemas.SandboxBwrap && err != nil || at.sandbox != "" && runtime.GOOS != "linux" {
			continue
		}
		t, run := team{nodes: 20, agents: 1, workspace: kind, sandbox: at.sandbox, takes: "0"}, 0
		got, err := alternate(max(3, b.runs/2),
			func() (usage, error) {
				run++
				at := filepath.Join(dir, fmt.Sprint(kind, at.sandbox, run))
				if err := t.write(ctx, at); err != nil {
					return usage{}, err
				}
				return process(b.teamRun(ctx, at, filepath.Join(dir, "state")))
			},
			func() (usage, error) {
				line := "i=0; while [ $i -lt " + fmt.Sprint(t.nodes) + " ]; do sh -c '" + t.script() + "' < /dev/null; i=$((i+1)); done"
				return process(exec.CommandContext(ctx, "sh", "-c", line))
			})
		if err != nil {
			return err
		}
		each := (got[0].wall - got[1].wall) / time.Duration(t.nodes)
		bound := 25.0
		if kind != schemas.WorkspaceInPlace {
			bound = 0 // that of the workspace comes to it, and of its commit
		}
		if at.sandbox != "" {
			kind += ", sandbox " + at.sandbox
		}
		cpu := (got[0].cpu - got[1].cpu) / time.Duration(t.nodes)
		b.row("agents: CPU of a node, "+kind, short(got[0].cpu), short(got[1].cpu), trim(ms(cpu))+" ms", ms(cpu), 25, " ms")
		b.row("agents: overhead of a node, "+kind, short(got[0].wall), short(got[1].wall), trim(ms(each))+" ms", ms(each), bound, " ms")
	}
	return nil
}

// workspaceTime compares making a workspace of a repository with 10,000 files with git clone --shared.
func (b *bench) workspaceTime(ctx context.Context, dir string) error {
	const files = 10000
	tree, run := filepath.Join(dir, "tree"), 0
	for i := range files {
		name := filepath.Join(tree, fmt.Sprintf("src/d%d/f%d.txt", i/100, i))
		if err := writeFile(name, strings.Repeat(fmt.Sprintf("line of file %d\n", i), 40)); err != nil {
			return err
		}
	}
	if err := commitAll(ctx, tree); err != nil {
		return err
	}
	settings := new(schemas.SettingsSpec)
	settings.Default()
	m, err := workspaces.New(workspaces.Options{Dir: tree, Settings: settings, Now: time.Now, Getenv: func(name string) string {
		return map[string]string{"XDG_STATE_HOME": filepath.Join(dir, "state"), "HOME": dir}[name]
	}})
	if err != nil {
		return err
	}
	got, err := alternate(b.runs,
		func() (usage, error) {
			run++
			return openWorkspace(ctx, m, run)
		},
		func() (usage, error) {
			return process(gitCommand(ctx, dir, "clone", "-q", "--shared", tree, filepath.Join(dir, fmt.Sprint("clone", run))))
		})
	if err != nil {
		return err
	}
	b.ratio(fmt.Sprintf("agents: workspace of %d files, beside git clone --shared", files), got[0].wall, got[1].wall, 1.2)
	return nil
}

// openWorkspace makes a new workspace, and measures how long that takes.
func openWorkspace(ctx context.Context, m *workspaces.Manager, i int) (usage, error) {
	attempts := fmt.Sprintf("dags/d/n%d-0123456789abcdef-", i)
	e := settle.Effect{Key: attempts + "1", Owner: schemas.Ref{Kind: "DAG", Name: "d"}, Node: fmt.Sprint("n", i), Agent: "coder"}
	start := time.Now()
	w, why, err := m.Open(ctx, runner.WorkspaceRequest{Effect: e, Task: &settle.Command{Workspace: &settle.Workspace{
		Kind: schemas.WorkspaceClone, Declared: true, Branch: fmt.Sprint("reconcile/s/d/n", i), Spec: "src/d0/f0.txt", Attempts: attempts}}})
	u := usage{wall: time.Since(start)}
	if err == nil && w == nil {
		err = fmt.Errorf("no workspace: %s", why)
	}
	if err != nil {
		return u, err
	}
	return u, w.Close()
}
