// Package worktree finds the top of a git work tree, by the rules of git, and tells what is inside of a folder. It runs nothing and reads no object.
package worktree

import (
	"encoding/hex"
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
	// ErrDamaged says that a folder .git is no repository to git, although it has a HEAD.
	ErrDamaged = errors.New("damaged")
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
// .git counts if it has objects, refs and a HEAD that names a branch or a commit: others are skipped, as by git. The error
// wraps ErrNone, with ErrDamaged if one was skipped that has a HEAD, or errBroken, or is that of the file system.
func Find(dir string) (Layout, error) {
	var damaged error
	for at := dir; ; at = filepath.Dir(at) {
		l, err := layoutAt(at)
		switch dotgit := filepath.Join(at, ".git"); {
		case err != nil || l.GitDir != "":
			return l, err
		case defect(at) == "":
			return Layout{}, fmt.Errorf("%s: %w: %s is a bare repository or the inside of .git; point -C at a work tree",
				dir, ErrNone, at)
		case filepath.Dir(at) == at && damaged != nil:
			return Layout{}, fmt.Errorf("%s: %w: %w", dir, ErrNone, damaged)
		case filepath.Dir(at) == at:
			return Layout{}, fmt.Errorf("%s: %w; run git init", dir, ErrNone)
		case damaged == nil && Exists(filepath.Join(dotgit, "HEAD")):
			damaged = fmt.Errorf("%s is %w, and no repository to git: %s", dotgit, ErrDamaged, defect(dotgit))
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
	if rel, _ := Within(l.Top, abs); rel != "." {
		return rel
	}
	return ""
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
	case fi.IsDir() && defect(dotgit) == "":
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
	if d := defect(l.GitDir); d != "" {
		return Layout{}, fmt.Errorf("%s: %w: it names %s: %s", dotgit, errBroken, l.GitDir, d)
	}
	return withCommon(l)
}

// withCommon adds to l the folder that its git directory shares with other work trees.
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

// defect says why git does not take dir for a git directory; "" if it does. git waits for a pipe or a device in place of a
// file: Blocked reports those.
func defect(dir string) string {
	if !namesHead(filepath.Join(dir, "HEAD")) {
		return "HEAD names no branch and no commit; write \"ref: refs/heads/BRANCH\" into it"
	}
	l, err := withCommon(Layout{GitDir: dir})
	switch {
	case errors.Is(err, regular.ErrNot):
		return ""
	case err != nil:
		return err.Error()
	}
	for _, name := range []string{"objects", "refs"} {
		if fi, err := os.Stat(filepath.Join(l.Common, name)); err != nil || !fi.IsDir() {
			return "it has no folder " + name + "; run git init to make it"
		}
	}
	return ""
}

// namesHead reports whether git accepts a file as HEAD: a link into refs, a reference in refs, or an object id.
func namesHead(name string) bool {
	if to, err := os.Readlink(name); err == nil {
		return strings.HasPrefix(to, "refs/")
	}
	const limit = 1 << 16 // of a path
	data, err := regular.ReadPathUpTo(name, limit)
	if err != nil {
		fi, statErr := os.Stat(name)
		return statErr == nil && fi.Mode()&(fs.ModeNamedPipe|fs.ModeDevice) != 0
	}
	if ref, ok := strings.CutPrefix(string(data), "ref:"); ok {
		return strings.HasPrefix(strings.TrimLeft(ref, " \t\r\n\v\f"), "refs/")
	}
	const id = 40 // digits of SHA-1; those of SHA-256 begin with as many
	if len(data) < id {
		return false
	}
	_, err = hex.DecodeString(string(data[:id]))
	return err == nil
}

// Exists reports whether there is anything at p, such as a broken link.
func Exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}
