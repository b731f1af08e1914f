package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// pipelines: what a step of a pipeline costs of its own, where ten run at once in one session, with an agent and tools that do next to nothing. All
// is compared with the same agents without a pipeline.
func (b *bench) pipelines(ctx context.Context, _ []int) error {
	const many = 10
	const steps = 2*many + 2*(many-1) // each change is inspected and tested, and once more when it lands on a branch that has moved: all but the first
	dir, err := os.MkdirTemp(b.trees, "pipelines")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	programs := filepath.Join(dir, "programs")
	if err := smallTools(programs); err != nil {
		return err
	}
	runs := 0
	run := func(session string) func() (usage, error) {
		return func() (u usage, err error) {
			runs++
			at := filepath.Join(dir, fmt.Sprint("tree", runs))
			if err := pipelineTree(ctx, at, session, many); err != nil {
				return u, err
			}
			cmd := b.reconcile(ctx, at)
			cmd.Env = append(cmd.Env, "PATH="+programs, "HOME="+filepath.Join(dir, "home"))
			if u, err = process(cmd); err != nil {
				return u, err
			}
			out, err := gitCommand(ctx, at, "rev-list", "--count", "HEAD").Output()
			if landed := strings.TrimSpace(string(out)); err == nil && landed != fmt.Sprint(1+many) {
				err = fmt.Errorf("%s commits in place of %d", landed, 1+many)
			}
			return u, err
		}
	}
	got, err := alternate(max(1, b.runs/2), run("pipeline: {}"), run("description: none"))
	if err != nil {
		return err
	}
	each := (got[0].cpu - got[1].cpu) / time.Duration(steps)
	b.row(fmt.Sprintf("%d pipelines at once, CPU of a step", many), short(got[0].cpu), short(got[1].cpu), trim(ms(each))+" ms", ms(each), 50, " ms")
	return nil
}

// smallTools makes a folder, for a PATH, with the programs that the pipelines need, and tools that find nothing but a planted fault.
func smallTools(dir string) error {
	for name, text := range map[string]string{
		"flake8": "case \"$PWD\" in *reconcile-control-*) echo \"./a.py:1:1: F401 'os' imported but unused\"; exit 1 ;; esac\n",
		"pytest": "for a; do case $a in --junitxml=*) echo '<testsuite tests=\"1\"><testcase classname=\"test_a\" name=\"test_a\" file=\"test_a.py\"/></testsuite>' > \"${a#*=}\" ;; esac; done\n",
		"small":  "echo \"$RECONCILE_NODE = 1\" > \"$RECONCILE_NODE.py\"\necho done\n",
	} {
		if err := writeFile(filepath.Join(dir, name), "#!/bin/sh\n"+text); err != nil {
			return err
		}
		if err := os.Chmod(filepath.Join(dir, name), 0o777); err != nil {
			return err
		}
	}
	for _, name := range []string{"git", "sh", "bwrap"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, name))
		}
		if err != nil && name != "bwrap" { // Landlock confines where it is missing
			return err
		}
	}
	return nil
}

// pipelineTree makes a tree in a new folder with a DAG of agents, each of which writes a file, and a test that is related to all.
func pipelineTree(ctx context.Context, dir, session string, many int) error {
	const header = "apiVersion: reconcile.dev/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: "
	var nodes, imports strings.Builder
	for i := range many {
		fmt.Fprintf(&nodes, "{name: p%d, agent: coder, prompt: Do it.}, ", i)
		fmt.Fprintf(&imports, "import p%d\n", i)
	}
	files := map[string]string{
		"reconcile.yaml":     fmt.Sprintf(header+"{limits: {concurrentTasks: %d}}\n", "Settings", "settings", many),
		"specs/session.yaml": fmt.Sprintf(header+"{title: one, %s}\n", "Session", "one", session),
		"specs/agent.yaml":   fmt.Sprintf(header+"{role: engineer, concurrency: %d, workspace: clone, runner: {command: {argv: [small]}}}\n", "Agent", "coder", many),
		"specs/dag.yaml":     fmt.Sprintf(header+"{session: one, nodes: [%s]}\n", "DAG", "many", nodes.String()),
		".gitignore":         "state/\n.reconcile/\n", ".flake8": "", "pytest.ini": "", "test_a.py": imports.String(),
	}
	for name, content := range files {
		if err := writeFile(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	return commitAll(ctx, dir)
}
