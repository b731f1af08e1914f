package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
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

// mixedEdit: what runs after an edit costs beyond a run with nothing to do, in a mixed tree and in one of its own; and a commit that is
// all that is left to do.
func (b *bench) mixedEdit(ctx context.Context, _ []int) error {
	const files, few = 50_000, 3
	dir, err := os.MkdirTemp(b.trees, "mixed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	large, own := filepath.Join(dir, "large"), filepath.Join(dir, "own")
	edit := treeEdit{fmt.Sprintf("chain of %d", few), func(tree, tag string) error { return writeChain(tree, "few", few, tag) }}
	if err := b.settledTree(ctx, own, 0, []treeEdit{edit}); err != nil {
		return err
	}
	err = newMixed(large, files, b.seed).write()
	if err == nil {
		err = writeFile(filepath.Join(large, "specs", "session.yaml"),
			"apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: one}\nspec: {title: one}\n")
	}
	if err == nil {
		err = edit.edit(large, "first")
	}
	for range 2 {
		if err == nil {
			_, err = process(b.reconcile(ctx, large), 4)
		}
	}
	if err != nil {
		return err
	}
	among := fmt.Sprintf("%d mixed files, seed %d", files, b.seed)
	if err := b.besideOwn(ctx, edit, among, large, own); err != nil {
		return err
	}
	return b.commitLeft(ctx, large, among, edit)
}

// firstRuns: the first run over a mixed tree, by the CPU time for each file.
func (b *bench) firstRuns(ctx context.Context, dir string, sizes []int) error {
	var first float64
	for i, n := range sizes {
		u, each, err := b.firstRun(ctx, dir, n)
		if err != nil {
			return err
		}
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

// firstRun makes a mixed tree of n files in dir and runs it. each is the CPU time for a file in microseconds.
func (b *bench) firstRun(ctx context.Context, dir string, n int) (u usage, each float64, err error) {
	tree := filepath.Join(dir, "mixed-"+strconv.Itoa(n))
	if err := newMixed(tree, n, b.seed).write(); err != nil {
		return usage{}, 0, err
	}
	u, err = process(b.reconcile(ctx, tree), 4)
	return u, float64(u.cpu.Microseconds()) / float64(n), err
}

// busy: the first run over a large mixed tree while other processes take the processors. It has to end at the first try.
func (b *bench) busy(ctx context.Context, _ []int) error {
	const few, many, others = 10_000, 50_000, 8
	dir, err := os.MkdirTemp(b.trees, "busy")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	_, alone, err := b.firstRun(ctx, dir, few)
	if err != nil {
		return err
	}
	for range others {
		cmd := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() {
			_ = cmd.Process.Kill() // it has ended only if the context has
			_ = cmd.Wait()
		}()
	}
	u, each, err := b.firstRun(ctx, dir, many)
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("first run, %d mixed files beside %d busy processes, CPU each, beside %d alone", many, others, few),
		fmt.Sprintf("%.0f µs in %s", each, short(u.wall)), fmt.Sprintf("%.0f µs", alone), fmt.Sprintf("%.2f", each/alone), each/alone, 2.5, "")
	return nil
}
