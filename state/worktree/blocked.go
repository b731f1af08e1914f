package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/state/regular"
)

// ErrBlocked says that a pipe or a device stands in place of a file that git opens: git waits for it without end.
var ErrBlocked = errors.New("it is not a regular file, and git waits for it without end; remove it or put a file in its place")

// Blocked reports what git would wait for: in the repository but for its objects and
// other branches, and among the attributes and ignored names of folders, which are
// below the top, and of those above them. The error wraps ErrBlocked and is a *fs.PathError. It is asked before git, or a
// library that reads as git does, is run; what comes in between is not seen.
func Blocked(dir string, folders ...string) error {
	l, err := Find(dir)
	var at *fs.PathError
	if errors.As(err, &at) && errors.Is(err, regular.ErrNot) {
		return &fs.PathError{Op: "read", Path: at.Path, Err: ErrBlocked}
	}
	if err != nil {
		return nil // of what is no work tree nothing is read
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
			return &fs.PathError{Op: "read", Path: name, Err: ErrBlocked}
		}
	}
	return nil
}
