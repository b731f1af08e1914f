package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// scale: what a large tree costs that a small one does not.
func (b *bench) scale(ctx context.Context, sizes []int) error {
	dir, err := os.MkdirTemp(b.trees, "scale")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return b.firstRuns(ctx, dir, sizes)
}

// firstRuns: the first run over a mixed tree, by the CPU time for each file.
func (b *bench) firstRuns(ctx context.Context, dir string, sizes []int) error {
	var first float64
	for i, n := range sizes {
		tree := filepath.Join(dir, "mixed-"+strconv.Itoa(n))
		if err := newMixed(tree, n, b.seed).write(); err != nil {
			return err
		}
		u, err := process(b.reconcile(ctx, tree), 4)
		if err != nil {
			return err
		}
		each := float64(u.cpu.Microseconds()) / float64(n)
		b.row(fmt.Sprintf("first run, %d mixed files, CPU each", n), fmt.Sprintf("%.0f µs", each), "", short(u.wall), each, 0, "")
		if first == 0 {
			first = each
		}
		if i > 0 {
			b.row(fmt.Sprintf("first run, growth of the cost each from %d to %d", sizes[0], n), "", "",
				fmt.Sprintf("%.2f", each/first), each/first, 2.5, "")
		}
	}
	return nil
}
