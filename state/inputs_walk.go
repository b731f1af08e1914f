package state

import (
	"context"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/disk"
)

// attributesFile is the name of git's attributes file in any folder.
const attributesFile = ".gitattributes"

// walkInputs calls found for every regular file that some glob matches, and rule for the attributes files in their
// folders. It skips paths that are never inputs: state, local files, .git, and snapshots.
func walkInputs(ctx context.Context, root *os.Root, l *layout, globs []string, found, rule func(p string, st disk.Stat)) error {
	if len(globs) == 0 {
		return nil
	}
	w := &inputWalk{ctx: ctx, root: root, layout: l, found: found, rule: rule}
	patterns := make([]globPath, len(globs))
	for i, g := range globs {
		patterns[i] = splitGlob(g)
	}
	d, err := disk.OpenDir(root, ".")
	if err != nil {
		return err
	}
	defer d.Close()
	return w.folder(d, "", 0, patterns)
}

// globPath is a glob, split at its slashes.
type globPath struct {
	glob  string
	parts []string // nil if it cannot be split: an alternative holds a slash
}

func splitGlob(g string) globPath {
	depth := 0
	for _, c := range g {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == '/' && depth > 0, c == '\\':
			return globPath{glob: g}
		}
	}
	return globPath{g, strings.Split(g, "/")}
}

// below reports whether the glob can match something below a folder whose name is the depth-th part of a path, given
// that it could match below the folders above.
func (g globPath) below(depth int, name string) bool {
	if g.parts == nil {
		return true
	}
	for _, p := range g.parts[:min(depth+1, len(g.parts))] {
		if strings.Contains(p, "**") {
			return true
		}
	}
	return depth < len(g.parts)-1 && matchGlob(g.parts[depth], name)
}

type inputWalk struct {
	ctx    context.Context
	root   *os.Root
	layout *layout
	found  func(string, disk.Stat)
	rule   func(string, disk.Stat)
}

func (w *inputWalk) folder(d *disk.Dir, dir string, depth int, globs []globPath) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if depth > 255 {
		return nil
	}
	var l disk.Listing
	var folders []string
	for more := true; more; {
		l.Reset()
		var err error
		if more, err = d.List(&l); err != nil {
			break // an unreadable folder has no inputs
		}
		for i := range l.Len() {
			name := l.Name(i)
			switch f := l.Forms[i]; {
			case f == disk.Folder:
				folders = append(folders, string(name))
			case f != disk.Special:
				w.file(d, dir, name, globs)
			}
		}
	}
	slices.Sort(folders)
	for _, name := range folders {
		if err := w.sub(d, dir, name, depth, globs); err != nil {
			return err
		}
	}
	return nil
}

func (w *inputWalk) sub(d *disk.Dir, dir, name string, depth int, globs []globPath) error {
	p := path.Join(dir, name)
	if owner := treepath.OfName(name); owner == treepath.Git || owner == treepath.Local && p == name || p == w.layout.state {
		return nil
	}
	var deeper []globPath
	for _, g := range globs {
		if g.below(depth, name) {
			deeper = append(deeper, g)
		}
	}
	if len(deeper) == 0 {
		return nil
	}
	sub, err := d.Sub(name)
	if err != nil {
		return nil // removed, or not readable
	}
	defer sub.Close()
	return w.folder(sub, p, depth+1, deeper)
}

func (w *inputWalk) file(d *disk.Dir, dir string, name []byte, globs []globPath) {
	p := string(name)
	if dir != "" {
		p = dir + "/" + p
	}
	if string(name) == attributesFile {
		var st disk.Stat
		if d.Stat(name, &st) == nil {
			w.rule(p, st)
		}
	}
	if neverInput(w.layout, p) || !slices.ContainsFunc(globs, func(g globPath) bool { return matchGlob(g.glob, p) }) {
		return
	}
	var st disk.Stat
	err := d.Stat(name, &st)
	if err == nil && st.Form() == disk.Link {
		st, err = followLink(w.root, p)
	}
	if err == nil && st.Form() == disk.File {
		w.found(p, st)
	}
}

// neverInput reports whether no glob may match a path.
func neverInput(l *layout, p string) bool {
	if strings.HasSuffix(p, ".snapshot") || within(l.state, p) || within(localDir, p) {
		return true
	}
	return strings.HasPrefix(p, ".git/") || strings.Contains(p, "/.git/")
}

func matchGlob(glob, p string) bool {
	ok, err := doublestar.Match(glob, p)
	return ok && err == nil
}
