package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// step is one thing that is checked.
type step struct {
	name, about string
	run         func(context.Context, *checker) result
	quick       bool // run before a commit, too
	covered     bool // by a larger step
	asked       bool // skipped unless it is named
	inCI        bool // though asked, CI runs it
}

// result is the result of a step.
type result struct {
	tally
	tests  bool     // the tally counts tests, not the step
	text   string   // what went wrong, for people
	excuse string   // why the step was left out
	skips  []string // skipped tests, with their reasons
}

// tally counts tests.
type tally struct{ passed, failed, skipped int }

func (t *tally) add(o tally) {
	t.passed += o.passed
	t.failed += o.failed
	t.skipped += o.skipped
}

func passed() result            { return result{tally: tally{passed: 1}} }
func failed(text string) result { return result{tally: tally{failed: 1}, text: text} }
func excused(why string) result { return result{excuse: why} }

// tools runs a tool of .ci/tools.mod at its pinned version.
func tools(name string, args ...string) []string {
	return append([]string{"go", "tool", "-modfile=.ci/tools.mod", name}, args...)
}

// raced are the packages whose goroutines share something, in most of their tests.
var raced = []string{
	"./state", "./state/durable", "./state/lock", "./cmd/reconcile/internal/engine/loop", "./cmd/reconcile/internal/runner",
	"./cmd/reconcile/internal/runner/acp", "./cmd/reconcile/internal/index",
	"./cmd/reconcile/internal/watch", "./cmd/reconcile/internal/render",
	"./cmd/reconcile/internal/github", "./cmd/reconcile/internal/engine/claims", "./cmd/reconcile/internal/memstore",
	"./cmd/reconcile/internal/embedhttp", "./cmd/reconcile/internal/meter", "./cmd/reconcile/internal/engine", "./cmd/reconcile/internal/engine/eventlog",
}

// partly are packages of whose tests only the threaded ones are raced: those whose goroutines share something. The others check results, as the
// step unit does, or what git processes do to each other; they take minutes under the detector.
var partly = []string{"./vectors", "./vectors/embed", "./vectors/knn", "./vectors/lexical", "./vectors/source", "./cmd/reconcile/internal/gitrepo"}

const threaded = "^Test(" +
	"BuildIsAFunctionOfItsInputs|BuildEnds|ReadersBesideUpdates|Scratch|TextsAreReadOnce|EmbedManyAtOnce|EmbedIsCanceled|" +
	"Concurrent|SameBytes|Assemble|BuildEndsWithItsContext|NoGrowth|SearchOptions|Processors|SearchesAtOnce|Threads|" +
	"ConcurrentCommits|RandomCommits|ManyFiles|RecentIsBounded|Reopen|LockedIndex|StaleLockOfOurs|Kept|KeptOnRemote|FetchKeptEndsWithTheLimit|" +
	"AdoptBesideAUser|AdoptBesideTheUser|TurnEnds|ServerHangs)$"

// scriptsPackage is the package whose tests start the program most often.
const scriptsPackage = "./cmd/reconcile"

// steps returns all steps, quick ones first.
func steps() []step {
	return []step{
		{name: "format", about: "every Go file looks as gofmt would have it", run: checkFormat, quick: true},
		{name: "modules", about: "go.mod and go.sum are tidy, and the modules are what they were when they were added",
			run: commands([]string{"go", "mod", "tidy", "-diff"}, []string{"go", "mod", "verify"})},
		{name: "vet", about: "go vet finds nothing", run: commands([]string{"go", "vet", "./..."}), quick: true},
		{name: "platforms", about: "go vet finds nothing for macOS and Windows, tests included; only when it is named", run: vetPlatforms, asked: true},
		{name: "staticcheck", about: "staticcheck finds nothing", run: commands(tools("staticcheck", "./..."))},
		{name: "workflows", about: "actionlint finds nothing in .github/workflows", run: commands(tools("actionlint"))},
		{name: "generated", about: "schemas and pages are what the Go types say",
			run: commands([]string{"go", "run", "./cmd/reconcile/internal/tools/gen", "-check"}), quick: true},
		{name: "short", about: "the short tests of every package", run: shortTests, quick: true, covered: true},
		{name: "unit", about: "the tests of every package, with an emulator of GitHub", run: onGitHub("-timeout=40m", "./...")},
		{name: "rules", about: "imports run downward, and the documents name what exists", run: tests("./cmd/reconcile/internal/repotest"), covered: true},
		{name: "scripts", about: "the command line behaves as its scripts say", run: onGitHub(scriptsPackage), covered: true},
		{name: "github", about: "what speaks with GitHub does so as GitHub describes, with an emulator of it",
			run: onGitHub(githubPackages...), covered: true},
		{name: "inspect", about: "reconcile inspects this project, and says what gofmt and go vet say", run: inspectItself},
		{name: "test", about: "reconcile tests some packages of this project, reads what the steps before ran, and counts what go test counts", run: testItself},
		{name: "agents", about: "real coding agents from npm work, which it installs: 2.4 GB; only when it is named", run: onAgents, asked: true},
		{name: "race", about: "the race detector finds nothing where goroutines share something", run: raceTests},
		{name: "release", about: "a release has all its parts", run: checkRelease},
		{name: "container", about: "the image of the container builds, and the program runs in it", run: checkContainer},
		{name: "checks", about: "the tools that check code find planted defects; missing ones are installed; only in CI, or when it is named",
			run: onCheckTools, asked: true, inCI: true},
	}
}

