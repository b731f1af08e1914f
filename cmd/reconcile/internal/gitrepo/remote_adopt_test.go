package gitrepo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ours says what may be done with the files of a fixture.
var ours = Owners{Of: ourFiles}

func ourFiles(path string) Ownership {
	switch {
	case strings.HasPrefix(path, "state/runs/"):
		return Record
	case strings.HasPrefix(path, "state/"):
		return Status
	case strings.HasPrefix(path, "made/"):
		return Made
	}
	return None
}

const byUs = "Update status of dag/checks\n\n- dag/checks\n\nReconcile-Input: x\nReconcile-Objects: 1\n"

// record commits files as reconcile does.
func (f *fixture) record(files map[string]string) string {
	f.Helper()
	var paths []string
	for p, content := range files {
		f.write(p, content)
		paths = append(paths, p)
	}
	res, err := f.open().Commit(f.Context(), Commit{Paths: paths, Message: byUs, When: noon})
	if err != nil || res.Warning != "" {
		f.Fatal(err, res.Warning)
	}
	return res.Hash
}

// author commits files as a person does.
func (f *fixture) author(message string, files map[string]string) string {
	f.Helper()
	for p, content := range files {
		f.write(p, content)
		f.git("add", p)
	}
	f.git("commit", "-q", "-m", message)
	return f.git("rev-parse", "HEAD")
}

func (f *fixture) push() {
	f.Helper()
	f.git("push", "-q", "origin", "HEAD:main")
}

// adopt fetches and adopts, and fails the test if that does not work.
func (f *fixture) adopt() (Adopted, *Remote) {
	f.Helper()
	m := f.remote()
	got, err := m.pull(f)
	if err != nil || got.Warning != "" {
		f.Fatalf("adopt: %v %s", err, got.Warning)
	}
	return got, m
}

