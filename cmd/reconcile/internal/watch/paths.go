package watch

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas/treepath"
)

// scope is the set of paths that are watched: each with everything below it, whether it exists or not. Slash paths
// below the root, cleaned, sorted.
type scope []string

func newScope(paths []string) scope {
	s := make(scope, 0, len(paths))
	for _, p := range paths {
		p = path.Clean(strings.TrimPrefix(p, "/"))
		if p != ".." && !strings.HasPrefix(p, "../") {
			s = append(s, p)
		}
	}
	slices.Sort(s)
	return slices.Compact(s)
}

// holds reports whether p is one of the watched paths or below one.
func (s scope) holds(p string) bool {
	return slices.ContainsFunc(s, func(w string) bool { return within(p, w) })
}

// leads reports whether a watched path is below the folder p, so that p's own entries must be seen.
func (s scope) leads(p string) bool {
	return slices.ContainsFunc(s, func(w string) bool { return within(w, p) })
}

// wants reports whether changes at p are of interest.
func (s scope) wants(p string) bool { return !ignored(p) && (s.holds(p) || s.leads(p)) }

// within reports whether p is dir or below it.
func within(p, dir string) bool {
	return dir == "." || p == dir || len(p) > len(dir) && p[len(dir)] == '/' && p[:len(dir)] == dir
}

// ignored reports whether p is, or is inside, something that nobody means to be looked at: git's and our own scratch,
// lock files, and what editors and system tools leave beside a file for a moment.
func ignored(p string) bool {
	for p != "" {
		name, rest, _ := strings.Cut(p, "/")
		if owner := treepath.OfName(name); owner == treepath.Git || owner == treepath.Local || litter(name) {
			return true
		}
		p = rest
	}
	return false
}

// litterSuffixes and litterPrefixes are the marks of short-lived files: backups (~), locks of the AgentX protocol and
// their companions, temporary files of editors (vim, Emacs, JetBrains, GNOME), NFS and FUSE.
var (
	litterSuffixes = []string{
		"~", ".json.lock", ".reap.lock", ".new.lock", ".swp", ".swo", ".swx", ".swpx", ".tmp", "___jb_tmp___", "___jb_old___",
	}
	litterPrefixes = []string{".#", "#", ".goutputstream-", ".nfs0", ".fuse_hidden", ".~lock."}
)

func litter(name string) bool {
	if name == "4913" || name == ".DS_Store" { // vim tests with a file of that name whether it may write
		return true
	}
	return slices.ContainsFunc(litterSuffixes, func(s string) bool { return strings.HasSuffix(name, s) }) ||
		slices.ContainsFunc(litterPrefixes, func(s string) bool { return strings.HasPrefix(name, s) })
}

// rel returns the slash path below the root of a file name; false when it is outside.
func (w *Watcher) rel(name string) (string, bool) {
	r, err := filepath.Rel(w.root, name)
	if err != nil || r == ".." || strings.HasPrefix(r, ".."+string(filepath.Separator)) {
		return "", false
	}
	return filepath.ToSlash(r), true
}

// isFolder reports whether name is a folder itself, not a link to one: links are not followed.
func isFolder(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.IsDir()
}
