package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/crashtest"
)

// factTree has two documents that something is stated of.
var factTree = map[string]string{
	"docs/a.md":                   "# A\n",
	"docs/b.md":                   "# B\n",
	"specs/agents/architect.yaml": agentSpec("architect", "runner: {human: {}}"),
}

var (
	factEdge   = []string{"fact", "edge", "docs/a.md", "docs/b.md", "--type", "references", "--by", "ada"}
	factReview = []string{"fact", "review", "docs/a.md", "approved", "--by", "ada"}
)

var factStrikes = []strike{
	{name: "edge", files: factTree, before: [][]string{{"-q"}, {"-q", "index"}}, cmd: factEdge},
	{name: "change", files: factTree, before: [][]string{{"-q"}, factEdge}, cmd: slices.Concat(factEdge, []string{"--weight", "0.5"})},
	{name: "review", files: factTree, before: [][]string{{"-q"}, factEdge}, cmd: factReview},
	{name: "remove", files: factTree, before: [][]string{{"-q"}, factReview, factEdge},
		cmd: []string{"fact", "remove", "edge-" + factEdgeKey}},
}

// factEdgeKey is the key in the name of factEdge's file.
const factEdgeKey = "d8e46f0f0f25"

// TestCrashFact strikes the commands that state something. The same command, given again, succeeds at once and ends in the
// same files as one that nothing happened to.
func TestCrashFact(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program once for many of its file-changing calls")
	}
	for _, mode := range []struct {
		name  string
		mode  crashtest.Mode
		errno syscall.Errno
		step  int
	}{
		{"kill", crashtest.Kill, 0, 5}, {"torn", crashtest.Torn, 0, 5},
		{"full", crashtest.Fail, syscall.ENOSPC, 11}, {"broken", crashtest.Fail, syscall.EIO, 13},
	} {
		if os.Getenv("RECONCILE_CRASH") == "all" {
			mode.step = 1
		}
		for _, s := range factStrikes {
			t.Run(s.name+" "+mode.name, func(t *testing.T) {
				t.Parallel()
				fixture := s.fixture(t, mode.mode, mode.errno)
				spec, err := fixture()
				if err != nil {
					t.Fatal(err)
				}
				want, err := stateAndRun(spec)
				if err != nil {
					t.Fatal(err)
				}
				n, err := crashtest.EveryNth(t.Context(), mode.step, fixture, func(s crashtest.Spec, r crashtest.Result) error {
					if err := errors.Join(parses(s.Root), advised(mode.errno, r)); err != nil {
						return err
					}
					got, err := stateAndRun(s)
					if err == nil && got != want {
						err = fmt.Errorf("other files than without the crash:\n%s\nwant\n%s", got, want)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
				t.Logf("struck at %d calls", n)
			})
		}
	}
}

// stateAndRun gives the command and runs the tree, which sweeps away what a killed process left, and lists the files
// without the index: that has what is stated at the next look.
func stateAndRun(s crashtest.Spec) (string, error) {
	listing, err := runAndRun(s)
	lines := slices.DeleteFunc(strings.Split(listing, "\n"), func(l string) bool { return strings.Contains(l, " vectors") })
	return strings.Join(lines, "\n"), err
}