func (m *Remote) pull(f *fixture) (Adopted, error) {
	f.Helper()
	tip, err := m.Fetch(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return m.Adopt(f.Context(), tip, ours)
}

func (f *fixture) read(p string) string {
	f.Helper()
	data, err := os.ReadFile(f.path(p))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestAdoptBehind(t *testing.T) {
	t.Parallel()
	f, other, _ := shared(t)
	other.author("more", map[string]string{"README.md": "hello again\n", "new/file.txt": "new\n"})
	other.git("rm", "-q", "src/deep/er/file.txt")
	other.author("less", map[string]string{"state/dags/checks.json": done})
	other.push()
	got, _ := f.adopt()
	f.equal("HEAD", f.git("rev-parse", "HEAD"), other.git("rev-parse", "HEAD"))
	f.equal("paths", fmt.Sprint(got.Moved, got.Paths), "true [README.md new/file.txt src/deep/er/file.txt state/dags/checks.json]")
	f.equal("README", f.read("README.md"), "hello again\n")
	f.equal("tracking", f.git("rev-parse", "origin/main"), f.git("rev-parse", "HEAD"))
	if _, err := os.Stat(f.path("src/deep")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty folder is left: %v", err)
	}
	f.clean()
	f.sound()
	if again, _ := f.adopt(); again.Moved {
		t.Errorf("adopted twice: %+v", again)
	}
}

func TestAdoptAheadAndPush(t *testing.T) {
	t.Parallel()
	f, _, bare := shared(t)
	hash := f.author("mine", map[string]string{"README.md": "mine\n"})
	got, m := f.adopt()
	if got.Moved {
		t.Errorf("%+v", got)
	}
	if err := m.Push(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	f.equal("remote", (&fixture{t, bare}).git("rev-parse", "main"), hash)
}

// TestAdoptDiverged: commits of reconcile are dropped but for their records, those of people are replayed.
func TestAdoptDiverged(t *testing.T) {
	t.Parallel()
	f, other, bare := shared(t)
	other.author("theirs", map[string]string{"src/main.go": "package theirs\n"})
	other.record(map[string]string{checks: `{"phase":"Failed"}` + "\n"})
	other.push()
	f.record(map[string]string{checks: done, "state/runs/a/1.json": "{}\n"})
	f.write("README.md", "mine\n")
	f.git("add", "README.md")
	f.git("commit", "-q", "-m", "mine\n\nwith a body", "--author=Cy Other <cy@example.org>", "--date=2001-02-03T04:05:06Z")
	f.record(map[string]string{"state/dags/other.json": done, "state/runs/a/2.json": "{}\n"})

	got, m := f.adopt()
	f.equal("log", f.git("log", "--format=%an|%s|%b", "-3"), "Cy Other|mine|with a body\n\nBea User|Update status of dag/checks|"+
		"- dag/checks\n\nReconcile-Input: x\nReconcile-Objects: 1\n\nBea User|theirs|")
	f.equal("date", f.git("log", "-1", "--format=%aI %cn"), "2001-02-03T04:05:06+00:00 Ada User")
	f.equal("files", f.read(checks)+f.read("README.md")+f.read("src/main.go")+f.read("state/dags/other.json"),
		`{"phase":"Failed"}`+"\n"+"mine\n"+"package theirs\n"+`{"phase":"Pending"}`+"\n")
	f.equal("status", f.git("status", "--porcelain", "-uall"), "?? state/runs/a/1.json\n?? state/runs/a/2.json")
	f.equal("paths", fmt.Sprint(got.Paths), "[src/main.go state/dags/checks.json state/dags/other.json]")
	f.sound()
	hash := f.commit(f.open(), "state/runs/a/1.json", "state/runs/a/2.json")
	if err := m.Push(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	f.equal("remote", (&fixture{t, bare}).git("rev-parse", "main"), hash)
}

// TestAdoptMade: what the program made for people, and nobody edited, gives way to what the remote has in its place, and to nothing else.
func TestAdoptMade(t *testing.T) {
	t.Parallel()
	f, other, _ := shared(t)
	other.author("theirs", map[string]string{"made/here.yaml": "theirs\n", "made/committed.yaml": "theirs\n"})
	other.push()
	f.write("made/here.yaml", "mine\n")
	f.record(map[string]string{"made/committed.yaml": "mine\n", "made/alone.yaml": "mine\n"})
	f.adopt()
	f.equal("files", f.read("made/here.yaml")+f.read("made/committed.yaml")+f.read("made/alone.yaml"), "theirs\ntheirs\nmine\n")
	f.clean()
	other.git("rm", "-q", "made/here.yaml")
	other.git("commit", "-q", "-m", "not any more")
	other.push()
	f.adopt()
	if _, err := os.Stat(f.path("made/here.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was removed there is here: %v", err)
	}
	f.clean()
	f.sound()
}

// TestAdoptConflicts: whatever the user did in the way of the tip, nothing changes, and the message names the file.
func TestAdoptConflicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		theirs, mine func(f *fixture)
		path         string
	}{
		"local commit": {change, func(f *fixture) { f.author("mine", map[string]string{"README.md": "mine\n"}) }, "README.md"},
		"local merge": {change, func(f *fixture) {
			f.git("checkout", "-q", "-b", "side")
			f.author("side", map[string]string{"side.txt": "x"})
			f.git("checkout", "-q", "main")
			f.git("merge", "-q", "--no-ff", "-m", "merge", "side")
		}, "merge"},
		"unstaged":        {change, func(f *fixture) { f.write("README.md", "mine\n") }, "README.md"},
		"staged":          {change, func(f *fixture) { f.write("README.md", "mine\n"); f.git("add", "README.md") }, "README.md"},
		"staged and back": {change, stagedAndBack, "README.md"},
		"deleted":         {change, func(f *fixture) { f.remove("README.md") }, "README.md"},
		"staged deletion": {change, func(f *fixture) { f.git("rm", "-q", "--cached", "README.md") }, "README.md"},
		"executable":      {change, func(f *fixture) { os.Chmod(f.path("README.md"), 0o755) }, "README.md"},
		"a folder": {change, func(f *fixture) {
			f.remove("README.md")
			f.write("README.md/x", "x")
		}, "README.md"},
		"untracked":        {addNew, func(f *fixture) { f.write("new/file.txt", "mine\n") }, "new/file.txt"},
		"untracked parent": {addNew, func(f *fixture) { f.write("new", "mine\n") }, "new/file.txt"},
		"staged new":       {addNew, func(f *fixture) { f.write("new/file.txt", "mine\n"); f.git("add", "new") }, "new/file.txt"},
		"intent to add":    {addNew, func(f *fixture) { f.write("new/file.txt", "mine\n"); f.git("add", "-N", "new") }, "new/file.txt"},
		"ignored": {addNew, func(f *fixture) {
			f.write(".git/info/exclude", "new\n")
			f.write("new/file.txt", "mine\n")
		}, "new/file.txt"},
		"linked folder": {addNew, func(f *fixture) { os.Symlink("src", f.path("new")) }, "new/file.txt"},
		"removed there, changed here": {func(f *fixture) { f.git("rm", "-q", "README.md"); f.git("commit", "-qm", "rm") },
			func(f *fixture) { f.write("README.md", "mine\n") }, "README.md"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, other, _ := shared(t)
			c.theirs(other)
			other.push()
			c.mine(f)
			head, status, diff := f.git("rev-parse", "HEAD"), f.git("status", "--porcelain", "--ignored"), f.git("diff", "HEAD")
			_, err := f.remote().pull(f)
			var conflict *Conflict
			if !errors.As(err, &conflict) || !strings.Contains(err.Error(), c.path) || !strings.Contains(err.Error(), "run again") {
				t.Errorf("adopt: %v; want a conflict about %s", err, c.path)
			}
			f.equal("HEAD", f.git("rev-parse", "HEAD"), head)
			f.equal("status", f.git("status", "--porcelain", "--ignored"), status)
			f.equal("diff", f.git("diff", "HEAD"), diff)
			f.sound()
		})
	}
}

func change(f *fixture) { f.author("theirs", map[string]string{"README.md": "theirs\n"}) }
func addNew(f *fixture) { f.author("theirs", map[string]string{"new/file.txt": "theirs\n"}) }

func stagedAndBack(f *fixture) {
	f.write("README.md", "mine\n")
	f.git("add", "README.md")
	f.write("README.md", "hello\n")
}

// TestAdoptBesideTheUser: what the user did elsewhere, or did likewise, stays, and does not hinder.
func TestAdoptBesideTheUser(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mine func(f *fixture)
		want string // git status afterwards
	}{
		"unstaged elsewhere":  {func(f *fixture) { f.write("src/main.go", "package mine\n") }, " M src/main.go"},
		"staged elsewhere":    {func(f *fixture) { f.write("src/main.go", "package mine\n"); f.git("add", "src/main.go") }, "M  src/main.go"},
		"staged new":          {func(f *fixture) { f.write("mine.txt", "mine\n"); f.git("add", "mine.txt") }, "A  mine.txt"},
		"untracked":           {func(f *fixture) { f.write("mine.txt", "mine\n") }, "?? mine.txt"},
		"the same":            {func(f *fixture) { f.write("README.md", "theirs\n") }, ""},
		"the same, staged":    {func(f *fixture) { f.write("README.md", "theirs\n"); f.git("add", "README.md") }, ""},
		"touched":             {func(f *fixture) { f.write("README.md", "hello\n") }, ""},
		"our status, changed": {func(f *fixture) { f.write(checks, "mine\n") }, ""},
		"our status, gone":    {func(f *fixture) { f.remove(checks) }, ""},
		"another status":      {func(f *fixture) { f.write("state/dags/other.json", "mine\n") }, " M state/dags/other.json"},
		"our status, staged":  {func(f *fixture) { f.write(checks, "mine\n"); f.git("add", checks) }, "MM " + checks},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, other, _ := shared(t)
			change(other)
			other.record(map[string]string{checks: done})
			other.push()
			c.mine(f)
			f.adopt()
			f.equal("HEAD", f.git("rev-parse", "HEAD"), other.git("rev-parse", "HEAD"))
			f.equal("status", f.git("status", "--porcelain"), c.want)
			f.equal("files", f.read("README.md")+f.read(checks), "theirs\n"+done)
			f.sound()
		})
	}
}

