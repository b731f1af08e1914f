package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// options are the flags of bench run.
type options struct {
	sizes      string
	seed       uint64
	binary     string
	runs       int
	only, keep string
	beside     string         // another binary, or ""
	kindsAsked *regexp.Regexp // of vectors
	vectors    string         // file of vectors, or ""
	sleep      time.Duration  // of the engineers of sessions
}

// bench is one run of all measurements.
type bench struct {
	options
	table
	trees string       // folder of the generated trees
	made  map[int]bool // sizes that are generated
}

// part is a group of figures, that -only can ask for.
type part struct {
	name    string
	measure func(ctx context.Context, sizes []int) error
}

// measureAll is the command bench run.
func measureAll(ctx context.Context, o options) error {
	sizes, err := numbers(o.sizes)
	if err != nil {
		return err
	}
	binary, cleanup, err := build(ctx, o.binary)
	if err != nil {
		return err
	}
	defer cleanup()
	o.binary = binary
	b := &bench{options: o, table: table{out: os.Stdout, only: o.only}, trees: o.keep, made: map[int]bool{}}
	if b.trees == "" {
		if b.trees, err = os.MkdirTemp("", "reconcile-bench-trees"); err != nil {
			return err
		}
		defer os.RemoveAll(b.trees)
	}
	fmt.Printf("%d processors, %s/%s, medians of %d runs in alternation\n\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, o.runs)
	for _, part := range append([]part{
		{"version", b.version}, {"idle", b.idle}, {"cold", b.cold}, {"watch", b.watch}, {"dag", b.dag}, {"graphs", b.graphs}, {"expansion", b.expansion}, {"beside", b.besides}, {"decide", b.decide}, {"agents", b.agents}, {"pipelines", b.pipelines},
		{"fair", b.fair}, {"sessions", b.sessions}, {"switch", b.exclusive}, {"next", b.next},
		{"scale", b.scale}, {"busy", b.busy}, {"mixed", b.mixedEdit}, {"chains", b.chains}, {"commit", b.commit}, {"push", b.push}, {"ledger", b.ledger}, {"memory", b.memory}, {"memory known", b.memoryKnown}, {"fts", b.fts}, {"github", b.github}, {"tools", b.tools},
	}, b.vectors()...) {
		if !b.wants(part.name) {
			continue
		}
		if err := part.measure(ctx, sizes); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// tree returns the folder of a generated tree of n objects.
func (b *bench) tree(ctx context.Context, n int) (string, error) {
	dir := filepath.Join(b.trees, fmt.Sprint(n))
	if b.made[n] {
		return dir, nil
	}
	if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil || b.keep == "" {
		g := generator{dir: dir, n: n, seed: b.seed, binary: b.binary}
		if err := g.generate(ctx); err != nil {
			return "", err
		}
	}
	b.made[n] = true
	return dir, nil
}

// reconcile is the command under measurement. Exit code 4 only says that some object is not ready.
func (b *bench) reconcile(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.binary, append([]string{"-C", dir, "--quiet"}, args...)...)
	cmd.Env = environment()
	return cmd
}

// version: starting and ending, and the size of the binary.
func (b *bench) version(ctx context.Context, _ []int) error {
	got, err := alternate(3*b.runs,
		func() (usage, error) { return process(exec.CommandContext(ctx, b.binary, "version")) },
		func() (usage, error) { return process(gitCommand(ctx, ".", "version")) })
	if err != nil {
		return err
	}
	b.row("version, beside git version", short(got[0].wall), short(got[1].wall), trim(ms(got[0].wall))+" ms", ms(got[0].wall), 20, " ms")
	fi, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	size := float64(fi.Size()) / (1 << 20)
	b.row("version: size of the binary", fmt.Sprintf("%.1f MiB", size), "", fmt.Sprintf("%.1f", size), size*1.048576, 40, " MB")
	return nil
}

// idle: a run with nothing to do, compared with git status on the same tree, also where a spec file is broken or a DAG has failed.
func (b *bench) idle(ctx context.Context, sizes []int) error {
	const session = "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: unready}\nspec: {%s}\n"
	const dag = "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: unready}\nspec: {session: unready, nodes: [{name: a, run: [\"false\"]}]}\n"
	for _, n := range sizes {
		dir, err := b.tree(ctx, n)
		if err != nil {
			return err
		}
		for _, more := range []struct {
			label string
			specs []string
		}{
			{}, {", broken", []string{fmt.Sprintf(session, "titel: x")}}, {", failed", []string{fmt.Sprintf(session, "title: x"), dag}},
		} {
			if err := b.idleWith(ctx, dir, n, more.label, more.specs); err != nil {
				return err
			}
		}
	}
	return nil
}

// idleWith measures the idle run with more spec files.
func (b *bench) idleWith(ctx context.Context, dir string, n int, label string, specs []string) (err error) {
	idle := func() (usage, error) { return process(b.reconcile(ctx, dir), 3, 4) }
	if len(specs) > 0 {
		defer func() {
			_, again := idle()
			err = cmp.Or(err, again)
		}()
	}
	for i, spec := range specs {
		file := filepath.Join(dir, "specs", fmt.Sprintf("unready-%d.yaml", i))
		if err := writeFile(file, spec); err != nil {
			return err
		}
		defer os.Remove(file)
	}
	if _, err := idle(); err != nil {
		return err
	}
	got, err := alternate(b.runs, idle, func() (usage, error) { return process(gitCommand(ctx, dir, "status")) })
	if err != nil {
		return err
	}
	bound := 1.5
	if n <= 1000 { // the start of the process counts for more
		bound = 2
	}
	b.ratio(fmt.Sprintf("idle run%s, %d objects, beside git status", label, n), got[0].wall, got[1].wall, bound)
	return nil
}

// cold: a run without any cache, compared with plain yaml.v3 with schema validation of the same files.
func (b *bench) cold(ctx context.Context, sizes []int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var perObject []float64
	for _, n := range sizes {
		dir, err := b.tree(ctx, n)
		if err != nil {
			return err
		}
		got, err := alternate(max(1, b.runs/2),
			func() (usage, error) {
				if err := os.RemoveAll(filepath.Join(dir, ".reconcile", "cache")); err != nil {
					return usage{}, err
				}
				return process(b.reconcile(ctx, dir))
			},
			func() (usage, error) { return process(exec.CommandContext(ctx, self, "parse", dir)) })
		if err != nil {
			return err
		}
		each := func(u usage) float64 { return float64(u.cpu.Microseconds()) / float64(n) }
		perObject = append(perObject, each(got[0]))
		b.row(fmt.Sprintf("cold run, %d objects, CPU each, beside yaml.v3", n), fmt.Sprintf("%.1f µs", each(got[0])),
			fmt.Sprintf("%.1f µs", each(got[1])), fmt.Sprintf("%.1f µs", each(got[0])), each(got[0]), perObjectBound(n), " µs")
		b.row(fmt.Sprintf("cold run, %d objects, through yaml.v3 (90/69)", n), "", "", fmt.Sprintf("%.2f", each(got[0])/each(got[1])),
			each(got[0])/each(got[1]), perObjectBound(n)/69, "")
		b.row(fmt.Sprintf("cold run, %d objects, peak memory", n), mib(got[0].peak), mib(got[1].peak), mib(got[0].peak),
			float64(got[0].peak)/1e6, peakBound(n), " MB")
	}
	if last := len(perObject) - 1; last > 0 {
		growth := perObject[last] / perObject[0]
		b.row(fmt.Sprintf("cold run, growth of the cost each from %d to %d", sizes[0], sizes[last]), "", "",
			fmt.Sprintf("%.2f", growth), growth, 0, "")
	}
	return nil
}

// perObjectBound is the bound of a cold run in µs of CPU. Small trees, where the start of the process dominates,
// have no bound.
func perObjectBound(n int) float64 {
	if n < 10_000 {
		return 0
	}
	return 90
}

// peakBound is the bound of a cold run's memory in MB; larger trees have none.
func peakBound(n int) float64 {
	if n > 50_000 {
		return 0
	}
	return 300
}

func mib(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }

// dag: a thousand commands that do nothing, compared with make -j2.
func (b *bench) dag(ctx context.Context, _ []int) error {
	const nodes = 1000
	dir, err := os.MkdirTemp("", "reconcile-bench-dag")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var spec, targets strings.Builder
	spec.WriteString("apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: many}\nspec:\n  session: one\n" +
		"  policy: {maxConcurrency: 2}\n  nodes:\n")
	targets.WriteString(".PHONY: all\nall:")
	for i := range nodes {
		fmt.Fprintf(&spec, "    - {name: n%d, run: [\"true\"]}\n", i)
		fmt.Fprintf(&targets, " n%d", i)
	}
	targets.WriteString("\nn%:\n\t@true $@\n") // an argument, so that make really runs the program
	session := "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: one}\nspec: {title: one}\n"
	specs := map[string]string{"specs/dag.yaml": spec.String(), "specs/session.yaml": session, "Makefile": targets.String()}
	// Each run has a folder of its own, and all go at the end: for some seconds after many files were removed, ext4
	// takes far longer to make new ones.
	run := 0
	at := ""
	got, err := alternate(max(1, b.runs/2),
		func() (usage, error) {
			run++
			at = filepath.Join(dir, strconv.Itoa(run))
			for path, content := range specs {
				if err := writeFile(filepath.Join(at, path), content); err != nil {
					return usage{}, err
				}
			}
			return process(b.reconcile(ctx, at))
		},
		func() (usage, error) {
			cmd := exec.CommandContext(ctx, "make", "-s", "-j2")
			cmd.Dir = at
			return process(cmd)
		})
	if err != nil {
		return err
	}
	b.ratio("dag of 1000 commands (true), beside make -j2", got[0].wall, got[1].wall, 2)
	files := filepath.Join(dir, "files")
	made, err := timed(func() error { return makeFiles(files, nodes) })
	b.row(fmt.Sprintf("dag: to make %d files of that size here", nodes), short(made.wall), "", short(made.wall), 0, 0, "")
	return err
}

// makeFiles makes files of the size of a record. It tells what the disk is in the mood for: for minutes after many files
// were removed, ext4 looks at each place that became free before it gives one to a new file.
func makeFiles(dir string, n int) error {
	content := strings.Repeat("x", 700)
	for i := range n {
		if err := writeFile(filepath.Join(dir, strconv.Itoa(i)), content); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o666)
}
