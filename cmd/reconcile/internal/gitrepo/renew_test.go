//go:build linux

package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// contents describes all that is below a folder, without git's index, which has the times of files.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var s strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err1 := filepath.Rel(dir, p)
		fi, err2 := d.Info()
		if err := errors.Join(err1, err2); err != nil || name == ".git/index" {
			return err
		}
		text := ""
		switch {
		case fi.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text = string(data)
		case fi.Mode()&fs.ModeSymlink != 0:
			text, err = os.Readlink(p)
		}
		fmt.Fprintf(&s, "%s %s %q\n", fi.Mode(), name, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.String()
}

// TestRenews: whatever a program does in a checkout, it is then either exactly the commit again, or refused.
func TestRenews(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("run.sh", "#!/bin/sh\n")
	f.write("twin/file.txt", "peed\n")
	f.write(".gitignore", "ignored/\n")
	if err := errors.Join(os.Chmod(f.path("run.sh"), 0o755), os.Symlink("run.sh", f.path("link"))); err != nil {
		t.Fatal(err)
	}
	f.git("add", ".")
	f.git("commit", "-q", "-m", "second")
	first := f.git("rev-parse", "HEAD")
	f.remove("src/main.go")
	f.write("src/main.go/now/a/folder", "x\n")
	f.write("new/file", "new\n")
	f.git("add", ".")
	f.git("commit", "-q", "-m", "third")
	second := f.git("rev-parse", "HEAD")
	f.git("config", "core.trustctime", "false")
	f.git("config", "core.checkStat", "minimal")
	for _, r := range []*Repo{f.open(), f.byCommand()} {
		f.renews(r, first, second)
	}
}

// renews renews checkouts of the first commit in which programs did whatever they could, to both commits.
func (f *fixture) renews(r *Repo, first, second string) {
	t := f.T
	t.Helper()
	at := func(commit string) Checkout {
		co := Checkout{Dir: filepath.Join(t.TempDir(), "ws"), Index: filepath.Join(t.TempDir(), "index")}
		if err := r.Clone(t.Context(), co, commit, "check"); err != nil {
			t.Fatal(err)
		}
		return co
	}
	want := map[string]string{first: contents(t, at(first).Dir), second: contents(t, at(second).Dir)}
	elsewhere := filepath.Join(t.TempDir(), "kept")
	for name, tamper := range map[string]func(p func(string) string) error{
		"nothing": func(func(string) string) error { return nil },
		"the same size and time": func(p func(string) string) error {
			fi, err := os.Stat(p("src/deep/er/file.txt"))
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(p("src/deep/er/file.txt"), []byte("evil\n"), 0o666), os.Chtimes(p("src/deep/er/file.txt"), fi.ModTime(), fi.ModTime()))
		},
		"new files": func(p func(string) string) error {
			return errors.Join(os.Mkdir(p("ignored"), 0o777), os.WriteFile(p("ignored/x"), nil, 0o666), os.WriteFile(p("src/conftest.py"), nil, 0o666), os.Mkdir(p("empty"), 0o777))
		},
		"repositories": func(p func(string) string) error {
			return errors.Join(os.MkdirAll(p("src/.git/hooks"), 0o777), os.WriteFile(p("src/.git/config"), []byte("[core]\n"), 0o666), os.MkdirAll(p("own/.git"), 0o777))
		},
		"git": func(p func(string) string) error {
			return errors.Join(os.WriteFile(p(".git/config"), []byte("[filter \"x\"]\n\tclean = evil\n"), 0o666), os.MkdirAll(p(".git/hooks"), 0o777),
				os.WriteFile(p(".git/hooks/post-checkout"), []byte("evil"), 0o777), os.WriteFile(p(".git/index"), []byte("evil"), 0o666))
		},
		"modes": func(p func(string) string) error {
			return errors.Join(os.Chmod(p("run.sh"), 0o644), os.Chmod(p("README.md"), 0o777))
		},
		"folder mode": func(p func(string) string) error { return os.Chmod(p("src"), 0o500) },
		"gone":        func(p func(string) string) error { return errors.Join(os.RemoveAll(p("src")), os.Remove(p("link"))) },
		"links": func(p func(string) string) error {
			return errors.Join(os.Remove(p("link")), os.Symlink("README.md", p("link")), os.Remove(p("README.md")), os.Symlink(elsewhere, p("README.md")))
		},
		"a folder behind a link": func(p func(string) string) error {
			return errors.Join(os.Rename(p("src/deep"), p("src/hidden")), os.Symlink("hidden", p("src/deep")), os.WriteFile(p("src/hidden/er/more"), nil, 0o666))
		},
		"a folder outside": func(p func(string) string) error {
			return errors.Join(os.RemoveAll(p("state")), os.Symlink(filepath.Dir(elsewhere), p("state")))
		},
		"exchanged": func(p func(string) string) error {
			return errors.Join(os.Rename(p("twin/file.txt"), p("x")), os.Rename(p("src/deep/er/file.txt"), p("twin/file.txt")), os.Rename(p("x"), p("src/deep/er/file.txt")))
		},
		"a hard link": func(p func(string) string) error {
			return errors.Join(os.Remove(p("README.md")), os.Link(elsewhere, p("README.md")))
		},
		"kinds": func(p func(string) string) error {
			return errors.Join(os.Remove(p("README.md")), os.Mkdir(p("README.md"), 0o777), os.RemoveAll(p("twin")), os.WriteFile(p("twin"), nil, 0o666))
		},
	} {
		for _, to := range []string{first, second} {
			co := at(first)
			if err := errors.Join(os.WriteFile(elsewhere, []byte("kept\n"), 0o666), os.Chtimes(co.Index, time.Now().Add(time.Second), time.Now().Add(time.Second))); err != nil {
				t.Fatal(err) // so that the index is newer than what has the same second, as after a long check
			}
			if err := tamper(func(file string) string { return filepath.Join(co.Dir, file) }); err != nil {
				t.Fatal(name, err)
			}
			err := r.Renew(t.Context(), co, to, "check")
			switch refused := name == "folder mode" || name == "the same size and time" || name == "a folder behind a link"; {
			case err != nil && !refused:
				t.Errorf("%s: %v", name, err)
			case err == nil && contents(t, co.Dir) != want[to]:
				t.Errorf("%s: it has\n%s\nand not\n%s", name, contents(t, co.Dir), want[to])
			}
			if data, err := os.ReadFile(elsewhere); err != nil || string(data) != "kept\n" {
				t.Errorf("%s: what is elsewhere is %q, %v", name, data, err)
			}
			(&fixture{t, co.Dir}).renewedClean(err)
		}
	}
}

// renewedClean checks that git sees no change in a checkout that was renewed.
func (f *fixture) renewedClean(err error) {
	f.Helper()
	if err == nil {
		f.clean()
	}
}
