// Command check checks this project, all of it:
//
//	go run ./cmd/reconcile/internal/tools/check            every step
//	go run ./cmd/reconcile/internal/tools/check quick      what to run before a commit, in less than a minute
//	go run ./cmd/reconcile/internal/tools/check vet unit   these steps
//	go run ./cmd/reconcile/internal/tools/check -all       every step, without sampling
//	go run ./cmd/reconcile/internal/tools/check -list      what the steps are
//
// It needs Go, git and (the first time) the modules; nothing else. With npm it also tests against an emulator of GitHub,
// which it installs (the first time) in a folder of the user's cache. A step that fails shows why and does not keep the
// next one from running. The last line is "N passed, N failed": tests, and one for each step that is not a test. The
// exit code is 0 when nothing failed, 1 when something did, 2 when the command line is wrong.
//
// On Linux, temporary files are kept in memory where 8 GiB of it are free for them, unless TMPDIR names a folder: half of the time of the tests is
// waiting for a disk.
//
// With CI=true nothing may be left out, but for the step agents, which has to be asked for: a machine without a C compiler, on which the race detector
// does not work, or without npm, fails there and is excused elsewhere. The step checks names the tools that could not be installed, and fails for none.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"reconcile.dev/reconcile/state/mutants"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout))
}

func run(ctx context.Context, args []string, out io.Writer) int {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.SetOutput(out)
	list := flags.Bool("list", false, "print the steps and what they check")
	sweep := flags.Bool("all", false, "test every mutant, and strike every call, instead of a sample")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	wanted, err := choose(steps(), flags.Args())
	if err != nil {
		fmt.Fprintln(out, err)
		return 2
	}
	if *list {
		for _, s := range wanted {
			fmt.Fprintf(out, "%-12s %s\n", s.name, s.about)
		}
		return 0
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	c := &checker{root: root, out: out, env: cleanEnv(os.Environ()), ci: os.Getenv("CI") == "true"}
	if *sweep {
		c.env = append(c.env, mutants.Sweep+"=all")
	}
	if os.Getenv("TMPDIR") == "" {
		if dir, free := memoryFolder(root); dir != "" {
			defer free()
			c.env = append(c.env, "TMPDIR="+dir)
		}
	}
	return c.all(ctx, wanted)
}

// quick names the steps to run before a commit.
const quick = "quick"

// choose returns the steps with the given names, in their own order. Without names it returns all steps except those that a
// larger one covers.
func choose(all []step, names []string) ([]step, error) {
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	var chosen []step
	known := []string{quick}
	for _, s := range all {
		known = append(known, s.name)
		if wanted[s.name] || wanted[quick] && s.quick || len(names) == 0 && !s.covered {
			if s.asked && !wanted[s.name] {
				s.run = skip(s)
			}
			chosen = append(chosen, s)
			delete(wanted, s.name)
		}
	}
	delete(wanted, quick)
	for n := range wanted {
		return nil, fmt.Errorf("no step is called %q; steps: %s", n, strings.Join(known, ", "))
	}
	return chosen, nil
}

// moduleRoot returns the folder of go.mod.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("the checks run inside the project's folder, with go on the PATH: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// cleanEnv drops what would lead the tests to another tree or repository: what a run of reconcile, or a git hook, sets.
func cleanEnv(env []string) []string {
	var kept []string
	for _, e := range env {
		if !strings.HasPrefix(e, "RECONCILE_") && !strings.HasPrefix(e, "GIT_") {
			kept = append(kept, e)
		}
	}
	return kept
}

// checker runs steps.
type checker struct {
	root string
	out  io.Writer
	env  []string
	ci   bool
	// ran are the events of all tests so far, for the step test, and counted is how they ended.
	ran     bytes.Buffer
	counted tally
}

// all runs the steps, prints the summary and returns the exit code.
func (c *checker) all(ctx context.Context, steps []step) int {
	start := time.Now()
	var sum tally
	var bad []string
	for _, s := range steps {
		r := c.one(ctx, s)
		sum.add(r.tally)
		if r.failed > 0 {
			bad = append(bad, s.name)
		}
		if ctx.Err() != nil {
			fmt.Fprintln(c.out, "interrupted")
			return 1
		}
	}
	fmt.Fprintf(c.out, "\n%s\n", time.Since(start).Round(100*time.Millisecond))
	if len(bad) > 0 {
		fmt.Fprintf(c.out, "failed: %s\nagain, only these: go run ./cmd/reconcile/internal/tools/check %s\n",
			strings.Join(bad, ", "), strings.Join(bad, " "))
	}
	fmt.Fprintf(c.out, "%d passed, %d failed\n", sum.passed, sum.failed)
	if sum.failed > 0 {
		return 1
	}
	return 0
}

// one runs a step and prints its line, after its output.
func (c *checker) one(ctx context.Context, s step) result {
	start := time.Now()
	r := s.run(ctx, c)
	word := "ok"
	switch {
	case r.failed > 0:
		word = "FAIL"
	case r.excuse != "" && r.passed > 0:
		word = "part"
	case r.excuse != "":
		word = "skip"
	}
	var notes []string
	if r.tests {
		notes = append(notes, fmt.Sprintf("%d passed, %d failed, %d skipped", r.passed, r.failed, r.skipped))
	}
	if r.excuse != "" {
		notes = append(notes, r.excuse)
	}
	if r.text != "" {
		fmt.Fprintln(c.out, strings.TrimRight(r.text, "\n"))
	}
	fmt.Fprintf(c.out, "== %-4s %-12s %6.1fs  %s\n", word, s.name, time.Since(start).Seconds(), strings.Join(notes, "; "))
	return r
}