// TestAdoptFrom: the kinds of repository that the local side may be.
func TestAdoptFrom(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(f *fixture, bare string) *fixture{
		"shallow": func(f *fixture, bare string) *fixture { return f.clone("file://"+bare, "--depth=1") },
		"partial": func(f *fixture, bare string) *fixture {
			(&fixture{f.T, bare}).git("config", "uploadpack.allowFilter", "true")
			return f.clone("file://"+bare, "--filter=blob:none")
		},
		"linked work tree": func(f *fixture, bare string) *fixture {
			linked := &fixture{f.T, filepath.Join(resolved(f.T, f.TempDir()), "linked")}
			f.git("checkout", "-q", "-b", "other")
			f.git("worktree", "add", "-q", linked.dir, "main")
			return linked
		},
		"untracked cache": func(f *fixture, _ string) *fixture { f.git("update-index", "--untracked-cache"); return f },
		"split index":     func(f *fixture, _ string) *fixture { f.git("update-index", "--split-index"); return f },
		"sparse checkout": func(f *fixture, _ string) *fixture { f.git("sparse-checkout", "set", "state"); return f },
		"packed refs":     func(f *fixture, _ string) *fixture { f.git("pack-refs", "--all"); return f },
		"crlf":            func(f *fixture, _ string) *fixture { f.git("config", "core.autocrlf", "true"); return f },
		"no commit yet": func(f *fixture, bare string) *fixture {
			fresh := &fixture{f.T, resolved(f.T, f.TempDir())}
			fresh.git("init", "-q", "-b", "main")
			fresh.git("remote", "add", "origin", bare)
			return fresh
		},
		"submodule of another": func(f *fixture, bare string) *fixture {
			outer := newFixture(f.T)
			outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", bare, "inner")
			return &fixture{f.T, filepath.Join(outer.dir, "inner")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, other, bare := shared(t)
			f = prepare(f, bare)
			change(other)
			other.record(map[string]string{checks: done, "state/runs/x.json": "{}\n"})
			other.push()
			f.adopt()
			f.equal("HEAD", f.git("rev-parse", "HEAD"), other.git("rev-parse", "HEAD"))
			f.equal("status", f.git("status", "--porcelain"), "")
			f.equal("status file", f.read(checks), done)
			want := map[string]string{"sparse checkout": "theirs\n", "crlf": "theirs\r\n"}[name]
			if want == "" {
				want = "theirs\n"
			}
			if name != "sparse checkout" {
				f.equal("README.md", f.read("README.md"), want)
			}
			f.sound()
		})
	}
}

