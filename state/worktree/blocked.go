package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/state/regular"
)

// errBlocked says that a file that git opens is a pipe or a device: git waits for it forever.
var errBlocked = errors.New("it is not a regular file, and git waits for it without end; remove it or put a file in its place")

// Blocked returns an error if git would wait for a named pipe or a device among the files that it reads in the repository of
// dir and in the folders. Of the repository it checks all but its objects and other branches; of folders, which are below
// the top, and of those above them, the attributes and ignore files. The error wraps errBlocked and is a *fs.PathError. Call
// it before git, or a library that reads as git does, is run; later changes are not seen.
func Blocked(dir string, folders ...string) error {
	l, err := Find(dir)
	var at *fs.PathError
	if errors.As(err, &at) && errors.Is(err, regular.ErrNot) {
		return &fs.PathError{Op: "read", Path: at.Path, Err: errBlocked}
	}
	if err != nil {
		return nil // outside a work tree, nothing is read
	}
	files := []string{filepath.Join(l.GitDir, "HEAD"), filepath.Join(l.GitDir, "index"), filepath.Join(l.GitDir, "config.worktree")}
	for _, name := range []string{"config", "packed-refs", "shallow", "info/attributes", "info/exclude", "info/grafts"} {
		files = append(files, filepath.Join(l.Common, filepath.FromSlash(name)))
	}
	if head, err := regular.ReadPath(files[0]); err == nil {
		if branch, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: "); ok {
			files = append(files, filepath.Join(l.Common, filepath.FromSlash(branch)))
		}
	}
	seen := map[string]bool{}
	for _, folder := range append(folders, dir) {
		for at := folder; !seen[at] && (at == l.Top || strings.HasPrefix(at, l.Top+string(filepath.Separator))); at = filepath.Dir(at) {
			seen[at] = true
			files = append(files, filepath.Join(at, ".gitattributes"), filepath.Join(at, ".gitignore"))
		}
	}
	for _, name := range files {
		if info, err := os.Lstat(name); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeDevice) != 0 {
			return &fs.PathError{Op: "read", Path: name, Err: errBlocked}
		}
	}
	return nil
}
