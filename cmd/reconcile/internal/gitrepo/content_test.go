package gitrepo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhatGitAddWouldStore: attributes, ignore rules and modes count as they do for git add.
func TestWhatGitAddWouldStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(f *fixture)
		path    string
		want    string // git diff-tree's raw line, "" for nothing to commit
		blob    string
	}{
		"plain":               {func(f *fixture) { f.write("state/x.json", "a\n") }, "state/x.json", "A 100644", "a\n"},
		"executable":          {func(f *fixture) { f.write("state/x.sh", "a\n"); f.chmod("state/x.sh", 0o755) }, "state/x.sh", "A 100755", "a\n"},
		"mode only":           {func(f *fixture) { f.chmod(checks, 0o755) }, checks, "M 100755", ""},
		"mode does not count": {func(f *fixture) { f.git("config", "core.fileMode", "false"); f.chmod(checks, 0o755) }, checks, "", ""},
		"ignored":             {func(f *fixture) { f.write(".gitignore", "state/tmp/\n"); f.write("state/tmp/x", "") }, "state/tmp/x", "", ""},
		"ignored by folder":   {func(f *fixture) { f.write("state/.gitignore", "*.log\n"); f.write("state/d/x.log", "") }, "state/d/x.log", "", ""},
		"taken back": {func(f *fixture) { f.write("state/.gitignore", "*.log\n!x.log\n"); f.write("state/x.log", "a") },
			"state/x.log", "A 100644", "a"},
		"ignored but tracked": {func(f *fixture) { f.write(".gitignore", "state/\n"); f.write(checks, done) }, checks, "M 100644", done},
		"ignored by the user": {func(f *fixture) {
			f.git("config", "core.excludesFile", f.path(".git/mine"))
			f.write(".git/mine", "*.x")
			f.write("state/a.x", "")
		},
			"state/a.x", "", ""},
		"ignored locally": {func(f *fixture) { f.write(".git/info/exclude", "a.x\n"); f.write("state/a.x", "") }, "state/a.x", "", ""},
		"autocrlf":        {func(f *fixture) { f.git("config", "core.autocrlf", "true"); f.write(checks, done) }, checks, "M 100644", done},
		"text attribute":  {func(f *fixture) { f.write(".gitattributes", "* text=auto eol=crlf\n"); f.write(checks, done) }, checks, "M 100644", done},
		"clean filter": {func(f *fixture) {
			f.write(".gitattributes", "*.up filter=up\n")
			f.git("config", "filter.up.clean", "tr a-z A-Z")
			f.write("state/x.up", "abc\n")
		}, "state/x.up", "A 100644", "ABC\n"},
		"folder in the way": {func(f *fixture) { f.remove(checks); f.write(checks+"/x.json", "a") }, checks + "/x.json", "error", ""},
		"symlink":           {func(f *fixture) { f.symlink("x.json", "state/link.json") }, "state/link.json", "error", ""},
		"through a symlink": {func(f *fixture) { f.symlink(os.TempDir(), "state/out"); f.write("state/out/../x", "a") }, "state/out/x", "error", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c.prepare(f)
			before := f.git("status", "--porcelain", "--", ":!"+c.path)
			res, err := f.open().Commit(t.Context(), Commit{Paths: []string{c.path}, Message: "m", When: noon})
			switch {
			case c.want == "error":
				if err == nil || errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "x.json") && !strings.Contains(err.Error(), "out") &&
					!strings.Contains(err.Error(), "link.json") {
					t.Errorf("got %+v, %v; want an error that names the path", res, err)
				}
				return
			case c.want == "":
				if !errors.Is(err, ErrNothing) {
					t.Errorf("got %+v, %v; want ErrNothing", res, err)
				}
			default:
				if err != nil || res.Warning != "" {
					t.Fatalf("%v %s", err, res.Warning)
				}
				raw := strings.Fields(f.git("diff-tree", "-r", "--no-commit-id", "HEAD"))
				f.equal("change", raw[4]+" "+raw[1], c.want)
				if c.blob != "" {
					f.equal("blob", f.git("cat-file", "blob", "HEAD:"+c.path)+"\n", strings.TrimSuffix(c.blob, "\n")+"\n")
				}
				f.equal("status of the path", f.git("status", "--porcelain", "--", c.path), "")
			}
			f.equal("status", f.git("status", "--porcelain", "--", ":!"+c.path), before)
			f.sound()
		})
	}
}

