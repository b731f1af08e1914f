package gitrepo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWorkTreeBeginsWhereGitSays compares what Open takes for the top of the work tree with git's own answer.
func TestWorkTreeBeginsWhereGitSays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git("worktree", "add", "-q", f.path("linked"), "-b", "linked")
	for _, dir := range []string{"empty/.git", "half/.git/objects", "nested/deep"} {
		if err := os.MkdirAll(f.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"nested", "damaged", "detached"} {
		f.git("init", "-q", f.path(dir))
	}
	for dir, head := range map[string]string{"damaged": "ref: heads/main\n", "detached": f.git("rev-parse", "HEAD")} {
		if err := os.WriteFile(f.path(dir+"/.git/HEAD"), []byte(head), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{".", "empty", "half", "nested/deep", "linked", "damaged", "detached"} {
		out, err := exec.Command("git", "-C", f.path(dir), "rev-parse", "--show-toplevel").Output()
		if err != nil {
			t.Fatal(dir, err)
		}
		r, err := OpenToCommit(f.path(dir))
		if err != nil {
			t.Fatal(dir, err)
		}
		if want := strings.TrimSpace(string(out)); filepath.ToSlash(r.worktree) != want {
			t.Errorf("%s: the work tree begins at %s, git says %s", dir, r.worktree, want)
		}
	}
}
