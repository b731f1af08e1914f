package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// largeCopies is how many copies of Go's own source make a tree that is larger than that of Kubernetes with the modules
// that belong to it.
const largeCopies = 3

// kubernetesModule is a tree that is large and that others wrote.
const kubernetesModule = "k8s.io/kubernetes@v1.31.0"

// coldStd: the first index of Go's own source.
func (v *vectorFigures) coldStd(ctx context.Context, _ []int) error {
	dir, err := v.sources(ctx, "std", 1)
	if err != nil {
		return err
	}
	return v.coldIndex(ctx, "Go's own source", dir, coldBounds{seconds: 20, peak: 800, recall: 95})
}

// coldLarge: the first index of several copies of Go's own source.
func (v *vectorFigures) coldLarge(ctx context.Context, _ []int) error {
	dir, err := v.sources(ctx, "large", largeCopies)
	if err != nil {
		return err
	}
	return v.coldIndex(ctx, fmt.Sprintf("%d copies of Go's own source", largeCopies), dir, coldBounds{peak: 2048, recall: 95})
}

// indexedStd is a repository of Go's own source whose index is up to date.
func (v *vectorFigures) indexedStd(ctx context.Context) (dir string, err error) {
	if dir, err = v.sources(ctx, "std", 1); err != nil {
		return "", err
	}
	_, err = process(v.bench.reconcile(ctx, dir, "index"))
	return dir, err
}

// kubernetes: the index of a module that anybody can have, from the module cache or from where modules are got.
func (v *vectorFigures) kubernetes(ctx context.Context, _ []int) error {
	from, err := moduleFolder(ctx, kubernetesModule)
	if err != nil {
		v.bench.row("index of "+kubernetesModule, "skipped", "", "", 0, 0, "")
		fmt.Fprintf(v.bench.out, "  the module cannot be had: %v\n", err)
		return nil
	}
	dir, err := v.repository(ctx, "kubernetes", func(to string) error { return os.CopyFS(to, os.DirFS(from)) })
	if err != nil {
		return err
	}
	return v.coldIndex(ctx, kubernetesModule, dir, coldBounds{peak: 800, recall: 95})
}

// moduleFolder is the folder of a module of a version in the module cache; it is fetched if it is not there.
func moduleFolder(ctx context.Context, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = os.TempDir() // the module of this program is not to know of it
	out, err := cmd.Output()
	var said struct{ Dir, Error string }
	if json.Unmarshal(out, &said) == nil && said.Error != "" {
		return "", errors.New(said.Error)
	}
	if err == nil && said.Dir == "" {
		err = errors.New("go mod download does not say where it is")
	}
	return said.Dir, err
}

// stdCopy is the folder of the first copy of Go's own source.
const stdCopy = "copy0"

// goSource is the folder of Go's own source.
func goSource(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "src"), nil
}