// TestAdoptShallowWithoutBase: a clone that was cut between the two is deepened.
func TestAdoptShallowWithoutBase(t *testing.T) {
	t.Parallel()
	f, other, bare := shared(t)
	f = f.clone("file://"+bare, "--depth=1")
	for i := range 3 {
		other.author("more", map[string]string{"README.md": fmt.Sprintln("more", i)})
	}
	other.push()
	f.git("fetch", "-q", "--depth=1", "origin", "main")
	f.adopt()
	f.equal("HEAD", f.git("rev-parse", "HEAD"), other.git("rev-parse", "HEAD"))
	f.clean()
}

func TestAdoptUnrelated(t *testing.T) {
	t.Parallel()
	f, _, _ := shared(t)
	f.git("checkout", "-q", "--orphan", "fresh")
	f.git("commit", "-q", "-m", "another beginning")
	f.git("branch", "-qM", "fresh", "main")
	var conflict *Conflict
	if _, err := f.remote().pull(f); !errors.As(err, &conflict) || !strings.Contains(err.Error(), "no commit in common") {
		t.Errorf("unrelated histories: %v", err)
	}
	f.clean()
}

func TestAdoptDetached(t *testing.T) {
	t.Parallel()
	f, other, bare := shared(t)
	change(other)
	other.push()
	f.git("checkout", "-q", "--detach")
	if _, err := f.open().Remote(t.Context(), "", ""); err == nil || !strings.Contains(err.Error(), "detached") {
		t.Errorf("detached and without a name: %v", err)
	}
	m, err := f.open().Remote(t.Context(), "", "main")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.pull(f); err != nil {
		t.Fatal(err)
	}
	f.equal("HEAD", f.git("rev-parse", "HEAD"), other.git("rev-parse", "HEAD"))
	f.equal("still detached", f.git("rev-parse", "--symbolic-full-name", "HEAD"), "HEAD")
	f.clean()
	hash := f.record(map[string]string{checks: done})
	if err := m.Push(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	f.equal("remote", (&fixture{t, bare}).git("rev-parse", "main"), hash)
	f.git("checkout", "-q", "-b", "elsewhere")
	var conflict *Conflict
	if _, err := m.pull(f); !errors.As(err, &conflict) {
		t.Errorf("another branch was checked out meanwhile: %v", err)
	}
}

// TestAdoptConverted: files that are checked out as something else than their blobs.
func TestAdoptConverted(t *testing.T) {
	t.Parallel()
	f, other, bare := shared(t)
	crlf := map[string]string{".gitattributes": "*.txt text eol=crlf\n*.bin filter=shout\n", "a.txt": "one\n", "b.txt": "one\n", "x.bin": "loud\n"}
	other.author("convert", crlf)
	other.push()
	f = f.clone(bare)
	f.git("config", "filter.shout.clean", "tr A-Z a-z")
	f.git("config", "filter.shout.smudge", "tr a-z A-Z")
	f.git("checkout", "-q", "HEAD", "--", "x.bin")
	f.remove("x.bin")
	f.git("checkout", "-q", "--", "x.bin")
	f.equal("before", f.read("a.txt")+f.read("x.bin"), "one\r\nLOUD\n")
	other.author("two", map[string]string{"a.txt": "two\n", "x.bin": "louder\n", ".gitattributes": crlf[".gitattributes"] + "*.md text eol=crlf\n",
		"README.md": "theirs\n"})
	other.push()
	f.write("x.bin", "LOUD\n") // touched: only its cleaned content tells that it is unchanged
	f.write("b.txt", "mine\r\n")
	f.adopt()
	f.equal("after", f.read("a.txt")+f.read("x.bin")+f.read("README.md"), "two\r\nLOUDER\ntheirs\r\n")
	f.equal("status", f.git("status", "--porcelain"), " M b.txt")
	f.sound()
}

// TestAdoptFilteredState: files of reconcile's may have filters, too.
func TestAdoptFilteredState(t *testing.T) {
	t.Parallel()
	f, other, _ := shared(t)
	for _, g := range []*fixture{f, other} {
		g.git("config", "filter.shout.clean", "tr A-Z a-z")
		g.git("config", "filter.shout.smudge", "tr a-z A-Z")
	}
	other.author("convert", map[string]string{".gitattributes": "state/** filter=shout\n"})
	other.record(map[string]string{checks: "ONE\n", "state/gone.json": "X\n"})
	other.push()
	f.adopt()
	f.equal("added", f.read(checks)+f.read("state/gone.json"), "ONE\nX\n")
	other.remove("state/gone.json")
	other.record(map[string]string{checks: "TWO\n"})
	other.git("commit", "-q", "-a", "-m", "less")
	other.push()
	f.write(checks, "MINE\n") // a status is decided anew
	f.adopt()
	f.equal("changed", f.read(checks), "TWO\n")
	f.clean()
	f.sound()
}

// TestStorable: a filter that must work and does not is told of before anything is committed.
func TestStorable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(".gitattributes", "state/** filter=lost\nother/** working-tree-encoding=UTF-16\n")
	r := f.open()
	if err := r.Storable(t.Context(), "state/x.json", "specs/x.json"); err != nil {
		t.Errorf("a filter that nobody knows: %v", err)
	}
	f.git("config", "filter.lost.clean", "no-such-program")
	f.git("config", "filter.lost.required", "true")
	if err := r.Storable(t.Context(), "state/x.json"); err == nil || !strings.Contains(err.Error(), "state/** -filter") {
		t.Errorf("a filter that is missing: %v", err)
	}
	if err := r.Storable(t.Context(), "other/x.json"); err == nil || !strings.Contains(err.Error(), "BOM") {
		t.Errorf("an encoding that it is not in: %v", err)
	}
	f.write(".gitattributes", "* filter=lost\nstate/** -filter -ident !working-tree-encoding\n")
	if err := f.open().Storable(t.Context(), "state/x.json"); err != nil {
		t.Errorf("exempted: %v", err)
	}
}

