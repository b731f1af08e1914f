package installing

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/state/mutants"
)

// project makes a project with a manifest, and with an environment if existed is set.
func project(t *testing.T, existed bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	files := map[string]string{"package.json": "{}"}
	if existed {
		files["node_modules/a/a.js"] = "old"
		files["node_modules/b.js"] = "b"
	}
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if existed {
		if err := os.Symlink("../b.js", filepath.Join(dir, "node_modules", "a", "link")); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// contents are the files and links of a project with their contents, without the lock.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(p, dir)
		if err != nil || d.IsDir() || strings.HasPrefix(rel, "/.reconcile/") && !strings.HasPrefix(rel, "/"+dirOf(original)) {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			out[rel], err = os.Readlink(p)
			return err
		}
		data, err := os.ReadFile(p)
		out[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func dirOf(p string) string { return filepath.ToSlash(p) + "/" }

var installation = tools.Installation{Tool: "oxlint", Env: "node_modules", Kept: []string{"package.json", "package-lock.json"}}

// change is what an installation does: it adds, changes and removes files, and writes manifests.
const change = "mkdir -p node_modules/c && echo new > node_modules/c/c.js && { [ ! -e node_modules/a ] || { printf x >> node_modules/a/a.js; rm node_modules/b.js; }; } && echo 1 > package.json && echo 2 > package-lock.json"

func run(t *testing.T, c *Change, script string) error {
	t.Helper()
	return c.Run(t.Context(), []string{"sh", "-c", script}, os.Environ(), runner.FindSecrets(nil, c.dir), time.Minute)
}

// An installation that fails or is killed leaves the project as it was, and one that is kept leaves its manifests so.
func TestInstallation(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	for _, existed := range []bool{false, true} {
		for _, end := range []string{"undo", "killed", "killed while undoing", "killed in Keep", "keep"} {
			dir := project(t, existed)
			before := contents(t, dir)
			c, err := Begin(t.Context(), dir, installation)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Begin(t.Context(), dir, installation); !errors.Is(err, errBusy) {
				t.Fatal("two at the same time:", err)
			}
			if env, err := Recover(t.Context(), dir); env != "" || err != nil {
				t.Fatal("it is undone while it works:", env, err)
			}
			if err := run(t, c, change); err != nil {
				t.Fatal(err)
			}
			installed := contents(t, dir)
			kept := end == "keep" || end == "killed in Keep"
			switch end {
			case "undo":
				err = c.Undo()
			case "keep":
				err = c.Keep()
			case "killed while undoing":
				err = errors.Join(os.RemoveAll(filepath.Join(dir, "node_modules", "a")), os.RemoveAll(filepath.Join(dir, "node_modules", "c")))
				c.close()
			case "killed in Keep":
				c.j.Done = true
				err = errors.Join(c.restore(), c.write())
				c.close()
			default:
				c.close()
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Recover(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			want := before
			if kept {
				want = maps.Clone(installed)
				want["/package.json"] = "{}"
				delete(want, "/package-lock.json")
				maps.DeleteFunc(want, func(name, _ string) bool { return strings.HasPrefix(name, "/.reconcile/") })
			}
			if is := contents(t, dir); !maps.Equal(is, want) {
				t.Errorf("existed %v, %s:\n%q\nwant:\n%q", existed, end, is, want)
			}
			if _, err := os.Lstat(filepath.Join(dir, local)); !kept && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: its own folder is left: %v", end, err)
			}
		}
	}
}

// Killed between the steps of Begin, the environment is still the old one afterwards.
func TestKilledWhileItBegins(t *testing.T) {
	for _, renamed := range []bool{false, true} {
		dir := project(t, true)
		before := contents(t, dir)
		c, err := Begin(t.Context(), dir, installation)
		if err != nil {
			t.Fatal(err)
		}
		env, was, copy := filepath.Join(dir, "node_modules"), filepath.Join(dir, original), filepath.Join(dir, copied)
		if err := os.Rename(env, copy); err != nil {
			t.Fatal(err)
		}
		if !renamed {
			if err := errors.Join(os.Rename(was, env), os.Remove(filepath.Join(copy, "b.js"))); err != nil {
				t.Fatal(err)
			}
		}
		c.close()
		if env, err := Recover(t.Context(), dir); env != "node_modules" || err != nil {
			t.Fatal(env, err)
		}
		if is := contents(t, dir); !maps.Equal(is, before) {
			t.Errorf("%q, want %q", is, before)
		}
	}
}

// A journal that somebody else wrote makes nothing disappear.
func TestForeignJournal(t *testing.T) {
	dir := project(t, false)
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, ".reconcile", "install"), 0o700), os.MkdirAll(filepath.Join(dir, "src"), 0o700),
		os.WriteFile(filepath.Join(dir, journalAt), []byte(`{"env": "src"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(t.Context(), dir); err == nil || !strings.Contains(err.Error(), `names "src"`) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "src")); err != nil {
		t.Error(err)
	}
	for _, name := range []string{".git/config", "src/main.go", "../package.json", ".git/package.json"} {
		journal := fmt.Sprintf(`{"env": "node_modules", "existed": true, "kept": {%q: "aGFybQ=="}}`, name)
		if err := os.WriteFile(filepath.Join(dir, journalAt), []byte(journal), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Recover(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "no installation changes") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// faults are those in what an installation leaves behind, which the tests must notice.
var faults = []mutants.Mutant{
	{"the original is not put back", "installing.go", "if err := c.root.Rename(original, c.j.Env); err != nil {", "if err := c.root.RemoveAll(original); err != nil {", "TestInstallation"},
	{"manifests stay as the package manager wrote them", "installing.go", "case was != nil && (gone || !bytes.Equal(is, was)):", "case was != nil && gone && is == nil:", "TestInstallation"},
	{"a lock file that was made stays", "installing.go", "err = c.root.Remove(file)", "err = nil", "TestInstallation"},
	{"what was kept is undone", "installing.go", "if c.j.Done {", "if false {", "TestInstallation"},
	{"two install at the same time", "installing.go", "err == nil && c.lock == nil {", "false {", "TestInstallation"},
	{"a new environment stays", "installing.go", "case !c.j.Existed:\n\t\tif err := c.root.RemoveAll(c.j.Env)", "case !c.j.Existed:\n\t\tif err := c.root.RemoveAll(copied)", "TestInstallation"},
	{"an environment that was not swapped yet is removed", "installing.go", "case !c.j.Existed:\n\t\tif", "case !c.j.Existed || err != nil:\n\t\tif", "TestKilledWhileItBegins"},
	{"a foreign journal is believed", "installing.go", "if !tools.MayReplace(c.j.Env) {", "if false {", "TestForeignJournal"},
	{"a foreign journal writes what it likes", "installing.go", "if !tools.MayKeep(file) {", "if false {", "TestForeignJournal"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