// sources makes a repository with that many copies of Go's own source, each a separate module.
func (v *vectorFigures) sources(ctx context.Context, name string, copies int) (dir string, err error) {
	from, err := goSource(ctx)
	if err != nil {
		return "", err
	}
	return v.repository(ctx, name, func(dir string) error {
		for i := range copies {
			to := filepath.Join(dir, fmt.Sprint("copy", i))
			if err := os.CopyFS(to, os.DirFS(from)); err != nil {
				return fmt.Errorf("copy the source of Go: %w", err)
			}
			if err := writeFile(filepath.Join(to, "go.mod"), fmt.Sprintf("module copy%d\n", i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// repository makes a repository of what fill puts into its folder, unless it was made before.
func (v *vectorFigures) repository(ctx context.Context, name string, fill func(dir string) error) (dir string, err error) {
	dir = filepath.Join(v.bench.trees, "vectors-"+name)
	if _, err := os.Stat(filepath.Join(dir, ".git", "index")); err == nil {
		return dir, nil
	}
	if err := fill(dir); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}} {
		if out, err := gitCommand(ctx, dir, args...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
	}
	return dir, nil
}

// verified matches the output of index --verify for an index that equals a rebuilt one.
var verified = regexp.MustCompile(`byte for byte; of the 10 nearest of \d+ vectors (\S+) were found, with --thorough \S+\n.*: (\S+) nodes of`)

// coldBounds are those of a first index: seconds, maximum MiB, and minimum recall in percent; 0 for none. The bound of
// recall is for texts with a subject: the texts of the generated memory are random words, without near neighbours.
type coldBounds struct{ seconds, peak, recall float64 }

// coldIndex measures how long a first index takes, its memory, and whether it is what a rebuild makes.
func (v *vectorFigures) coldIndex(ctx context.Context, what, dir string, bound coldBounds) error {
	name := "index of " + what
	for _, derived := range []string{"vectors", ".reconcile"} { // of an earlier run, in a folder that is kept
		if err := os.RemoveAll(filepath.Join(dir, derived)); err != nil {
			return err
		}
	}
	cmd := v.bench.reconcile(ctx, dir, "index")
	start := time.Now()
	peak, err := peakApart(ctx, cmd)
	if err != nil {
		return err
	}
	took := time.Since(start)
	v.bench.row(name+", cold", short(took), "", short(took), took.Seconds(), bound.seconds, " s")
	v.bench.row(name+", peak memory", mib(peak), "", mib(peak), float64(peak)/(1<<20), bound.peak, " MiB")
	verify := exec.CommandContext(ctx, v.bench.binary, "-C", dir, "index", "--verify")
	verify.Env = environment()
	out, err := verify.CombinedOutput() // it fails where they differ
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	said := verified.FindSubmatch(out)
	if said == nil {
		return fmt.Errorf("%s: index --verify does not say that it is what a rebuild makes:\n%s", name, out)
	}
	v.bench.row(name+", nodes, verified", "the same", "", string(said[2]), 0, 0, "")
	recall, err := strconv.ParseFloat(string(said[1]), 64)
	if err != nil {
		return fmt.Errorf("%s: the recall that index --verify found: %w", name, err)
	}
	v.bench.least(name+", recall", "", "", string(said[1]), 100*recall, bound.recall, " %")
	return nil
}

// indexedMemory: a tree with 50,000 observations: the first index, one more capture, and a search.
func (v *vectorFigures) indexedMemory(ctx context.Context, _ []int) error {
	n := memoryStores[len(memoryStores)-1]
	r := &remembered{
		dir: filepath.Join(v.bench.trees, fmt.Sprint("vectors-memory-", n)), n: n, texts: lexicaltest.New(v.bench.seed),
		begun: time.Now().Add(-90 * 24 * time.Hour),
	}
	if err := r.make(ctx); err != nil {
		return err
	}
	what := fmt.Sprintf("%d observations", n)
	if err := v.coldIndex(ctx, what, r.dir, coldBounds{peak: 800}); err != nil {
		return err
	}
	add := exec.CommandContext(ctx, v.bench.binary, "-C", r.dir, "--quiet", "memory", "capture", "--agent", "engineer", "--issue", "1", "-")
	add.Env, add.Stdin = environment(), strings.NewReader("We decided to keep the index in one file because readers map it.\n")
	if _, err := process(add); err != nil {
		return err
	}
	got, err := process(v.bench.reconcile(ctx, r.dir, "index"))
	if err != nil {
		return err
	}
	v.bench.row("index of "+what+", after a capture", short(got.wall), "", short(got.wall), ms(got.wall), 0, "")
	query := r.texts.Word() + " " + r.texts.Word()
	found, err := alternate(v.bench.runs, func() (usage, error) { return process(v.bench.reconcile(ctx, r.dir, "search", query)) })
	if err != nil {
		return err
	}
	v.bench.row("search among "+what+", whole process", short(found[0].wall), "", short(found[0].wall), ms(found[0].wall), 0, "")
	return nil
}
