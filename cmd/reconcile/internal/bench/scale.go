package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// scale: what a large tree costs that a small one does not.
func (b *bench) scale(ctx context.Context, sizes []int) error {
	dir, err := os.MkdirTemp(b.trees, "scale")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := b.firstRuns(ctx, dir, sizes); err != nil {
		return err
	}
	return b.chains(ctx, dir)
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

// chains: what a chain of nodes costs beyond a run with nothing to do, in a large tree and in one of its own.
func (b *bench) chains(ctx context.Context, dir string) error {
	const crowd, links = 10_000, 50
	large, own := filepath.Join(dir, "large"), filepath.Join(dir, "own")
	extra := map[string]time.Duration{}
	for tree, n := range map[string]int{large: crowd, own: 0} {
		if err := writeCrowd(tree, n); err != nil {
			return err
		}
		for range 2 {
			if _, err := process(b.reconcile(ctx, tree)); err != nil {
				return err
			}
		}
		chains := 0
		got, err := alternate(max(1, b.runs/2),
			func() (usage, error) {
				chains++
				if err := writeChain(tree, fmt.Sprintf("chain-%d", chains), links); err != nil {
					return usage{}, err
				}
				return process(b.reconcile(ctx, tree))
			},
			func() (usage, error) { return process(b.reconcile(ctx, tree)) })
		if err != nil {
			return err
		}
		extra[tree] = got[0].cpu - got[1].cpu
	}
	b.ratio(fmt.Sprintf("chain of %d in %d DAGs, CPU, beside alone", links, crowd), extra[large], extra[own], 1.5)
	return b.looks(ctx, large)
}

// looks counts what a run looks at, where strace can be had.
func (b *bench) looks(ctx context.Context, tree string) error {
	if _, err := exec.LookPath("strace"); err != nil {
		return nil
	}
	const few, many = 3, 53
	counts := map[int]int{}
	for _, links := range []int{0, few, many} {
		if links > 0 {
			if err := writeChain(tree, fmt.Sprintf("looks-%d", links), links); err != nil {
				return err
			}
		}
		n, err := b.statx(ctx, tree)
		if err != nil {
			return err
		}
		counts[links] = n
	}
	whole := float64(counts[few]-10*few) / float64(counts[0])
	b.row("looks at the whole tree, but for 10 a node, 3 nodes", strconv.Itoa(counts[few]), strconv.Itoa(counts[0]),
		fmt.Sprintf("%.2f", whole), whole, 1, "")
	each := float64(counts[many]-counts[few]) / (many - few)
	b.row("looks (statx) for each node that ended", strconv.Itoa(counts[many]), strconv.Itoa(counts[few]),
		fmt.Sprintf("%.1f", each), each, 10, "")
	return nil
}

// statx counts the calls of that name that a run makes with all its children.
func (b *bench) statx(ctx context.Context, tree string) (int, error) {
	cmd := exec.CommandContext(ctx, "strace", "-f", "-qq", "-e", "trace=statx", "-o", "/dev/stdout", b.binary, "-C", tree, "--quiet")
	cmd.Env = environment()
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("strace: %w", err)
	}
	return bytes.Count(out, []byte("statx(")), nil
}

// writeCrowd makes a tree of n DAGs of a session that is paused, and a session that works.
func writeCrowd(dir string, n int) error {
	for name, phase := range map[string]string{"idle": "Paused", "work": "Active"} {
		var b bytes.Buffer
		head(&b, "Session", name)
		fmt.Fprintf(&b, "  title: %s\n  phase: %s\n", name, phase)
		if err := writeFile(filepath.Join(dir, "specs", "sessions", name+".yaml"), b.String()); err != nil {
			return err
		}
	}
	for i := range n {
		var b bytes.Buffer
		head(&b, "DAG", fmt.Sprintf("d%d", i))
		b.WriteString("  session: idle\n  nodes:\n    - {name: a, run: [\"true\"]}\n    - {name: b, run: [\"true\"], needs: [a]}\n")
		if err := writeFile(filepath.Join(dir, "specs", "dags", fmt.Sprintf("d%d.yaml", i)), b.String()); err != nil {
			return err
		}
	}
	return nil
}

// writeChain adds a DAG of nodes that each need the one before.
func writeChain(dir, name string, links int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: %s}\nspec:\n  session: work\n  nodes:\n", name)
	for i := range links {
		fmt.Fprintf(&b, "    - {name: n%d, run: [\"true\"]", i)
		if i > 0 {
			fmt.Fprintf(&b, ", needs: [n%d]", i-1)
		}
		b.WriteString("}\n")
	}
	return writeFile(filepath.Join(dir, "specs", "dags", name+".yaml"), b.String())
}
