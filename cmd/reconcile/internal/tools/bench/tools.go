package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// sourceFiles is the size of the tree whose tools are discovered, a tenth as many folders.
const sourceFiles = 50000

// tools: the discovery of a project's tools, again and from the cache, compared with a listing of its files by git.
func (b *bench) tools(ctx context.Context, _ []int) error {
	dir, err := os.MkdirTemp("", "reconcile-bench-tools")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := writeSources(ctx, dir); err != nil {
		return err
	}
	time.Sleep(50 * time.Millisecond) // what has only just changed is not kept
	reconcile := func(args ...string) func() (usage, error) {
		return func() (usage, error) {
			cmd := exec.CommandContext(ctx, b.binary, append([]string{"-C", dir, "tools"}, args...)...)
			cmd.Env = append(environment(), "XDG_CACHE_HOME="+filepath.Join(dir, ".git", "cache"))
			return process(cmd)
		}
	}
	manifest := filepath.Join(dir, "go.mod")
	edits := 0
	discovered := func() (usage, error) {
		edits++ // another time of a manifest; what programs said of their versions stays known
		at := time.Unix(int64(edits), 0)
		if err := os.Chtimes(manifest, at, at); err != nil {
			return usage{}, err
		}
		return reconcile()()
	}
	got, err := alternate(b.runs, discovered, reconcile(), func() (usage, error) {
		return process(gitCommand(ctx, dir, "ls-files", "--cached", "--others", "--exclude-standard"))
	})
	if err != nil {
		return err
	}
	of := fmt.Sprintf("tools: %d files, ", sourceFiles)
	b.row(of+"discovered, beside git ls-files", short(got[0].wall), short(got[2].wall), short(got[0].wall), ms(got[0].wall), 1000, " ms")
	b.row(of+"as kept", short(got[1].wall), short(got[2].wall), short(got[1].wall), ms(got[1].wall), 50, " ms")
	return nil
}

// writeSources writes a project of several languages, in every twentieth folder a package with its own configurations, and commits it.
func writeSources(ctx context.Context, dir string) error {
	write := func(name, text string) error {
		name = filepath.Join(dir, filepath.FromSlash(name))
		return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644))
	}
	err := errors.Join(write("go.mod", "module bench\n\ngo 1.22\n"), write("pyproject.toml", "[tool.ruff]\n"))
	for i := range sourceFiles {
		folder, language := i/10, []string{"go", "py", "ts", "js", "rs"}[i%5]
		if i%200 == 0 {
			for name, text := range map[string]string{"package.json": `{"scripts": {"lint": "eslint ."}, "devDependencies": {"eslint": "9", "vitest": "3"}}`,
				"tsconfig.json": "{}", "eslint.config.js": "export default []\n"} {
				err = errors.Join(err, write(fmt.Sprintf("part%d/sub%d/%s", folder/100, folder, name), text))
			}
		}
		if err = errors.Join(err, write(fmt.Sprintf("part%d/sub%d/f%d.%s", folder/100, folder, i, language), "x\n")); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=bench", "-c", "user.email=bench@example.com", "commit", "-qm", "sources"}} {
		if _, err := process(gitCommand(ctx, dir, args...)); err != nil {
			return err
		}
	}
	return nil
}