// TestAdoptLargeFiles: pointers of git-lfs are filled in by its filter; where that is demanded and missing, nothing changes.
func TestAdoptLargeFiles(t *testing.T) {
	t.Parallel()
	f, other, _ := shared(t)
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 3\n"
	other.author("large", map[string]string{".gitattributes": "*.iso filter=lfs diff=lfs merge=lfs -text\n", "x.iso": pointer})
	other.push()
	f.git("config", "filter.lfs.smudge", "false")
	f.git("config", "filter.lfs.required", "true")
	head := f.git("rev-parse", "HEAD")
	if _, err := f.remote().pull(f); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("a filter that fails: %v", err)
	}
	f.equal("HEAD", f.git("rev-parse", "HEAD"), head)
	f.clean()
	f.git("config", "filter.lfs.smudge", "echo the content")
	f.git("config", "filter.lfs.clean", "printf '%s' '"+strings.TrimSuffix(pointer, "\n")+"'; echo")
	f.adopt()
	f.equal("content", f.read("x.iso"), "the content\n")
	f.clean()
	f.sound()
}

// TestAdoptLinksModesModules: what is more than content.
func TestAdoptLinksModesModules(t *testing.T) {
	t.Parallel()
	f, other, _ := shared(t)
	os.Symlink("README.md", other.path("link"))
	os.Symlink("src", other.path("gone"))
	other.git("add", "link", "gone")
	other.author("links", map[string]string{"run.sh": "#!/bin/sh\n"})
	other.push()
	f.adopt()
	inner := newFixture(t)
	os.Remove(other.path("link"))
	os.Symlink("src/main.go", other.path("link"))
	other.git("rm", "-q", "gone")
	other.git("update-index", "--add", "--cacheinfo", "160000,"+inner.git("rev-parse", "HEAD")+",module")
	os.Chmod(other.path("run.sh"), 0o755)
	os.Chmod(other.path(checks), 0o755)
	other.git("add", "link", "run.sh", checks)
	other.git("commit", "-qm", "more")
	other.push()
	f.adopt()
	f.clean()
	to, err := os.Readlink(f.path("link"))
	fi, statErr := os.Stat(f.path("run.sh"))
	if err != nil || statErr != nil || to != "src/main.go" || fi.Mode()&0o100 == 0 {
		t.Errorf("link to %s, %v; run.sh %v, %v", to, err, fi.Mode(), statErr)
	}
	f.equal("HEAD", f.git("rev-parse", "HEAD"), other.git("rev-parse", "HEAD"))
	other.git("rm", "-q", "--cached", "module")
	other.git("commit", "-qm", "no module")
	other.push()
	f.adopt()
	f.equal("files", f.git("ls-files", "module"), "")
	f.clean()
	f.sound()
}

