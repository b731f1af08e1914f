package watch

import (
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/worktree"
)

// scope is the set of watched paths: each with everything below it, existing or not. Slash paths below the root, cleaned,
// sorted.
type scope []string

func newScope(paths []string) scope {
	s := make(scope, 0, len(paths))
	for _, p := range paths {
		p = path.Clean(strings.TrimPrefix(p, "/"))
		if !treepath.Below(p, "..") {
			s = append(s, p)
		}
	}
	slices.Sort(s)
	return slices.Compact(s)
}

// holds reports whether p is one of the watched paths or below one.
func (s scope) holds(p string) bool {
	return slices.ContainsFunc(s, func(w string) bool { return treepath.Below(p, w) })
}

// leads reports whether a watched path is below the folder p, so that p's own entries must be watched.
func (s scope) leads(p string) bool {
	return slices.ContainsFunc(s, func(w string) bool { return treepath.Below(w, p) })
}

// wants reports whether changes at p are relevant.
func (s scope) wants(p string) bool { return !ignored(p) && (s.holds(p) || s.leads(p)) }

// ignored reports whether p is, or is inside, an irrelevant path: git's or reconcile's own files, lock files, and
// short-lived files of editors and system tools.
func ignored(p string) bool {
	for p != "" {
		name, rest, _ := strings.Cut(p, "/")
		if owner := treepath.OfName(name); owner == treepath.Git || owner == treepath.Local || isLeftover(name) {
			return true
		}
		p = rest
	}
	return false
}

// leftoverSuffixes and leftoverPrefixes match short-lived files: backups (~), locks of the AgentX protocol and their
// companions, temporary files of editors (vim, Emacs, JetBrains, GNOME), NFS and FUSE.
var (
	leftoverSuffixes = []string{
		"~", ".json.lock", ".reap.lock", ".new.lock", ".swp", ".swo", ".swx", ".swpx", ".tmp", "___jb_tmp___", "___jb_old___",
	}
	leftoverPrefixes = []string{".#", "#", ".goutputstream-", ".nfs0", ".fuse_hidden", ".~lock."}
)

func isLeftover(name string) bool {
	if name == "4913" || name == ".DS_Store" { // vim creates a file of that name to test for write permission
		return true
	}
	return slices.ContainsFunc(leftoverSuffixes, func(s string) bool { return strings.HasSuffix(name, s) }) ||
		slices.ContainsFunc(leftoverPrefixes, func(s string) bool { return strings.HasPrefix(name, s) })
}

// rel returns the slash path of a file name below the root; false if it is outside.
func (w *Watcher) rel(name string) (string, bool) {
	return worktree.Within(w.root, name)
}

// skips reports whether a folder is one that Options.Skip names.
func (w *Watcher) skips(dir string) bool { return dir != "." && w.o.Skip(dir) }

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}
