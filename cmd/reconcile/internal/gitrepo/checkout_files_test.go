package gitrepo

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// newCheckout is a checkout of the commit of HEAD.
func (f *fixture) newCheckout(r *Repo) (Checkout, *fixture) {
	f.Helper()
	co := Checkout{Dir: filepath.Join(f.TempDir(), "ws"), Index: filepath.Join(f.TempDir(), "index")}
	if err := r.Clone(f.Context(), co, f.git("rev-parse", "HEAD"), "reconcile/a/b"); err != nil {
		f.Fatal(err)
	}
	return co, &fixture{f.T, co.Dir}
}

// capture captures what is listed as not captured.
func (f *fixture) capture(r *Repo, co Checkout) Captured {
	f.Helper()
	changed, err := r.Uncaptured(f.Context(), co)
	if err != nil {
		f.Fatal(err)
	}
	got, err := r.Capture(f.Context(), Capture{Checkout: co, Base: f.git("rev-parse", "HEAD"), Changed: changed, Message: "Do it\n", Author: "A <a@b>", When: noon})
	if err != nil {
		f.Fatal(err)
	}
	return got
}

// TestRacyCheckout: an agent that changes a file in the tick of the clock in which it was checked out, to one of the same size, leaves
// the stat data that the index has.
func TestRacyCheckout(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.open()
	co, in := f.newCheckout(r)
	in.write("README.md", strings.Repeat("x", len(in.read("README.md"))))
	fi, err := os.Lstat(in.path("README.md"))
	if err != nil {
		t.Fatal(err)
	}
	data, _, _, err := readIndex(co.Index)
	if err != nil {
		t.Fatal(err)
	}
	ix, err := parseIndex(data)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := ix.find("README.md")
	statOf(fi).put(e.fixed)
	if err := writeFile(co.Index, ix.encode()); err != nil {
		t.Fatal(err)
	}
	for age, want := range map[time.Duration]int{0: 1, -time.Second: 1, time.Second: 0} { // of the index, after the file
		if err := os.Chtimes(co.Index, fi.ModTime().Add(age), fi.ModTime().Add(age)); err != nil {
			t.Fatal(err)
		}
		if found, err := r.Uncaptured(t.Context(), co); err != nil || len(found) != want {
			t.Errorf("the index is %s newer: %q, %v", age, found, err)
		}
	}
}

// TestConvertedCheckouts: files that git converts are checked out, compared and captured as git does it.
func TestConvertedCheckouts(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(f *fixture){
		"committed attributes": func(f *fixture) { f.write(".gitattributes", "*.md eol=crlf\n") },
		"attributes behind a name that sorts before": func(f *fixture) {
			f.write("!.md", "first\n")
			f.write(".gitattributes", "[attr]windows eol=crlf\n*.md windows\n")
		},
		"attributes of folders": func(f *fixture) { f.write("src/.gitattributes", "*.go eol=crlf\n") },
		"own attributes":        func(f *fixture) { f.write(".git/info/attributes", "*.md eol=crlf\n") },
		"configuration":         func(f *fixture) { f.git("config", "core.autocrlf", "true") },
		"a filter": func(f *fixture) {
			f.git("config", "filter.up.smudge", "tr a-z A-Z")
			f.git("config", "filter.up.clean", "tr A-Z a-z")
			f.write(".git/info/attributes", "*.md filter=up\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write("README.md", "read me\n")
			f.write("src/main.go", "package main\n")
			set(f)
			f.git("add", "--all")
			f.git("commit", "-q", "-m", "more")
			var text [2]string
			var got [2]Captured
			for i, r := range []*Repo{f.open(), f.byCommand()} {
				co, in := f.newCheckout(r)
				if first := f.capture(r, co); first.Commit != "" {
					t.Errorf("%d: a new checkout differs: %+v", i, first)
				}
				text[i] = in.read("README.md") + in.read("src/main.go")
				in.write("README.md", in.read("README.md")+"more\r\n")
				in.write("src/main.go", in.read("src/main.go")+"more\r\n")
				got[i] = f.capture(r, co)
			}
			if text[0] != text[1] || got[0].Commit != got[1].Commit || got[0].Commit == "" {
				t.Errorf("%q, %+v\ngit: %q, %+v", text[0], got[0], text[1], got[1])
			}
			if text[0] == "read me\npackage main\n" {
				t.Error("nothing was converted")
			}
		})
	}
}

