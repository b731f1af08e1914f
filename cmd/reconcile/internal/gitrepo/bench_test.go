package gitrepo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkCommit commits 100 changed statuses in a tree of 50,000 files: here, and with git add and git commit. The
// bound of the project is a ratio of 1.0.
func BenchmarkCommit(b *testing.B) {
	dir := bigRepository(b, 50_000)
	paths := make([]string, 100)
	for i := range paths {
		paths[i] = fmt.Sprintf("state/dags/obj-%05d.json", i*97%10_000)
	}
	n := 0
	change := func() {
		n++
		for _, p := range paths {
			content := fmt.Sprintf("{\"phase\": \"Running\", \"n\": %d, \"pad\": %q}\n", n, strings.Repeat(p, 20))
			if err := os.WriteFile(filepath.Join(dir, p), []byte(content), 0o666); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("reconcile", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			change()
			b.StartTimer()
			r, err := OpenToCommit(dir)
			if err != nil {
				b.Fatal(err)
			}
			if res, err := r.Commit(b.Context(), Commit{Paths: paths, Message: "m", When: noon}); err != nil || res.Warning != "" {
				b.Fatal(res, err)
			}
		}
	})
	b.Run("git", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			change()
			b.StartTimer()
			bench(b, dir, append([]string{"add", "--"}, paths...)...)
			bench(b, dir, "commit", "-q", "-m", "m")
		}
	})
	b.Run("dirty", func(b *testing.B) {
		later := time.Now().Add(2 * time.Second) // the files are older than the index, as they are in practice
		if err := os.Chtimes(filepath.Join(dir, ".git", "index"), later, later); err != nil {
			b.Fatal(err)
		}
		for range b.N {
			r, err := OpenToCommit(dir)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := r.Dirty(b.Context(), "", []string{"state"}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("git-status", func(b *testing.B) {
		for range b.N {
			bench(b, dir, "status", "--porcelain", "--", "state")
		}
	})
}

// bigRepository makes a work tree of n files of 200 to 500 bytes in five folders, all committed and packed.
func bigRepository(b *testing.B, n int) string {
	dir := b.TempDir()
	bench(b, dir, "init", "-q")
	folders := []string{"specs/observations", "specs/dags", "specs/replies", "state/dags", "state/sessions"}
	for _, d := range folders {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o777); err != nil {
			b.Fatal(err)
		}
	}
	for i := range n {
		name := filepath.Join(dir, folders[i%len(folders)], fmt.Sprintf("obj-%05d.json", i/len(folders)))
		if err := os.WriteFile(name, fmt.Appendf(nil, "{\"n\": %d, \"pad\": %q}\n", i, strings.Repeat("x", 200+i%300)), 0o666); err != nil {
			b.Fatal(err)
		}
	}
	bench(b, dir, "config", "gc.auto", "0")
	bench(b, dir, "add", ".")
	bench(b, dir, "commit", "-q", "-m", "first")
	bench(b, dir, "repack", "-adq")
	return dir
}

func bench(b *testing.B, dir string, args ...string) {
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=b@c"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git %v: %v\n%s", args, err, out)
	}
}
