package doctor

import (
	"io/fs"
	"os"
	"path/filepath"

	"reconcile.dev/reconcile/state/worktree"
)

// blocked returns a path that git would open and wait for, because a pipe or a device stands where it expects a file; ""
// if there is none.
func (e *Env) blocked() string {
	dir, err := filepath.Abs(e.Dir)
	if err != nil {
		return ""
	}
	l, err := worktree.Find(dir)
	if err != nil {
		return ""
	}
	var files []string
	for _, name := range []string{"HEAD", "index"} {
		files = append(files, filepath.Join(l.GitDir, name))
	}
	for _, name := range []string{"config", "packed-refs", "info/attributes", "info/exclude"} {
		files = append(files, filepath.Join(l.Common, filepath.FromSlash(name)))
	}
	// git reads these of each folder from the top of the work tree down to that of a file.
	for at := filepath.Join(dir, filepath.FromSlash(e.settings().Folders.State)); len(at) >= len(l.Top); at = filepath.Dir(at) {
		files = append(files, filepath.Join(at, ".gitattributes"), filepath.Join(at, ".gitignore"))
		if at == filepath.Dir(at) {
			break
		}
	}
	for _, name := range files {
		if info, err := os.Lstat(name); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeDevice) != 0 {
			return name
		}
	}
	return ""
}