// TestCheckoutReadsAttributes: a tree whose attributes convert none of its files is checked out without git.
func TestCheckoutReadsAttributes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(".gitattributes", "state/** merge=reconcile\n*.bin eol=crlf\n")
	f.write("src/.gitattributes", "*.svg eol=crlf\n")
	f.write("src/main.go", "package main\n")
	f.git("add", "--all")
	f.git("commit", "-q", "-m", "more")
	r := f.open()
	n, s := r.native.(*native), newObjectStore(r.layout)
	defer s.close()
	check := func() error {
		co := Checkout{Dir: f.TempDir(), Index: filepath.Join(f.TempDir(), "index")}
		return n.checkOut(t.Context(), s, co, filepath.Join(f.TempDir(), "index"), f.git("rev-parse", "HEAD"))
	}
	if err := check(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(f.path("src/.gitattributes")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../.gitattributes", f.path("src/.gitattributes")); err != nil {
		t.Fatal(err)
	}
	f.git("add", "--all")
	f.git("commit", "-q", "-m", "link")
	if err := check(); err == nil || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("attributes behind a link: %v", err)
	}
}

// TestFilesInSubmodules: files in the empty folder of a submodule are told, since git would leave them out, and so is another commit of a
// submodule that is checked out.
func TestFilesInSubmodules(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git("update-index", "--add", "--cacheinfo", "160000,"+f.git("rev-parse", "HEAD")+",sub")
	f.git("commit", "-q", "-m", "submodule")
	for _, r := range []*Repo{f.open(), f.byCommand()} {
		co, in := f.newCheckout(r)
		in.write("new", "1\n")
		if found, err := r.Uncaptured(t.Context(), co); err != nil || !slices.Equal(found, []string{"new"}) {
			t.Errorf("%q, %v", found, err)
		}
		in.write("sub/file", "lost\n")
		if _, err := r.Uncaptured(t.Context(), co); err == nil || !strings.HasPrefix(err.Error(), "sub is a submodule") {
			t.Errorf("files in it: %v", err)
		}
		if err := os.Remove(in.path("sub/file")); err != nil {
			t.Fatal(err)
		}
		in.git("init", "-q", "sub")
		in.write("sub/file", "its own\n")
		if _, err := r.Uncaptured(t.Context(), co); err != nil {
			t.Errorf("checked out: %v", err)
		}
		in.git("-C", "sub", "add", ".")
		in.git("-C", "sub", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "of nobody else")
		c := Capture{Checkout: co, Base: f.git("rev-parse", "HEAD"), Message: "moved", Author: "a <a@example.com>", When: time.Now()}
		if got, err := r.Capture(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "sub is a submodule") {
			t.Errorf("at another commit: %+v, %v", got, err)
		}
	}
}

// TestCapturesAfterGit: what git captured for an earlier version, and brought its index to, is part of the next capture, too.
func TestCapturesAfterGit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	here := f.open()
	co, in := f.newCheckout(here)
	in.write("one", "1\n")
	for _, args := range [][]string{{"add", "."}, {"write-tree"}} {
		git := exec.Command("git", append([]string{"-C", co.Dir}, args...)...)
		git.Env = append(os.Environ(), "GIT_INDEX_FILE="+co.Index)
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	in.write("two", "2\n")
	if got := f.capture(here, co); !slices.Equal(got.Files, []string{"one", "two"}) {
		t.Errorf("%+v", got)
	}
}

// TestCapturesBesideGit: a git command of a process that was killed has the index of a checkout locked, perhaps for ever.
func TestCapturesBesideGit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.byCommand()
	co, in := f.newCheckout(r)
	in.write("one", "1\n")
	if err := writeFile(co.Index+".lock", nil); err != nil {
		t.Fatal(err)
	}
	if got := f.capture(r, co); !slices.Equal(got.Files, []string{"one"}) {
		t.Errorf("%+v", got)
	}
	in.write("two", "2\n")
	if got := f.capture(r, co); !slices.Equal(got.Files, []string{"one", "two"}) {
		t.Errorf("the next time: %+v", got)
	}
}

// TestCheckoutOfAnotherFileSystem: where names or links are of another kind than git's, git decides.
func TestCheckoutOfAnotherFileSystem(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"core.ignorecase=true", "core.precomposeunicode=true", "core.symlinks=false"} {
		f := newFixture(t)
		f.git("config", setting[:strings.Index(setting, "=")], setting[strings.Index(setting, "=")+1:])
		r := f.open()
		r.command.(*command).git = filepath.Join(t.TempDir(), "git")
		co := Checkout{Dir: filepath.Join(t.TempDir(), "ws"), Index: filepath.Join(t.TempDir(), "index")}
		if err := r.Clone(t.Context(), co, f.git("rev-parse", "HEAD"), "reconcile/a/b"); err == nil {
			t.Errorf("%s: git was not asked", setting)
		}
	}
}