// TestAdoptPending: what a runner left behind is taken in by the next one, and removed once it is on the branch.
func TestAdoptPending(t *testing.T) {
	t.Parallel()
	f, other, bare := shared(t)
	hash := other.record(map[string]string{checks: done, "state/runs/a/1.json": "left\n"})
	left := other.remote()
	if err := left.PushPending(t.Context(), "run-1", hash); err != nil {
		t.Fatal(err)
	}
	if err := left.PushPending(t.Context(), "run-1", hash); err != nil {
		t.Errorf("left twice: %v", err)
	}
	person := other.author("mine", map[string]string{"README.md": "mine\n"})
	if err := left.PushPending(t.Context(), "run-2", person); err != nil {
		t.Fatal(err)
	}
	if err := left.PushPending(t.Context(), "run-1", person); !errors.Is(err, ErrRefused) {
		t.Errorf("a name that is taken: %v", err)
	}
	m := f.remote()
	got, err := m.pull(f)
	if err != nil || !strings.Contains(got.Warning, "refs/reconcile/pending/run-2") {
		t.Fatalf("%+v, %v", got, err)
	}
	f.equal("paths", fmt.Sprint(got.Paths), "[state/runs/a/1.json]")
	f.equal("status", f.git("status", "--porcelain", "-uall"), "?? state/runs/a/1.json")
	if again, err := m.pull(f); err != nil || again.Moved || again.Warning != "" {
		t.Errorf("taken in twice: %+v, %v", again, err)
	}
	if err := m.Push(t.Context(), f.commit(f.open(), "state/runs/a/1.json")); err != nil {
		t.Fatal(err)
	}
	refs := func() string {
		return (&fixture{t, bare}).git("for-each-ref", "--format=%(refname)", "refs/reconcile")
	}
	f.equal("references", refs(), "refs/reconcile/pending/run-2")        // it changes what is a person's
	if err := left.PushPending(t.Context(), "run-3", hash); err != nil { // again, with nothing that is not on the branch
		t.Fatal(err)
	}
	if got, err := m.pull(f); err != nil || got.Moved {
		t.Errorf("%+v, %v", got, err)
	}
	f.equal("references", refs(), "refs/reconcile/pending/run-2")
}

