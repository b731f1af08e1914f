package tools

import (
	"path"
	"slices"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/pelletier/go-toml/v2"

	"reconcile.dev/reconcile/controllers/checks"
)

// cargoFile is what a Cargo.toml says of the packages that belong together.
type cargoFile struct {
	Workspace *struct {
		Members, Exclude []string
	}
}

// inWorkspace reports whether a folder has a package of a workspace of Cargo whose root is above. Cargo checks it from there, and names its files relative to
// the root wherever it runs.
func (d *discovery) inWorkspace(folder string) bool {
	own, is := d.cargo(folder)
	if !is || own.Workspace != nil {
		return false
	}
	for at := folder; at != ""; {
		at = checks.Folder(at)
		if root, is := d.cargo(at); is && root.Workspace != nil {
			from := relative(at, folder)
			return !slices.ContainsFunc(root.Workspace.Exclude, func(e string) bool { return below(path.Clean(e), from) }) &&
				(slices.ContainsFunc(root.Workspace.Members, func(m string) bool { return doublestar.MatchUnvalidated(path.Clean(m), from) }) || d.isPathDependency(at, folder))
		}
	}
	return false
}

// isPathDependency reports whether a package below a root depends on the one in a folder by its path: that makes it a member of the workspace, too.
func (d *discovery) isPathDependency(root, folder string) bool {
	return slices.ContainsFunc(d.folders, func(at string) bool {
		if at == folder || !below(root, at) {
			return false
		}
		text, is := d.facts.Folders[at].Texts["Cargo.toml"]
		if !is {
			return false
		}
		var doc map[string]any
		return toml.Unmarshal([]byte(text), &doc) == nil && hasPath(doc, func(p string) bool { return path.Join(at, p) == folder })
	})
}

// hasPath reports whether a table, or one in it, is a dependency by a path.
func hasPath(table map[string]any, is func(string) bool) bool {
	for key, value := range table {
		switch v := value.(type) {
		case map[string]any:
			if hasPath(v, is) {
				return true
			}
		case string:
			if key == "path" && is(v) {
				return true
			}
		}
	}
	return false
}

// cargo reads the Cargo.toml of a folder; false for none, or one with errors.
func (d *discovery) cargo(folder string) (f cargoFile, is bool) {
	x := d.facts.Folders[folder]
	if x == nil {
		return f, false
	}
	text, is := x.Texts["Cargo.toml"]
	return f, is && toml.Unmarshal([]byte(text), &f) == nil
}
