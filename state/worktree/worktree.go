// Package worktree finds the top of a git work tree, by the rules of git. It runs nothing and reads no object.
package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/state/regular"
)

// Errors for errors.Is.
var (
	// ErrNone says that a folder is not in a work tree.
	ErrNone = errors.New("not in a git work tree")
	// errBroken says that a .git file names no git directory. git also stops there, and searches no further up.
	errBroken = errors.New("the file .git names no git directory; repair it with git worktree repair")
)

// Layout has the places of a repository's parts, as absolute paths.
type Layout struct {
	Top    string // of the work tree
	GitDir string // HEAD and index of this work tree
	Common string // objects, refs, configuration; the same as GitDir except for linked work trees
}

// Find returns the layout of the git work tree that contains dir, an absolute path, or of the nearest folder above. A folder
// .git counts if it has HEAD, objects and refs: an empty one is skipped, as by git. The error wraps ErrNone or errBroken, or
// is that of the file system.
func Find(dir string) (Layout, error) {
	for at := dir; ; at = filepath.Dir(at) {
		l, err := layoutAt(at)
		switch {
		case err != nil || l.GitDir != "":
			return l, err
		case isGitDir(at):
			return Layout{}, fmt.Errorf("%s: %w: %s is a bare repository or the inside of .git; point -C at a work tree",
				dir, ErrNone, at)
		case filepath.Dir(at) == at:
			return Layout{}, fmt.Errorf("%s: %w; run git init", dir, ErrNone)
		}
	}
}

// Below returns the slash path of dir below the top of its work tree; "" at the top, and outside of any.
func Below(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return ""
	}
	l, err := Find(abs)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(l.Top, abs)
	if err != nil || rel == "." {
		return ""
	}
	return filepath.ToSlash(rel)
}

// layoutAt returns the layout of the work tree whose top is at, or the zero layout if at is not a top.
func layoutAt(at string) (Layout, error) {
	dotgit := filepath.Join(at, ".git")
	fi, err := os.Stat(dotgit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Layout{}, nil
	case err != nil:
		return Layout{}, err
	case fi.IsDir() && isGitDir(dotgit):
		return withCommon(Layout{Top: at, GitDir: dotgit})
	case fi.IsDir():
		return Layout{}, nil
	}
	return linked(at, dotgit, fi)
}

// linked returns the layout of a work tree whose .git is a file that names the git directory.
func linked(at, dotgit string, fi fs.FileInfo) (Layout, error) {
	const limit = 1 << 16 // of a path
	if !fi.Mode().IsRegular() || fi.Size() > limit {
		return Layout{}, fmt.Errorf("%s: %w", dotgit, errBroken)
	}
	data, err := regular.ReadPath(dotgit)
	if err != nil {
		return Layout{}, err
	}
	target, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if !ok {
		return Layout{}, fmt.Errorf("%s: %w: it has no line \"gitdir: …\"", dotgit, errBroken)
	}
	l := Layout{Top: at, GitDir: Absolute(at, target)}
	if !isGitDir(l.GitDir) && !Exists(filepath.Join(l.GitDir, "commondir")) {
		return Layout{}, fmt.Errorf("%s: %w: it names %s", dotgit, errBroken, l.GitDir)
	}
	return withCommon(l)
}

func withCommon(l Layout) (Layout, error) {
	data, err := regular.ReadPath(filepath.Join(l.GitDir, "commondir"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.Common = l.GitDir
		return l, nil
	case err != nil:
		return Layout{}, err
	}
	l.Common = Absolute(l.GitDir, strings.TrimSpace(string(data)))
	return l, nil
}

// Absolute returns p as it is if it is absolute, else below base.
func Absolute(base, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(base, p)
}

func isGitDir(dir string) bool {
	return Exists(filepath.Join(dir, "HEAD")) && Exists(filepath.Join(dir, "objects")) && Exists(filepath.Join(dir, "refs"))
}

// Exists reports whether there is anything at p, such as a broken link.
func Exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}
