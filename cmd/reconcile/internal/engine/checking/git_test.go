package checking

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/schemas"
)

// repository makes a repository with a commit of these files.
func repository(t *testing.T, files map[string]string) (dir string, git func(args ...string) string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is needed")
	}
	dir = t.TempDir()
	git = func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	for name, text := range files {
		put(t, dir, name, text)
	}
	git("add", ".")
	git("commit", "-qm", "first")
	return dir, git
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a confined tool left in the repository of the project is not run when the commit before the change is checked out.
func TestCommitBeforeRunsNothingOfTools(t *testing.T) {
	dir, git := repository(t, map[string]string{"a.py": "one\n", ".gitattributes": "*.py filter=x\n"})
	commit, marker := git("rev-parse", "HEAD"), filepath.Join(t.TempDir(), "evil")
	config, err := os.ReadFile(filepath.Join(dir, ".git", "config"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, ".git/config", string(config)+"[filter \"x\"]\n\tsmudge = \"echo x > "+marker+"; cat\"\n[core]\n\tfsmonitor = \"echo x > "+marker+"\"\n")
	into := t.TempDir()
	c := &Checker{Root: dir, Sandbox: schemas.SandboxBwrap}
	if err := c.checkOut(t.Context(), commit, into); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(into, "a.py")); err != nil || string(got) != "one\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("git ran what a tool had configured")
	}
	if c.Sandbox = ""; c.checkOut(t.Context(), commit, t.TempDir()) == nil {
		if _, err := os.Stat(marker); err != nil {
			t.Error("the filter of a person's repository did not run")
		}
	}
}

// One comparison tells the files, the removed ones and the lines, also of names that git would quote.
func TestSince(t *testing.T) {
	dir, git := repository(t, map[string]string{"a\tb.py": "one\ntwo\n", "gone.py": "x\n", "same.py": "x\n", ".gitignore": "ignored\n"})
	base := git("rev-parse", "HEAD")
	put(t, dir, "a\tb.py", "one\nTWO\nthree\n")
	put(t, dir, "new.py", "x\n")
	put(t, dir, "ignored", "x\n")
	git("rm", "-q", "gone.py")
	git("add", "new.py")
	git("commit", "-qam", "second")
	put(t, dir, "loose.py", "x\n")
	all, untracked, err := List(t.Context(), dir)
	if want := []string{".gitignore", "a\tb.py", "loose.py", "new.py", "same.py"}; err != nil || !reflect.DeepEqual(all, want) || !reflect.DeepEqual(untracked, []string{"loose.py"}) {
		t.Errorf("%q, %q, %v", all, untracked, err)
	}
	got, err := Since(t.Context(), dir, base, untracked)
	want := Changes{Files: []string{"a\tb.py", "loose.py", "new.py"}, Removed: []string{"gone.py"},
		Lines: map[string][]checks.LineRange{"a\tb.py": {{First: 2, Last: 3}}, "new.py": {{First: 1, Last: 1}}, "gone.py": {}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := Since(t.Context(), dir, git("rev-parse", "HEAD"), nil); err != nil || len(got.Files)+len(got.Removed)+len(got.Lines) > 0 {
		t.Errorf("nothing differs: %+v, %v", got, err)
	}
	for rev, want := range map[string]string{base: base, "HEAD~1": base, "HEAD": git("rev-parse", "HEAD")} {
		if got, err := MergeBase(t.Context(), dir, rev); err != nil || got != want {
			t.Errorf("%s: %s, %v", rev, got, err)
		}
	}
	git("checkout", "-q", "--detach", base)
	git("commit", "-q", "--allow-empty", "-m", "aside")
	if got, err := MergeBase(t.Context(), dir, git("rev-parse", "HEAD@{1}~0")); err != nil || got != base {
		t.Errorf("beside the branch: %s, %v", got, err)
	}
	if _, err := MergeBase(t.Context(), dir, "nobody"); err == nil {
		t.Error("a revision that is not there has no merge base")
	}
}

// In a folder with many files each is what it is alone: there, gone, a link or a folder.
func TestPresentInCrowds(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "many", "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	names := []string{"many/gone", "many/link", "many/folder", "away/gone", "many/folder/below"}
	var want []string
	for i := range crowd {
		names, want = append(names, fmt.Sprintf("away/%02d", i), fmt.Sprintf("many/%02d", i)), append(want, fmt.Sprintf("many/%02d", i))
		put(t, dir, fmt.Sprintf("many/%02d", i), "x")
	}
	if err := os.Symlink("00", filepath.Join(dir, "many", "link")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		files, missing := present(dir, slices.Clone(names))
		if !slices.Equal(files, want) || len(missing) != crowd+3 || !slices.Contains(missing, "many/gone") || !slices.Contains(missing, "many/folder/below") {
			t.Errorf("%q, missing %q", files, missing)
		}
		slices.Reverse(names)
	}
}
