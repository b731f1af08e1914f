package ops

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
)

// BenchmarkSelectTests chooses the tests that are related to a change of a package on which many depend, in a clone of this repository whose index
// is there, and is looked at for changes.
func BenchmarkSelectTests(b *testing.B) {
	b.Setenv("HOME", b.TempDir())
	dir := b.TempDir()
	if out, err := exec.Command("git", "clone", "-q", "--shared", "../../../..", dir).CombinedOutput(); err != nil {
		b.Skipf("this is no repository: %v\n%s", err, out)
	}
	old := time.Now().Add(-time.Hour) // what has only just changed is read again
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(name, old, old))
	})
	if err != nil {
		b.Fatal(err)
	}
	p, err := Env{Tree: tree.Config{Now: time.Now, Getenv: os.Getenv}}.openProject(b.Context(), &CheckRequest{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	p.files, p.narrow = []string{"state/active.go"}, true
	for _, t := range tools.Catalog() {
		for _, r := range t.Roles {
			if t.Name == "go test" && r.Category == checks.TestFramework {
				p.tools = []tools.Discovered{{Tool: t.Name, Language: "go", Role: r}}
			}
		}
	}
	l, err := p.list()
	if err != nil {
		b.Fatal(err)
	}
	chosen, err := p.selectTests(b.Context(), l.all) // makes the index
	if err != nil || len(chosen.Files) == 0 {
		b.Fatal(chosen, err)
	}
	for b.Loop() {
		if _, err := p.selectTests(b.Context(), l.all); err != nil {
			b.Fatal(err)
		}
	}
}
