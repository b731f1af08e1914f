package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// fts: search compared with SQLite's FTS5, by the program in the folder fts. That is a separate module, so SQLite is not a
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
