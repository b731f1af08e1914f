package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"reconcile.dev/reconcile/state/durable"
)

// work is a DAG of quick commands, and the same for make.
type work struct {
	name  string
	nodes int
	needs func(i int) []int
}

func flatGraph(n int) work { return work{"flat", n, func(int) []int { return nil }} }

func chainGraph(n int) work {
	return work{"chain", n, func(i int) []int {
		if i == 0 {
			return nil
		}
		return []int{i - 1}
	}}
}

// layerGraph has layers in which each node needs all nodes of the layer before.
func layerGraph(layers, width int) work {
	return work{"layers", layers * width, func(i int) (needs []int) {
		for k := range width {
			if from := (i/width-1)*width + k; from >= 0 {
				needs = append(needs, from)
			}
		}
		return needs
	}}
}

// write makes a tree with the graph in a new folder.
func (g work) write(dir string) error {
	var spec, targets strings.Builder
	spec.WriteString("apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: many}\nspec:\n  session: one\n" +
		"  policy: {maxConcurrency: 2}\n  nodes:\n")
	all := make([]string, g.nodes)
	for i := range all {
		all[i] = fmt.Sprint("n", i)
		var needs []string
		for _, k := range g.needs(i) {
			needs = append(needs, fmt.Sprint("n", k))
		}
		fmt.Fprintf(&spec, "    - {name: n%d, run: [\"true\"], needs: [%s]}\n", i, strings.Join(needs, ", "))
		fmt.Fprintf(&targets, "n%d: %s\n\t@true $@\n", i, strings.Join(needs, " ")) // an argument, so that make runs the program
	}
	for path, content := range map[string]string{
		"specs/dag.yaml":     spec.String(),
		"specs/session.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: one}\nspec: {title: one}\n",
		"reconcile.yaml":     "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {}\n",
		"Makefile":           ".PHONY: all\nall: " + strings.Join(all, " ") + "\n" + targets.String(),
	} {
		if err := writeFile(filepath.Join(dir, path), content); err != nil {
			return err
		}
	}
	return nil
}

// graphs: the time of graphs of quick commands compared with make, and the bytes that they write.
func (b *bench) graphs(ctx context.Context, _ []int) error {
	dir, err := os.MkdirTemp("", "reconcile-bench-graphs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, g := range []work{chainGraph(200), layerGraph(10, 20)} {
		if err := b.besideMake(ctx, g, filepath.Join(dir, g.name)); err != nil {
			return err
		}
	}
	for _, g := range []work{flatGraph(250), flatGraph(1000), flatGraph(4000), chainGraph(250), chainGraph(1000)} {
		at := filepath.Join(dir, "bytes", fmt.Sprint(g.name, g.nodes))
		if err := g.write(at); err != nil {
			return err
		}
		n, err := written(b.reconcile(ctx, at))
		if err != nil {
			return err
		}
		each := float64(n) / float64(g.nodes)
		b.row(fmt.Sprintf("bytes written, %s of %d nodes, each", g.name, g.nodes), fmt.Sprintf("%.1f MB", float64(n)/1e6), "",
			fmt.Sprintf("%.0f B", each), each, 4096, " B")
	}
	return nil
}

// besideMake measures a graph. Where the disk takes long for a sync, the time of one for each node, measured in the same round, is subtracted.
func (b *bench) besideMake(ctx context.Context, g work, dir string) error {
	run, at := 0, ""
	got, err := alternate(max(3, b.runs/2),
		func() (usage, error) {
			run++
			at = filepath.Join(dir, fmt.Sprint(run))
			if err := g.write(at); err != nil {
				return usage{}, err
			}
			return process(b.reconcile(ctx, at))
		},
		func() (usage, error) {
			cmd := exec.CommandContext(ctx, "make", "-s", "-j2")
			cmd.Dir = at
			return process(cmd)
		},
		func() (usage, error) { return syncs(filepath.Join(at, "sync"), g.nodes) })
	if err != nil {
		return err
	}
	ours, sync := got[0].wall, got[2].wall/time.Duration(g.nodes)
	if sync > 200*time.Microsecond {
		ours -= got[2].wall
	}
	b.row(g.name+": a sync of a file here", short(sync), "", short(sync), 0, 0, "")
	b.ratio(fmt.Sprintf("%s of %d commands but for a sync each, beside make -j2", g.name, g.nodes), ours, got[1].wall, 2)
	return nil
}

// syncs appends some bytes to a file n times, and makes each of them durable; the time is that of making them durable.
func syncs(path string, n int) (usage, error) {
	f, err := os.Create(path)
	if err != nil {
		return usage{}, err
	}
	defer f.Close()
	var u usage
	for range n {
		if _, err := f.WriteString(strings.Repeat("x", 400)); err != nil {
			return usage{}, err
		}
		start := time.Now()
		if err := durable.SyncData(f); err != nil {
			return usage{}, err
		}
		u.wall += time.Since(start)
	}
	return u, nil
}