// commands makes a step of commands that must all succeed; what the failing ones print is what went wrong.
func commands(argvs ...[]string) func(context.Context, *checker) result {
	return func(ctx context.Context, c *checker) result {
		var text strings.Builder
		for _, argv := range argvs {
			if out, err := c.command(ctx, argv).CombinedOutput(); err != nil {
				fmt.Fprintf(&text, "%s: %v\n%s", strings.Join(argv, " "), err, out)
			}
		}
		if text.Len() > 0 {
			return failed(text.String())
		}
		return passed()
	}
}

func (c *checker) command(ctx context.Context, argv []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = c.root, c.env
	return cmd
}

// vetPlatforms has go vet look at the code for the other systems that a release is for.
func vetPlatforms(ctx context.Context, c *checker) result {
	for _, system := range []string{"darwin", "windows"} {
		cmd := c.command(ctx, []string{"go", "vet", "./..."})
		cmd.Env = append(cmd.Environ(), "GOOS="+system)
		if out, err := cmd.CombinedOutput(); err != nil {
			return failed(fmt.Sprintf("GOOS=%s go vet ./...: %v\n%s", system, err, out))
		}
	}
	return passed()
}

// output runs a command and returns its output, or an error with its error output.
func (c *checker) output(ctx context.Context, argv ...string) (string, error) {
	out, err := c.command(ctx, argv).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, exit.Stderr)
	}
	return string(bytes.TrimSpace(out)), err
}

// tests makes a step of the tests of some packages.
func tests(args ...string) func(context.Context, *checker) result {
	return func(ctx context.Context, c *checker) result { return c.goTest(ctx, args) }
}

// shortTests runs the tests that take little time. It leaves out the scripts, and the packages that need an emulator.
func shortTests(ctx context.Context, c *checker) result {
	all, err := c.output(ctx, "go", "list", "./...")
	if err != nil {
		return failed(err.Error())
	}
	own, err := c.output(ctx, append([]string{"go", "list", scriptsPackage}, githubPackages...)...)
	if err != nil {
		return failed(err.Error())
	}
	apart := strings.Fields(own)
	others := slices.DeleteFunc(strings.Fields(all), func(p string) bool { return slices.Contains(apart, p) })
	return c.goTest(ctx, append([]string{"-short"}, others...))
}

// raceTests tests some packages under the race detector, which needs a C compiler.
func raceTests(ctx context.Context, c *checker) result {
	if err := c.compiler(ctx); err != nil {
		if c.ci {
			return failed(fmt.Sprintf("%v; with CI=true that is an error", err))
		}
		return excused(fmt.Sprintf("%v; everything else was checked", err))
	}
	// What -short leaves out strikes child processes, which the detector does not see.
	args := []string{"-race", "-short", "-timeout", "40m"}
	r := c.goTest(ctx, append(args, raced...))
	part := c.goTest(ctx, slices.Concat(args, []string{"-run", threaded}, partly))
	r.add(part.tally)
	r.text += part.text
	return r
}

// compiler returns an error when the race detector cannot work here.
func (c *checker) compiler(ctx context.Context) error {
	cc, err := c.output(ctx, "go", "env", "CC")
	if err != nil {
		return err
	}
	words := strings.Fields(cc)
	if len(words) == 0 {
		return errors.New("the race detector needs a C compiler, and go env CC names none")
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return fmt.Errorf("the race detector needs a C compiler: %w; install gcc or clang", err)
	}
	return nil
}
