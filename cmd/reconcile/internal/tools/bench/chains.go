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

// crowd is how many other DAGs a large tree has, and crowdNodes how many nodes each of them, which have all run.
const crowd, crowdNodes = 10_000, 3

// treeEdit is an edit after which that many nodes run.
type treeEdit struct {
	name string
	edit func(tree, tag string) error
}

// chains: what runs after an edit costs beyond a run with nothing to do, in a large tree and in one of its own.
func (b *bench) chains(ctx context.Context, _ []int) error {
	dir, err := os.MkdirTemp(b.trees, "chains")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	const few, links, dags, nodes = 3, 50, 200, 5
	edits := []treeEdit{
		{fmt.Sprintf("chain of %d", few), func(tree, tag string) error { return writeChain(tree, "few", few, tag) }},
		{fmt.Sprintf("chain of %d", links), func(tree, tag string) error { return writeChain(tree, "links", links, tag) }},
		{fmt.Sprintf("%d DAGs of %d", dags, nodes), func(tree, tag string) error {
			for i := range dags {
				if err := writeChain(tree, fmt.Sprintf("one-%d", i), nodes, tag); err != nil {
					return err
				}
			}
			return nil
		}},
	}
	large, own := filepath.Join(dir, "large"), filepath.Join(dir, "own")
	for tree, n := range map[string]int{large: crowd, own: 0} {
		if err := b.settledTree(ctx, tree, n, edits); err != nil {
			return err
		}
	}
	for _, e := range edits {
		if err := b.besideOwn(ctx, e, fmt.Sprintf("%d DAGs", crowd), large, own); err != nil {
			return err
		}
	}
	if err := b.looks(ctx, large); err != nil {
		return err
	}
	return b.commitLeft(ctx, large, fmt.Sprintf("%d DAGs", crowd), edits[0])
}

// commitLeft: a commit that is all that is left to do after an edit and a run, compared with git add and git commit.
// among is what the tree has beside it.
func (b *bench) commitLeft(ctx context.Context, tree, among string, e treeEdit) error {
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "--no-gpg-sign", "-m", "first"}, {"repack", "-adq"}} {
		if _, err := process(gitCommand(ctx, tree, args...)); err != nil {
			return err
		}
	}
	tags := 0
	after := func(commit func() (usage, error)) func() (usage, error) {
		return func() (usage, error) {
			tags++
			if err := e.edit(tree, fmt.Sprintf("commit %d", tags)); err != nil {
				return usage{}, err
			}
			if _, err := process(b.reconcile(ctx, tree)); err != nil {
				return usage{}, err
			}
			return commit()
		}
	}
	got, err := alternate(b.runs, after(func() (usage, error) { return process(b.reconcile(ctx, tree, "--commit")) }),
		after(func() (usage, error) { return commitByGit(ctx, tree, []string{"."}) }))
	if err != nil {
		return err
	}
	b.ratio(fmt.Sprintf("commit left to do in %s, CPU, beside git", among), got[0].cpu, got[1].cpu, 2)
	return nil
}

// settledTree makes a tree in which everything has run.
func (b *bench) settledTree(ctx context.Context, tree string, dags int, edits []treeEdit) error {
	if err := manyDAGs(tree, dags, crowdNodes); err != nil {
		return err
	}
	for _, e := range edits {
		if err := e.edit(tree, "first"); err != nil {
			return err
		}
	}
	for range 2 {
		if _, err := process(b.reconcile(ctx, tree)); err != nil {
			return err
		}
	}
	return nil
}

// besideOwn measures an edit in both trees; among is what the first one has beside it.
func (b *bench) besideOwn(ctx context.Context, e treeEdit, among string, trees ...string) error {
	tags := 0
	var functions []func() (usage, error)
	for _, tree := range trees {
		idle := func() (usage, error) { return process(b.reconcile(ctx, tree)) }
		functions = append(functions, func() (usage, error) {
			tags++
			if err := e.edit(tree, fmt.Sprintf("edit %d", tags)); err != nil {
				return usage{}, err
			}
			return idle()
		}, idle)
	}
	got, err := alternate(max(1, b.runs/2), functions...)
	if err != nil {
		return err
	}
	extra := func(of func(usage) time.Duration) (large, own time.Duration) {
		return of(got[0]) - of(got[1]), of(got[2]) - of(got[3])
	}
	cpu, ownCPU := extra(func(u usage) time.Duration { return u.cpu })
	wall, ownWall := extra(func(u usage) time.Duration { return u.wall })
	b.ratio(fmt.Sprintf("%s in %s, extra CPU, beside alone", e.name, among), cpu, ownCPU, 1.5)
	b.ratio(fmt.Sprintf("%s in %s, extra time, beside alone", e.name, among), wall, ownWall, 1.5)
	return nil
}

// looks counts the file accesses of a run, if strace is available.
func (b *bench) looks(ctx context.Context, tree string) error {
	if _, err := exec.LookPath("strace"); err != nil {
		return nil
	}
	const few, many = 3, 53
	counts := map[int]int{}
	for _, links := range []int{0, few, many} {
		if links > 0 {
			if err := writeChain(tree, "looks", links, strconv.Itoa(links)); err != nil {
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

// writeChain writes a DAG of nodes that each need the one before. They run again where the tag is another one.
func writeChain(dir, name string, links int, tag string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: %s}\nspec:\n  session: one\n  nodes:\n", name)
	for i := range links {
		fmt.Fprintf(&b, "    - {name: n%d, run: [\"true\", %q]", i, tag)
		if i > 0 {
			fmt.Fprintf(&b, ", needs: [n%d]", i-1)
		}
		b.WriteString("}\n")
	}
	return writeFile(filepath.Join(dir, "specs", name+".yaml"), b.String())
}
