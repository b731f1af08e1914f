package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
)

// indexTree has something of most that is indexed.
var indexTree = map[string]string{
	"docs/a.md":                   "# Upload\n\nA retry waits.\n",
	"go.mod":                      "module example.com/m\n",
	"main.go":                     "package main\n\n// main greets.\nfunc main() { hello() }\n",
	"hello.go":                    "package main\n\nfunc hello() {}\n",
	"specs/agents/architect.yaml": agentSpec("architect", "runner: {human: {}}"),
}

var (
	indexed     = [][]string{{"-q"}, {"-q", "index"}}
	indexEdit   = map[string]string{"hello.go": "package main\n\n// hello is polite.\nfunc hello() {}\n", "docs/a.md": ""}
	indexFiles  = []string{index.SnapshotPath, index.DeltaPath}
	indexStrike = []strike{
		{name: "build", files: indexTree, before: [][]string{{"-q"}}, cmd: []string{"-q", "index"}},
		{name: "change", files: indexTree, before: indexed, change: indexEdit, cmd: []string{"-q", "index"}},
		{name: "rebuild", files: indexTree, before: indexed, change: indexEdit, cmd: []string{"-q", "index", "--rebuild"}},
		{name: "search", files: indexTree, before: indexed, change: indexEdit, cmd: []string{"-q", "search", "polite"}},
	}
)

// TestCrashIndex strikes what writes the index. Each of its files is the old one or the new one, whole, whatever happens;
// the next command of the same words succeeds, and leaves the same bytes as one that nothing happened to.
func TestCrashIndex(t *testing.T) {
	ways := blows(t, 7, 11, 13, 17)
	for _, s := range indexStrike {
		fixture := s.fixture(t)
		spec, err := fixture(t, blow{})()
		if err != nil {
			t.Fatal(err)
		}
		before := indexOf(t, spec.Root)
		want, err := runAndRun(spec)
		if err != nil {
			t.Fatal(err)
		}
		after := indexOf(t, spec.Root)
		for _, b := range ways {
			b.run(t, s.name, func(t *testing.T) (int, error) {
				return crashtest.EveryNth(t.Context(), b.every, fixture(t, b), func(s crashtest.Spec, r crashtest.Result) error {
					for i, now := range indexOf(t, s.Root) {
						if !bytes.Equal(now, before[i]) && !bytes.Equal(now, after[i]) {
							return fmt.Errorf("%s has %d bytes of neither the old file nor the new one", indexFiles[i], len(now))
						}
					}
					got, err := runAndRun(s)
					if err == nil && got != want {
						err = fmt.Errorf("other files than without the crash:\n%s\nwant\n%s", got, want)
					}
					return errors.Join(err, b.advised(r))
				})
			})
		}
	}
}

// indexOf are the files of the index; nil for those that are not there.
func indexOf(t *testing.T, root string) [][]byte {
	t.Helper()
	var out [][]byte
	for _, p := range indexFiles {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		out = append(out, data)
	}
	return out
}

// runAndRun gives the command, and then runs the tree, which sweeps away what a killed process left, and lists the files.
func runAndRun(s crashtest.Spec) (string, error) {
	for _, cmd := range [][]string{s.Cmd, s.Cmd[:1]} {
		s.Cmd = cmd
		if out, err := rerun(s); err != nil {
			return "", fmt.Errorf("%q: %w\n%s", cmd, err, out)
		}
	}
	return outcomeOf(s.Root)
}
