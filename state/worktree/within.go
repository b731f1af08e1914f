package worktree

import "path/filepath"

// Within returns the slash path of a file relative to a folder; ok is false if it is outside of the folder. The path of the folder
// itself is ".". Both are paths of this system, absolute or relative to the same folder, without links that matter.
func Within(dir, file string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, file)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}