func (f *fixture) chmod(p string, mode os.FileMode) {
	f.Helper()
	if err := os.Chmod(f.path(p), mode); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) symlink(to, p string) {
	f.Helper()
	if err := os.Symlink(to, f.path(p)); err != nil {
		f.Fatal(err)
	}
}

func TestPathsThatLeaveTheTree(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, p := range []string{"../x", "/etc/passwd", "a/../../b", ".git/config", "a/.GIT/x", ".git./x", "git~1/x", "a//b", "./a", "", ".", "a\x00b",
		".git::$INDEX_ALLOCATION/x"} {
		if _, err := f.open().Commit(t.Context(), Commit{Paths: []string{p}, When: noon}); err == nil || errors.Is(err, ErrNothing) {
			t.Errorf("path %q: %v; want a refusal", p, err)
		}
	}
}

// TestManyFiles: more objects than are written one by one go into one pack.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var paths []string
	for i := range 300 {
		p := fmt.Sprintf("state/runs/%d/%03d.json", i%7, i)
		f.write(p, strings.Repeat("x", i*7))
		paths = append(paths, p)
	}
	f.commit(f.open(), paths...)
	f.clean()
	f.sound()
	packs, _ := filepath.Glob(f.path(".git/objects/pack/*.idx"))
	if len(packs) != 1 {
		t.Errorf("packs: %v; want one", packs)
	}
	f.git("verify-pack", packs[0])
	f.equal("big blob", f.git("cat-file", "blob", "HEAD:state/runs/5/299.json"), strings.Repeat("x", 299*7))
}

// TestDirty compares with git status, for every way in which a file can differ.
func TestDirty(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("state/dags/same-size.json", "abc\n")
	f.write("state/dags/exec.json", "abc\n")
	f.write("state/gone/a/b.json", "abc\n")
	f.write("state/gone/c.json", "abc\n")
	f.write("state/.gitignore", "*.tmp\nscratch/\n")
	f.commit(f.open(), "state/dags/same-size.json", "state/dags/exec.json", "state/gone/a/b.json", "state/gone/c.json", "state/.gitignore")

	r := f.open()
	if dirty, err := r.Dirty(t.Context(), "", []string{"state"}); err != nil || len(dirty) > 0 {
		t.Errorf("nothing changed, and yet: %v, %v", dirty, err)
	}
	f.write("state/dags/same-size.json", "xyz\n")
	f.chmod("state/dags/exec.json", 0o755)
	f.write("state/dags/new.json", "")
	f.write("state/new/a/b.json", "")
	f.write("state/dags/x.tmp", "")
	f.write("state/scratch/deep/x.json", "")
	f.write("state/dags/checks.json.lock", "")
	f.write("state/dags/.hidden", "")
	f.write("outside.txt", "")
	f.write("state/dags/other.json", "touched\n")
	f.write("state/dags/other.json", `{"phase":"Pending"}`+"\n") // other stat data, same content
	if err := os.RemoveAll(f.path("state/gone")); err != nil {
		t.Fatal(err)
	}
	want := []string{"state/dags/exec.json", "state/dags/new.json", "state/dags/same-size.json", "state/gone/a/b.json",
		"state/gone/c.json", "state/new/a/b.json"}
	for name, repo := range map[string]*Repo{"native": r, "command": f.byCommand()} {
		got, err := repo.Dirty(t.Context(), "", []string{"state"})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v\nwant %v", name, got, err, want)
		}
		got, err = repo.Dirty(t.Context(), "", []string{"state/gone", checks, "state/dags/new.json", "state/none"})
		if want := []string{"state/dags/new.json", "state/gone/a/b.json", "state/gone/c.json"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%s, by prefix: got %v, %v\nwant %v", name, got, err, want)
		}
	}
	f.commit(r, want...)
	if dirty, err := r.Dirty(t.Context(), "", []string{"state"}); err != nil || len(dirty) > 0 {
		t.Errorf("after the commit: %v, %v", dirty, err)
	}
	f.sound()
}

