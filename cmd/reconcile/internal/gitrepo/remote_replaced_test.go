package gitrepo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// replacing is a repository in which a file, a link and two folders are to become something else, and a commit on the remote
// that does it.
func replacing(t *testing.T) (f, other *fixture) {
	f, other, _ = shared(t)
	other.author("before", map[string]string{"file": "file\n", "dir/a": "a\n", "dir/deep/b": "b\n", "links/a": "a\n"})
	other.link("../README.md", "links/link")
	other.link("src", "link")
	other.git("commit", "-qm", "links")
	other.push()
	f.git("pull", "-q", "--ff-only", "origin", "main")
	other.git("rm", "-rq", "file", "dir", "links", "link")
	other.link("README.md", "links")
	other.author("after", map[string]string{"file/now/a": "folder\n", "dir": "file\n", "link/a": "a\n"})
	other.push()
	return f, other
}

func (f *fixture) link(to, name string) {
	f.Helper()
	if err := os.Symlink(to, f.path(name)); err != nil {
		f.Fatal(err)
	}
	f.git("add", name)
}

// names lists what is in the work tree.
func (f *fixture) names() string {
	f.Helper()
	var all []string
	err := filepath.WalkDir(f.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == ".git" {
			return errors.Join(err, fs.SkipDir)
		}
		all = append(all, strings.TrimPrefix(p, f.dir)+" "+d.Type().String())
		return nil
	})
	if err != nil && !errors.Is(err, fs.SkipDir) {
		f.Fatal(err)
	}
	return strings.Join(all, "\n")
}

// TestAdoptReplaces: a file may become a folder, and the reverse, as with git checkout, if nothing of the user is lost.
func TestAdoptReplaces(t *testing.T) {
	t.Parallel()
	nothing := func(*fixture) {}
	for name, c := range map[string]struct {
		mine func(f *fixture)
		want string // git status afterwards
	}{
		"clean":             {nothing, ""},
		"beside":            {func(f *fixture) { f.write("src/main.go", "package mine\n"); f.write("dirt", "x") }, " M src/main.go\n?? dirt"},
		"an empty folder":   {func(f *fixture) { os.MkdirAll(f.path("dir/deep/empty/er"), 0o755) }, ""},
		"an index of git's": {func(f *fixture) { f.git("update-index", "--split-index") }, ""},
		"the same, staged": {func(f *fixture) {
			f.git("rm", "-q", "file")
			f.write("file/now/a", "folder\n")
			f.git("add", "file")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, other := replacing(t)
			c.mine(f)
			f.adopt()
			f.equal("HEAD", f.git("rev-parse", "HEAD"), other.git("rev-parse", "HEAD"))
			f.equal("status", f.git("status", "--porcelain"), c.want)
			f.equal("files", f.read("file/now/a")+f.read("dir")+f.read("link/a")+f.read("links"), "folder\nfile\na\nhello\n")
			f.git("stash", "-uq")
			f.equal("names", f.names(), other.names())
			f.sound()
		})
	}
}

// TestAdoptReplacesNothingOfTheUser: nothing happens if a file of the user is in the way.
func TestAdoptReplacesNothingOfTheUser(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mine func(f *fixture)
		path string
	}{
		"untracked": {func(f *fixture) { f.write("dir/deep/mine", "mine\n") }, "dir"},
		"ignored": {func(f *fixture) {
			f.write(".git/info/exclude", "mine\n")
			f.write("dir/deep/mine", "mine\n")
		}, "dir"},
		"staged new":        {func(f *fixture) { f.write("dir/mine", "mine\n"); f.git("add", "dir/mine") }, "dir"},
		"changed in folder": {func(f *fixture) { f.write("dir/deep/b", "mine\n") }, "dir/deep/b"},
		"changed file":      {func(f *fixture) { f.write("file", "mine\n") }, "file"},
		"staged file":       {func(f *fixture) { f.write("file", "mine\n"); f.git("add", "file") }, "file"},
		"other link":        {func(f *fixture) { os.Remove(f.path("link")); os.Symlink("state", f.path("link")) }, "link"},
		"repository":        {func(f *fixture) { f.git("init", "-q", "dir/deep/repo") }, "dir"},
		"a folder of the user's": {func(f *fixture) {
			f.git("rm", "-q", "file")
			f.write("file/now/a", "mine\n")
		}, "file/now/a"},
		"a file for a folder": {func(f *fixture) {
			f.git("rm", "-rq", "dir")
			f.write("dir", "mine\n")
		}, "dir"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := replacing(t)
			c.mine(f)
			head, status, names := f.git("rev-parse", "HEAD"), f.git("status", "--porcelain", "--ignored"), f.names()
			_, err := f.remote().pull(f)
			var conflict *Conflict
			if !errors.As(err, &conflict) || !strings.Contains(strings.Join(conflict.Paths, " ")+" ", c.path+" ") {
				t.Errorf("adopt: %v; want a conflict about %s", err, c.path)
			}
			f.equal("HEAD", f.git("rev-parse", "HEAD"), head)
			f.equal("status", f.git("status", "--porcelain", "--ignored"), status)
			f.equal("names", f.names(), names)
			f.sound()
		})
	}
}
