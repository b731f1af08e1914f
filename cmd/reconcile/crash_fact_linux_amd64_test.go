package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
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
	ways := blows(t, 7, 7, 13, 17)
	for _, s := range factStrikes {
		fixture := s.fixture(t)
		spec, err := fixture(t, blow{})()
		if err != nil {
			t.Fatal(err)
		}
		want, err := stateAndRun(spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range ways {
			b.run(t, s.name, func(t *testing.T) (int, error) {
				return crashtest.EveryNth(t.Context(), b.every, fixture(t, b), func(s crashtest.Spec, r crashtest.Result) error {
					if err := errors.Join(parses(s.Root), b.advised(r)); err != nil {
						return err
					}
					got, err := stateAndRun(s)
					if err == nil && got != want {
						err = fmt.Errorf("other files than without the crash:\n%s\nwant\n%s", got, want)
					}
					return err
				})
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
