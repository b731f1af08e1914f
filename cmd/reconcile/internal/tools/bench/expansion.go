package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// grown is a DAG whose size is chosen: nodes writes its nodes, and files its other files.
type grown struct {
	name  string
	nodes func(n int) string
	// runs is how many runs a DAG of size n has; nil for n.
	runs func(n int) int
	// most is by how much the CPU time of each run may grow.
	most float64
}

var grownGraphs = []grown{
	{name: "flat", most: 1.3, nodes: func(n int) string { return repeated(n, "    - {name: n%[1]d, run: [\"true\"]}\n") }},
	{name: "matrix", most: 1.3, nodes: func(n int) string {
		return "    - {name: m, run: [\"true\"], matrix: {max: 10000, values: {n: [" + strings.TrimSuffix(repeated(n, "%d, "), ", ") + "]}}}\n"
	}},
	{name: "loop", most: 1.3, runs: func(n int) int { return 2 * n }, nodes: func(n int) string {
		return "    - {name: first, run: [\"true\"]}\n" + repeated(n-2, "    - {name: n%[1]d, needs: [first], run: [\"true\"]}\n") +
			"    - name: last\n      needs: [" + strings.TrimSuffix(repeated(n-2, "n%d, "), ", ") + "]\n" + judge + "first, max: 2, until: result >= 2}\n"
	}},
}

// rounds is a loop of two nodes with that many rounds.
var rounds = grown{name: "rounds", runs: func(n int) int { return 2 * n }, nodes: func(n int) string {
	return "    - {name: first, run: [\"true\"]}\n    - name: last\n      needs: [first]\n" + judge + fmt.Sprintf("first, max: 100, until: result >= %d}\n", n)
}}

// judge is the end of a node that counts rounds.
const judge = "      script: echo $RECONCILE_ROUND > round.json\n      outputs: {json: round.json}\n      repeat: {from: "

func repeated(n int, form string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, form, i)
	}
	return b.String()
}

// expansion: what the nodes cost that a matrix or a loop makes, and whether each costs the same in a DAG of many.
func (b *bench) expansion(ctx context.Context, _ []int) error {
	const beside = 3000
	flat, matrix := grownGraphs[0], grownGraphs[1]
	got, err := alternate(max(1, b.runs/3), func() (usage, error) { return b.grow(ctx, matrix, beside) },
		func() (usage, error) { return b.grow(ctx, flat, beside) })
	if err != nil {
		return err
	}
	b.ratio(fmt.Sprintf("expansion: matrix of %d beside flat, CPU", beside), got[0].cpu, got[1].cpu, 1.3)
	for _, g := range grownGraphs {
		if err := b.growth(ctx, g, 1000, 10_000, g.most); err != nil {
			return err
		}
	}
	return b.growth(ctx, rounds, 10, 100, 1.5)
}

// growth compares the CPU time of each run in a small DAG and in a large one.
func (b *bench) growth(ctx context.Context, g grown, small, large int, most float64) error {
	got, err := alternate(max(1, b.runs/3), func() (usage, error) { return b.grow(ctx, g, small) },
		func() (usage, error) { return b.grow(ctx, g, large) })
	if err != nil {
		return err
	}
	each := func(u usage, n int) float64 {
		if g.runs != nil {
			n = g.runs(n)
		}
		return float64(u.cpu.Microseconds()) / float64(n)
	}
	few, many := each(got[0], small), each(got[1], large)
	b.row(fmt.Sprintf("expansion: %s, CPU a run, %d beside %d", g.name, large, small), fmt.Sprintf("%.0f µs", many), fmt.Sprintf("%.0f µs", few),
		fmt.Sprintf("%.2f", many/few), many/few, most, "")
	return nil
}

// grow runs a DAG in a new tree.
func (b *bench) grow(ctx context.Context, g grown, n int) (usage, error) {
	dir, err := os.MkdirTemp(b.trees, "grown")
	if err != nil {
		return usage{}, err
	}
	defer os.RemoveAll(dir)
	for path, content := range map[string]string{
		"specs/dag.yaml":     "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: many}\nspec:\n  session: one\n  policy: {maxConcurrency: 2}\n  nodes:\n" + g.nodes(n),
		"specs/session.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: one}\nspec: {title: one}\n",
		"reconcile.yaml":     "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {limits: {fileSize: 16777216}}\n",
	} {
		if err := writeFile(filepath.Join(dir, path), content); err != nil {
			return usage{}, err
		}
	}
	return process(b.reconcile(ctx, dir))
}
