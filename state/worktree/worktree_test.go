package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a git directory, or what is left of one: the names of its parts. Its HEAD names a branch.
func repository(t *testing.T, dir string, parts ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if p == "HEAD" {
			write(t, filepath.Join(dir, p), "ref: refs/heads/main\n")
		} else if err := os.Mkdir(filepath.Join(dir, p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFind: the cases in which a folder or file .git begins a work tree, and those in which the search goes on above.
// A test of gitrepo compares the answers with git's.
func TestFind(t *testing.T) {
	t.Parallel()
	whole := []string{"HEAD", "objects", "refs"}
	for name, c := range map[string]struct {
		make  func(t *testing.T, top, sub string)
		below string // of sub/deep
		err   error
	}{
		"nothing in between": {func(*testing.T, string, string) {}, "sub/deep", nil},
		"an empty folder":    {func(t *testing.T, _, sub string) { repository(t, sub+"/.git") }, "sub/deep", nil},
		"a part of one":      {func(t *testing.T, _, sub string) { repository(t, sub+"/.git", "HEAD", "objects") }, "sub/deep", nil},
		"a damaged HEAD": {func(t *testing.T, _, sub string) {
			repository(t, sub+"/.git", whole...)
			write(t, sub+"/.git/HEAD", "ref: re")
		}, "sub/deep", nil},
		"an empty HEAD": {func(t *testing.T, _, sub string) {
			repository(t, sub+"/.git", whole...)
			write(t, sub+"/.git/HEAD", "")
		}, "sub/deep", nil},
		"a detached HEAD": {func(t *testing.T, _, sub string) {
			repository(t, sub+"/.git", whole...)
			write(t, sub+"/.git/HEAD", strings.Repeat("a0", 20)+"\n")
		}, "deep", nil},
		"a HEAD that is a link": {func(t *testing.T, _, sub string) {
			repository(t, sub+"/.git", "objects", "refs")
			symlink(t, "refs/heads/main", sub+"/.git/HEAD")
		}, "deep", nil},
		"files in place of folders": {func(t *testing.T, _, sub string) {
			repository(t, sub+"/.git", "HEAD", "objects")
			write(t, sub+"/.git/refs", "")
		}, "sub/deep", nil},
		"a repository": {func(t *testing.T, _, sub string) { repository(t, sub+"/.git", whole...) }, "deep", nil},
		"a link to one": {func(t *testing.T, _, sub string) {
			repository(t, sub+"/.real", whole...)
			symlink(t, ".real", sub+"/.git")
		}, "deep", nil},
		"a file": {func(t *testing.T, top, sub string) {
			repository(t, top+"/.git/modules/sub", whole...)
			write(t, sub+"/.git", "gitdir: ../.git/modules/sub\n")
		}, "deep", nil},
		"a linked work tree": {func(t *testing.T, top, sub string) {
			repository(t, top+"/.git/worktrees/sub", "HEAD")
			write(t, top+"/.git/worktrees/sub/commondir", "../..\n")
			write(t, sub+"/.git", "gitdir: "+top+"/.git/worktrees/sub\n")
		}, "deep", nil},
		"a file that names a damaged HEAD": {func(t *testing.T, top, sub string) {
			repository(t, top+"/.git/worktrees/sub")
			write(t, top+"/.git/worktrees/sub/HEAD", "\x00\x00")
			write(t, top+"/.git/worktrees/sub/commondir", "../..\n")
			write(t, sub+"/.git", "gitdir: ../.git/worktrees/sub\n")
		}, "", errBroken},
		"a file that names nothing": {func(t *testing.T, _, sub string) { write(t, sub+"/.git", "gitdir: ../gone\n") }, "", errBroken},
		"a file of something else":  {func(t *testing.T, _, sub string) { write(t, sub+"/.git", "hello\n") }, "", errBroken},
		"inside of .git":            {func(t *testing.T, _, sub string) { repository(t, sub, whole...) }, "", ErrNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			repository(t, top+"/.git", whole...)
			sub, deep := top+"/sub", top+"/sub/deep"
			repository(t, deep)
			c.make(t, top, sub)
			if _, err := Find(deep); !errors.Is(err, c.err) {
				t.Errorf("Find: %v, want %v", err, c.err)
			}
			if got := Below(deep); got != c.below {
				t.Errorf("Below: %q, want %q", got, c.below)
			}
		})
	}
}

// TestDamagedHead: where no other repository is above, the error says what is damaged and what to do.
func TestDamagedHead(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	repository(t, top+"/.git", "HEAD", "objects", "refs")
	write(t, top+"/.git/HEAD", "\x00")
	_, err := Find(top)
	if !errors.Is(err, ErrNone) || !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "HEAD names no branch and no commit; write") {
		t.Error(err)
	}
}

// TestLinkedWorkTree: a linked work tree has a HEAD of its own, and the objects of the other one.
func TestLinkedWorkTree(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	repository(t, top+"/.git", "HEAD", "objects", "refs")
	repository(t, top+"/.git/worktrees/w", "HEAD")
	write(t, top+"/.git/worktrees/w/commondir", "../..\n")
	repository(t, top+"/w")
	write(t, top+"/w/.git", "gitdir: ../.git/worktrees/w\n")
	l, err := Find(filepath.Join(top, "w"))
	want := Layout{Top: filepath.Join(top, "w"), GitDir: filepath.Join(top, ".git/worktrees/w"), Common: filepath.Join(top, ".git")}
	if err != nil || l != want {
		t.Errorf("%+v, %v; want %+v", l, err, want)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}
