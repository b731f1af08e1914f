package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// besides: a change of the program, compared with another binary of it (-beside), on large trees: a first run, a run after
// an edit, and a run that has to read everything.
func (b *bench) besides(ctx context.Context, _ []int) error {
	if b.beside == "" {
		return nil
	}
	const dags, nodes = 10_000, 3
	dir, err := os.MkdirTemp("", "reconcile-bench-beside")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binaries := []string{b.binary, b.beside}
	trees := []string{filepath.Join(dir, "ours"), filepath.Join(dir, "theirs")}
	var first [2]usage
	var edited [2]func() (usage, error)
	for i, at := range trees {
		if err := manyDAGs(at, dags, nodes); err != nil {
			return err
		}
		run := func() (usage, error) {
			cmd := exec.CommandContext(ctx, binaries[i], "-C", at, "--quiet")
			cmd.Env = environment()
			return process(cmd)
		}
		var err error
		if first[i], err = run(); err != nil {
			return err
		}
		edits := 0
		edited[i] = func() (usage, error) {
			edits++
			err := writeFile(filepath.Join(at, "specs", "d0.yaml"), manyDAG(0, nodes, fmt.Sprintf("edit %d", edits)))
			if err != nil {
				return usage{}, err
			}
			return run()
		}
	}
	var next [2]usage // reads the result of the first run
	for i := range next {
		var err error
		if next[i], err = edited[i](); err != nil {
			return err
		}
	}
	edit, err := alternate(max(1, b.runs/2), edited[:]...)
	if err != nil {
		return err
	}
	got, err := alternate(b.runs, b.afterForgetting(ctx, binaries[0], trees[0]), b.afterForgetting(ctx, binaries[1], trees[1]))
	if err != nil {
		return err
	}
	cold := [2]usage(got)
	memory := func(what string, u [2]usage, bound float64) {
		r := float64(u[0].peak) / float64(u[1].peak)
		b.row(what+": memory, beside the other binary", mib(u[0].peak), mib(u[1].peak), fmt.Sprintf("%.2f", r), r, bound, "")
	}
	what := fmt.Sprintf("first run, %d DAGs of %d nodes", dags, nodes)
	b.ratio(what+": CPU, beside the other binary", first[0].cpu, first[1].cpu, 1.1)
	memory(what, first, 0.55)
	b.ratio("one edit after the first run: CPU, beside the other binary", next[0].cpu, next[1].cpu, 0.2)
	b.ratio("one edit: CPU, beside the other binary", edit[0].cpu, edit[1].cpu, 0.2)
	memory("one edit", [2]usage(edit), 0.5)
	b.ratio(fmt.Sprintf("cold load, %d records: CPU, beside the other binary", dags*nodes), cold[0].cpu, cold[1].cpu, 0.55)
	return nil
}

// afterForgetting looks at a tree without its cache. It decides nothing: nothing is there to decide.
func (b *bench) afterForgetting(ctx context.Context, binary, dir string) func() (usage, error) {
	return func() (usage, error) {
		if err := os.RemoveAll(filepath.Join(dir, ".reconcile", "cache")); err != nil {
			return usage{}, err
		}
		cmd := exec.CommandContext(ctx, binary, "-C", dir, "get", "session/one")
		cmd.Env = environment()
		return process(cmd)
	}
}

// manyDAGs makes a tree of many small DAGs.
func manyDAGs(dir string, dags, nodes int) error {
	err := writeFile(filepath.Join(dir, "specs", "session.yaml"),
		"apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: one}\nspec: {title: one}\n")
	if err == nil {
		err = writeFile(filepath.Join(dir, "reconcile.yaml"), "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {}\n")
	}
	for i := 0; i < dags && err == nil; i++ {
		err = writeFile(filepath.Join(dir, "specs", fmt.Sprintf("d%d.yaml", i)), manyDAG(i, nodes, "first"))
	}
	return err
}

func manyDAG(i, nodes int, description string) string {
	var s strings.Builder
	fmt.Fprintf(&s, "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: d%d}\nspec:\n  session: one\n  description: %s\n  nodes:\n",
		i, description)
	for n := range nodes {
		fmt.Fprintf(&s, "    - {name: n%d, run: [\"true\"]}\n", n)
	}
	return s.String()
}
