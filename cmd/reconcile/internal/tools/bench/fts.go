package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// fts: search beside SQLite's FTS5, which the program in the folder fts does. That is a module of its own, so SQLite is no
// dependency of this one; the first run downloads it.
func (b *bench) fts(ctx context.Context, _ []int) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "reconcile.dev/reconcile").Output()
	if err != nil {
		return fmt.Errorf("find the folder of this module: %w", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), "cmd", "reconcile", "internal", "tools", "bench", "fts")
	cmd := exec.CommandContext(ctx, "go", "run", ".")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, b.out, os.Stderr
	fmt.Fprintln(b.out)
	return cmd.Run()
}
