// Command bench measures the promised speed and memory of the project, each figure next to its reference, and generates
// the trees for that.
//
//	bench tree -n 10000 DIR     a tree of 10,000 objects of all kinds, with statuses, committed in a git work tree
//	bench mixed -n 50000 DIR    the specs of a mixed tree in which nothing has run yet
//	bench run                   all figures; -n 1000,10000 chooses the sizes, -runs the repetitions, -only a part
//
// Times are medians of several runs in alternation, so that a machine that is busy for a while slows both sides. The
// figures are printed with their bounds, and nothing fails when one is missed: a benchmark is not a test.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("say tree or run; see go doc ./cmd/reconcile/internal/tools/bench")
	}
	flags := flag.NewFlagSet("bench "+args[0], flag.ContinueOnError)
	sizes := flags.String("n", "1000,10000,50000", "numbers of objects")
	seed := flags.Uint64("seed", 1, "equal seeds make equal trees")
	binary := flags.String("reconcile", "", "the binary to measure; built from this module by default")
	runs := flags.Int("runs", 7, "repetitions of each measurement")
	only := flags.String("only", "", "only figures whose name contains this, or one of several by comma")
	kinds := flags.String("kinds", "", "only kinds of vectors whose name matches, as in \"100000.*(uniform|sparse)\"")
	vectors := flags.String("vectors", "", "file of vectors of your own, a line each: numbers, after a name if you like; replaces the kinds of vectors")
	beside := flags.String("beside", "", "another binary of the program, for the figures that compare with one")
	sleep := flags.Duration("sleep", time.Minute, "how long an engineer takes, for the figures of sessions")
	keep := flags.String("keep", "", "folder for the trees; a temporary one by default")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	kindsAsked, err := regexp.Compile(*kinds)
	if err != nil {
		return fmt.Errorf("-kinds: %w", err)
	}
	switch args[0] {
	case "tree":
		return makeTree(ctx, *sizes, *seed, *binary, flags.Args())
	case "run":
		return measureAll(ctx, options{sizes: *sizes, seed: *seed, binary: *binary, runs: *runs, only: *only, beside: *beside, kindsAsked: kindsAsked, vectors: *vectors, keep: *keep, sleep: *sleep})
	case "mixed": // the specs of a tree in which nothing has run yet
		return makeMixed(*sizes, *seed, flags.Args())
	case "parse": // what a cold run is measured against, in a process of its own
		return parseAll(flags.Args())
	case "peak":
		return printPeak(ctx, flags.Args())
	case "fold": // one of several writers of a ledger
		return foldAll(ctx, flags.Args())
	case "share": // one of several that push to one branch
		return shareAll(ctx, flags.Args())
	case "resident": // what memory an index needs, in a process that has nothing else
		return printResident(flags.Args())
	}
	return fmt.Errorf("%q: say tree or run", args[0])
}

// makeTree is the command bench tree.
func makeTree(ctx context.Context, size string, seed uint64, binary string, args []string) error {
	n, err := strconv.Atoi(size)
	if err != nil || n < 1 || len(args) != 1 {
		return fmt.Errorf("usage: bench tree -n 10000 DIR")
	}
	binary, cleanup, err := build(ctx, binary)
	if err != nil {
		return err
	}
	defer cleanup()
	t := generator{dir: args[0], n: n, seed: seed, binary: binary}
	if err := t.generate(ctx); err != nil {
		return err
	}
	fmt.Printf("%s: %d objects\n", args[0], n)
	return nil
}

// makeMixed is the command bench mixed.
func makeMixed(size string, seed uint64, args []string) error {
	n, err := strconv.Atoi(size)
	if err != nil || n < 1 || len(args) != 1 {
		return fmt.Errorf("usage: bench mixed -n 10000 DIR")
	}
	return newMixed(args[0], n, seed).write()
}

// build builds the binary to measure, unless one is given, as released: without cgo, which costs a millisecond of
// linking at every start, and as a copy, like the git that it is compared with. A file just written by the linker is
// cached in single pages, which take the kernel another millisecond to map; a copied one, or one read from disk, in
// larger pieces. cleanup removes it.
func build(ctx context.Context, binary string) (path string, cleanup func(), err error) {
	if binary != "" {
		path, err = filepath.Abs(binary)
		return path, func() {}, err
	}
	dir, err := os.MkdirTemp("", "reconcile-bench")
	if err != nil {
		return "", nil, err
	}
	cleanup = func() { os.RemoveAll(dir) }
	path = filepath.Join(dir, "reconcile")
	if err := buildAt(ctx, path); err != nil {
		cleanup()
		return "", nil, err
	}
	return path, cleanup, nil
}

func buildAt(ctx context.Context, path string) error {
	linked := path + ".linked"
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", linked, "reconcile.dev/reconcile/cmd/reconcile")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	program, err := os.ReadFile(linked)
	if err != nil {
		return err
	}
	return os.WriteFile(path, program, 0o777)
}

// numbers reads "1000,10000".
func numbers(list string) ([]int, error) {
	var out []int
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-n %s: not a list of numbers", list)
		}
		out = append(out, n)
	}
	return out, nil
}
