package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// largeCopies is how many copies of Go's own source make a tree as large as that of Kubernetes with what belongs to it.
const largeCopies = 3

// trees: the index of whole trees: Go's own source, several copies of it, and a memory of 50,000 observations.
func (v *vectorFigures) wholeTrees(ctx context.Context, _ []int) error {
	std, err := v.sources(ctx, "std", 1)
	if err != nil {
		return err
	}
	if err := v.coldIndex(ctx, "Go's own source", std, 20, 800); err != nil {
		return err
	}
	if err := v.edited(ctx, "Go's own source", std, "copy0/strings/strings.go"); err != nil {
		return err
	}
	large, err := v.sources(ctx, "large", largeCopies)
	if err != nil {
		return err
	}
	if err := v.coldIndex(ctx, fmt.Sprintf("%d copies of Go's own source", largeCopies), large, 0, 2048); err != nil {
		return err
	}
	return v.indexedMemory(ctx)
}

// sources makes a repository with so many copies of Go's own source, each a module of its own.
func (v *vectorFigures) sources(ctx context.Context, name string, copies int) (dir string, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	from := filepath.Join(strings.TrimSpace(string(root)), "src")
	dir = filepath.Join(v.trees, "vectors-"+name)
	for i := range copies {
		to := filepath.Join(dir, fmt.Sprint("copy", i))
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			return "", fmt.Errorf("copy the source of Go: %w", err)
		}
		if err := writeFile(filepath.Join(to, "go.mod"), fmt.Sprintf("module copy%d\n", i)); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}} {
		if out, err := gitCommand(ctx, dir, args...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
	}
	return dir, nil
}

// coldIndex measures how long a first index takes, its memory, and whether it is what a rebuild makes. Bounds are seconds
// and MiB; 0 for none.
func (v *vectorFigures) coldIndex(ctx context.Context, what, dir string, seconds, most float64) error {
	name := "index of " + what
	cmd := v.reconcile(ctx, dir, "index")
	start := time.Now()
	peak, err := peakApart(ctx, cmd)
	if err != nil {
		return err
	}
	took := time.Since(start)
	v.row(name+", cold", short(took), "", short(took), took.Seconds(), seconds, " s")
	v.row(name+", peak memory", mib(peak), "", mib(peak), float64(peak)/(1<<20), most, " MiB")
	out, err := v.reconcile(ctx, dir, "index", "--verify").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	v.row(name+", verified", "the same", "", "", 0, 0, "")
	return nil
}

// indexedMemory: a tree with 50,000 observations: the first index, one more capture, and a search.
func (v *vectorFigures) indexedMemory(ctx context.Context) error {
	n := memoryStores[len(memoryStores)-1]
	r := &remembered{
		dir: filepath.Join(v.trees, fmt.Sprint("vectors-memory-", n)), n: n, texts: lexicaltest.New(v.seed),
		begun: time.Now().Add(-90 * 24 * time.Hour),
	}
	if err := r.make(ctx); err != nil {
		return err
	}
	what := fmt.Sprintf("%d observations", n)
	if err := v.coldIndex(ctx, what, r.dir, 0, 800); err != nil {
		return err
	}
	add := exec.CommandContext(ctx, v.binary, "-C", r.dir, "--quiet", "memory", "capture", "--agent", "engineer", "--issue", "1", "-")
	add.Env, add.Stdin = environment(), strings.NewReader("We decided to keep the index in one file because readers map it.\n")
	if _, err := process(add); err != nil {
		return err
	}
	got, err := process(v.reconcile(ctx, r.dir, "index"))
	if err != nil {
		return err
	}
	v.row("index of "+what+", after a capture", short(got.wall), "", short(got.wall), ms(got.wall), 0, "")
	query := r.texts.Word() + " " + r.texts.Word()
	found, err := alternate(v.runs, func() (usage, error) { return process(v.reconcile(ctx, r.dir, "search", query)) })
	if err != nil {
		return err
	}
	v.row("search among "+what+", whole process", short(found[0].wall), "", short(found[0].wall), ms(found[0].wall), 0, "")
	return nil
}