// TestDirtyWhatTheUserStaged: what counts is the branch, not the index.
func TestDirtyWhatTheUserStaged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(checks, done)
	f.git("add", checks)
	dirty, err := f.open().Dirty(t.Context(), "", []string{"state"})
	if err != nil || !slices.Equal(dirty, []string{checks}) {
		t.Errorf("staged, not committed: %v, %v", dirty, err)
	}
	f.git("commit", "-qm", "second")
	f.git("reset", "-q", "--soft", "HEAD~1") // the index has the trees of another commit
	if dirty, err = f.open().Dirty(t.Context(), "", []string{"state"}); err != nil || !slices.Equal(dirty, []string{checks}) {
		t.Errorf("after git reset --soft: %v, %v", dirty, err)
	}
	f.git("sparse-checkout", "set", "--cone", "src")
	if _, err := os.Stat(f.path("state")); err == nil {
		f.git("checkout", "-q", "-f", "HEAD")
	}
	f.git("reset", "-q", "--hard")
	if dirty, err := f.open().Dirty(t.Context(), "", []string{"state"}); err != nil || len(dirty) > 0 {
		t.Errorf("outside of a sparse checkout: %v, %v", dirty, err)
	}
}

// byCommand is the repository as the git command serves it.
func (f *fixture) byCommand() *Repo {
	r := f.open()
	r.why = errors.New("as if it were beyond the native backend")
	return r
}

// TestGitCommand: what only git reads is committed through it, with the same result.
func TestGitCommand(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(f *fixture){
		"sha256": func(f *fixture) {
			f.dir = resolved(f.T, f.TempDir())
			f.git("init", "-q", "-b", "main", "--object-format=sha256")
			f.write(checks, "old\n")
			f.write("README.md", "hello\n")
			f.write("state/sessions/health.json", "x\n")
			f.git("add", ".")
			f.git("-c", "user.name=a", "-c", "user.email=b@c", "commit", "-q", "-m", "first")
		},
		"unborn": func(f *fixture) {
			f.dir = resolved(f.T, f.TempDir())
			f.git("init", "-q", "-b", "main", "--object-format=sha256")
			f.write("README.md", "hello\n")
			f.write("state/sessions/health.json", "x\n")
		},
		"treeless": func(f *fixture) {
			f.git("config", "uploadpack.allowFilter", "true")
			f.git("config", "uploadpack.allowAnySHA1InWant", "true")
			other := f.TempDir()
			f.git("clone", "-q", "--filter=tree:0", "--no-checkout", "file://"+f.dir, other)
			f.dir = resolved(f.T, other)
			f.git("checkout", "-q", "main")
		},
		"unknown extension": func(f *fixture) { f.git("config", "extensions.preciousObjects", "true") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			prepare(f)
			f.write("README.md", "staged\n")
			f.git("add", "README.md")
			before := f.git("status", "--porcelain", "--", ":!state")
			f.write(checks, done)
			f.remove("state/sessions/health.json")
			r := f.open()
			dirty, err := r.Dirty(t.Context(), "", []string{"state"})
			if err != nil {
				t.Fatal(err)
			}
			hash := f.commit(r, dirty...)
			f.equal("HEAD", f.git("rev-parse", "HEAD"), hash)
			f.equal("content", f.git("cat-file", "blob", "HEAD:"+checks)+"\n", done)
			f.equal("status", f.git("status", "--porcelain"), before)
			if _, err := r.Commit(t.Context(), Commit{Paths: dirty, Message: "m", When: noon}); !errors.Is(err, ErrNothing) {
				t.Errorf("again: %v; want ErrNothing", err)
			}
			if h, err := r.Head(t.Context()); err != nil || h != (Head{"refs/heads/main", hash}) {
				t.Errorf("head: %+v, %v", h, err)
			}
			f.sound()
		})
	}
}

func TestWithoutGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("these tests need git")
	}
	f := newFixture(t)
	sha256 := resolved(t, t.TempDir())
	f.git("init", "-q", "--object-format=sha256", sha256)
	t.Setenv("PATH", t.TempDir())
	if _, err := Open(sha256); !errors.Is(err, errUnsupported) || !strings.Contains(err.Error(), "sha256") {
		t.Errorf("SHA-256 without git: %v; want errUnsupported", err)
	}
	f.write(checks, done)
	r := f.open()
	f.commit(r, checks)
	f.write(".gitattributes", "*.json filter=lfs\n")
	f.write(".git/config", f.read(".git/config")+"[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n")
	f.write(checks, "again\n")
	if _, err := r.Commit(t.Context(), Commit{Paths: []string{checks}, When: noon}); !errors.Is(err, errUnsupported) ||
		!strings.Contains(err.Error(), checks) {
		t.Errorf("a filter without git: %v; want errUnsupported", err)
	}
}