func TestAdoptHostilePaths(t *testing.T) {
	t.Parallel()
	f, other, bare := shared(t)
	blob := other.git("hash-object", "-w", "README.md")
	inner := other.gitInput("100644 blob "+blob+"\tconfig\n", "mktree")
	for _, name := range []string{".GIT", "git~1", ".git . "} {
		tree := other.gitInput("040000 tree "+inner+"\t"+name+"\n", "mktree")
		hash := other.git("commit-tree", "-p", "HEAD", "-m", "evil", tree)
		other.git("push", "-q", "-f", bare, hash+":refs/heads/main")
		var conflict *Conflict
		if _, err := f.remote().pull(f); !errors.As(err, &conflict) {
			t.Errorf("%q: %v", name, err)
		}
	}
	f.clean()
}

// gitInput runs git with text on its standard input.
func (f *fixture) gitInput(text string, args ...string) string {
	f.Helper()
	k := f.open().command.(*command)
	out, err := k.run(f.Context(), call{stdin: []byte(text)}, args...)
	if err != nil {
		f.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestRemoteNames(t *testing.T) {
	t.Parallel()
	f, _, bare := shared(t)
	f.git("remote", "add", "upstream", bare)
	f.git("config", "branch.main.remote", "upstream")
	f.git("config", "branch.main.merge", "refs/heads/trunk")
	m, err := f.open().Remote(t.Context(), "", "")
	if err != nil || m.String() != "upstream/trunk" {
		t.Errorf("%v, %v", m, err)
	}
	if m, err = f.open().Remote(t.Context(), "origin", "main"); err != nil || m.String() != "origin/main" {
		t.Errorf("%v, %v", m, err)
	}
	for _, bad := range [][2]string{{"nowhere", ""}, {"--upload-pack=x", ""}, {"https://a:b@example.org/x", ""}, {"", "other"}, {"", "a..b"}} {
		if _, err := f.open().Remote(t.Context(), bad[0], bad[1]); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	wide := &fixture{t, resolved(t, t.TempDir())}
	wide.git("init", "-q", "--object-format=sha256")
	if _, err := wide.open().Remote(t.Context(), "", ""); err == nil || !strings.Contains(err.Error(), "sha256") ||
		!strings.Contains(err.Error(), "leave out --push") {
		t.Errorf("SHA-256: %v", err)
	}
	f.git("config", "core.repositoryformatversion", "1")
	f.git("config", "extensions.refstorage", "reftable")
	if _, err := f.open().Remote(t.Context(), "", ""); err == nil || !strings.Contains(err.Error(), "git refs migrate") {
		t.Errorf("reftable: %v", err)
	}
	if !slices.Contains(m.config, "core.fsyncMethod=batch") {
		t.Error("what is fetched is not synced")
	}
}

// TestPushAddress: what is pushed elsewhere than it is fetched from is not shared; another way to the same place is.
func TestPushAddress(t *testing.T) {
	t.Parallel()
	f, _, _ := shared(t)
	for _, c := range []struct {
		fetch, push string
		same        bool
	}{
		{"https://Example.org/a/b.git", "git@example.org:a/b", true},
		{"https://bea:secret@example.org/a/b", "ssh://git@example.org:22/a/b.git/", true},
		{"/srv/git/b.git", "/srv/git/b", true},
		{"https://example.org/a/b", "https://example.org/a/c", false},
		{"https://example.org/a/b", "https://bea:secret@example.com/a/b", false},
		{"/srv/git/b.git", "/srv/other/b.git", false},
		{"https://example.org/a/b", "git@example.org:c:a/b", false},
	} {
		f.git("config", "remote.origin.url", c.fetch)
		f.git("config", "remote.origin.pushurl", c.push)
		_, err := f.open().Remote(t.Context(), "", "")
		if (err == nil) != c.same || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s and %s: %v", c.fetch, c.push, err)
		}
	}
}

// TestEmptyRemote: a remote without the branch gets it.
func TestEmptyRemote(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bare := &fixture{t, resolved(t, t.TempDir())}
	bare.git("init", "-q", "--bare", "-b", "main")
	f.git("remote", "add", "origin", bare.dir)
	m := f.remote()
	tip, err := m.Turn(t.Context())
	if err != nil || tip.Head != "" {
		t.Fatalf("%+v, %v", tip, err)
	}
	if got, err := m.Adopt(t.Context(), tip, ours); err != nil || got.Moved {
		t.Errorf("%+v, %v", got, err)
	}
	hash := f.record(map[string]string{checks: done})
	if err := m.Push(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	bare.equal("remote", bare.git("rev-parse", "main"), hash)
	f.clean()
}

// TestAdoptBusy: in the middle of a merge, and while git holds the index, nothing happens but an error.
func TestAdoptBusy(t *testing.T) {
	t.Parallel()
	for name, busy := range map[string]func(f *fixture) (free string){
		"merge": func(f *fixture) string {
			f.write(".git/MERGE_HEAD", f.git("rev-parse", "HEAD")+"\n")
			return ".git/MERGE_HEAD"
		},
		"index": func(f *fixture) string { f.write(".git/index.lock", ""); return ".git/index.lock" },
		"branch": func(f *fixture) string {
			f.write(".git/refs/heads/main.lock", "")
			return ".git/refs/heads/main.lock"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, other, _ := shared(t)
			change(other)
			other.record(map[string]string{checks: done})
			other.push()
			status := f.git("status", "--porcelain")
			m, err := f.hasty().Remote(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			free := busy(f)
			if _, err := m.pull(f); !errors.Is(err, ErrBusy) {
				t.Errorf("adopt: %v", err)
			}
			f.equal("files", f.read("README.md"), "hello\n")
			f.remove(free)
			f.equal("status", f.git("status", "--porcelain"), status)
			if _, err := m.pull(f); err != nil {
				t.Error(err)
			}
			f.equal("HEAD", f.git("rev-parse", "HEAD"), other.git("rev-parse", "HEAD"))
			f.clean()
			f.sound()
		})
	}
}

// TestReady: what is to be pushed is what the shared branch is at, and nothing while something else is checked out.
func TestReady(t *testing.T) {
	t.Parallel()
	f, _, _ := shared(t)
	m, err := f.hasty().Remote(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	ready := func(want string, refused func(error) bool) {
		t.Helper()
		if got, err := m.Ready(t.Context()); err == nil && got != want || (err != nil) != (want == "") || err != nil && !refused(err) {
			t.Errorf("ready is %q: %v", got, err)
		}
	}
	conflict := func(err error) bool { return errors.As(err, new(*Conflict)) }
	busy := func(err error) bool { return errors.Is(err, ErrBusy) }
	ready(f.git("rev-parse", "main"), nil)
	f.git("switch", "-q", "-c", "feature")
	ready("", conflict)
	f.git("checkout", "-q", "--detach")
	ready("", conflict)
	f.git("switch", "-q", "main")
	f.write(".git/rebase-merge/head-name", "refs/heads/main\n")
	ready("", busy)
	f.remove(".git/rebase-merge/head-name")
	f.remove(".git/rebase-merge")
	ready(f.git("rev-parse", "main"), nil)
}
