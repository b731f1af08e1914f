//go:build amd64

package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
	"reconcile.dev/reconcile/state/mutants"
)

// TestRepairIsKilled kills a repair at changes of files that it makes: at a seventh of them, or at all with RECONCILE_SWEEP=all. The next repair must end well, with the
// result that the killed run had recorded.
func TestRepairIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	for _, mode := range []crashtest.Mode{crashtest.Kill, crashtest.Torn} {
		n, err := crashtest.EveryNth(t.Context(), mutants.Size(7, 7, 1), func() (crashtest.Spec, error) {
			dir, err := os.MkdirTemp(t.TempDir(), "tree")
			if err == nil {
				err = brokenTree(dir)
			}
			return crashtest.Spec{
				Cmd: []string{os.Args[0], dir}, Env: append(os.Environ(), roleVar+"=fix"), Root: dir, Mode: mode,
				Skip: func(c crashtest.Call) bool { return strings.HasPrefix(c.Path, testFile) }, // the checks' own
			}, err
		}, func(s crashtest.Spec, r crashtest.Result) error {
			return wantRepaired(t, s.Root)
		})
		if err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		if n < 3 {
			t.Errorf("%s: only %d changes were struck", mode, n)
		}
		t.Logf("%s: struck at %d changes", mode, n)
	}
}

func brokenTree(dir string) error {
	if err := plant(dir); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"state/sessions/health.json":          "torn",
		"state/github/issue-42.json":          "torn",
		"state/github/objects/dags/gone.json": objectRecord("dag/gone", 7),
	} {
		if err := put(dir, name, text); err != nil {
			return err
		}
	}
	return murder(dir)
}

func wantRepaired(t *testing.T, dir string) error {
	if err := age(filepath.Join(dir, filepath.FromSlash(tempFolder))); err != nil {
		return err
	}
	for _, f := range Fix(t.Context(), env(dir)) {
		if f.Level != OK && f.Name != "damaged" && f.Name != "git" {
			return fmt.Errorf("after the second repair: %s %s: %s", f.Level, f.Name, f.Detail)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "state/runs", victimKey+".json")); err != nil {
		return fmt.Errorf("the recorded result is gone: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "state/sessions/health.json")); err == nil {
		return fmt.Errorf("the damaged status is still there")
	}
	return nil
}
