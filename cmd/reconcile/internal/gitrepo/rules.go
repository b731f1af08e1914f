package gitrepo

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"reconcile.dev/reconcile/state/regular"
)

// rules evaluates .gitignore and .gitattributes for single paths. It reads only the files on the way to a path,
// each once.
type rules struct {
	l          layout
	ignoreBase []gitignore.Pattern
	attrBase   [][]attrLine                   // of the system and of the user
	attrLast   []attrLine                     // info/attributes: over those of the folders
	ignores    map[string][]gitignore.Pattern // by folder: its own .gitignore
	attrs      map[string][]attrLine
	ends       lineEnds
	fold       bool // patterns of attributes ignore case
	cfg        *gitConfig
	filters    map[string]bool // by name: whether the driver exists
}

// newRules reads the rules of the whole repository: the user's files, and info/exclude and info/attributes.
func newRules(ctx context.Context, l layout, c *gitConfig) *rules {
	r := &rules{l: l, cfg: c, ignores: map[string][]gitignore.Pattern{}, attrs: map[string][]attrLine{}, filters: map[string]bool{}}
	r.ends, r.fold = readLineEnds(ctx, c), c.flag(ctx, "core.ignorecase", false)
	for _, p := range []string{c.userFile(ctx, "core.excludesfile", "ignore"), filepath.Join(l.common, "info", "exclude")} {
		r.ignoreBase = append(r.ignoreBase, readIgnore(p, nil)...)
	}
	if no, _ := strconv.ParseBool(os.Getenv("GIT_ATTR_NOSYSTEM")); !no {
		r.attrBase = append(r.attrBase, readAttributes(systemAttributes, true))
	}
	r.attrBase = append(r.attrBase, readAttributes(c.userFile(ctx, attributesKey, "attributes"), true))
	r.attrLast = readAttributes(filepath.Join(l.common, "info", "attributes"), true)
	return r
}

func readIgnore(file string, domain []string) []gitignore.Pattern {
	data, err := regular.ReadPath(file)
	if err != nil {
		return nil
	}
	var out []gitignore.Pattern
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" && line[0] != '#' {
			out = append(out, gitignore.ParsePattern(line, domain))
		}
	}
	return out
}

// ignored reports whether git add would ignore the untracked file.
func (r *rules) ignored(file string) bool { return r.leftOut(file, false) }

// ignoredFolder reports whether git add would ignore the untracked folder.
func (r *rules) ignoredFolder(dir string) bool { return r.leftOut(dir, true) }

func (r *rules) leftOut(path string, isDir bool) bool {
	patterns := r.ignoreBase
	for _, dir := range foldersOf(path) {
		if dir != "" && matchIgnore(patterns, splitTreePath(dir), true) {
			return true // nothing below an ignored folder can be included again
		}
		patterns = append(patterns[:len(patterns):len(patterns)], r.folder(dir)...)
	}
	return matchIgnore(patterns, splitTreePath(path), isDir)
}

// folder returns the patterns of a folder's .gitignore.
func (r *rules) folder(dir string) []gitignore.Pattern {
	own, ok := r.ignores[dir]
	if !ok {
		own = readIgnore(filepath.Join(r.l.worktree, filepath.FromSlash(dir), ".gitignore"), splitTreePath(dir))
		r.ignores[dir] = own
	}
	return own
}

// matchIgnore applies the last pattern that matches.
func matchIgnore(patterns []gitignore.Pattern, parts []string, dir bool) bool {
	for i := len(patterns) - 1; i >= 0; i-- {
		if m := patterns[i].Match(parts, dir); m != gitignore.NoMatch {
			return m == gitignore.Exclude
		}
	}
	return false
}

// attributes returns the attributes of a file, by name.
func (r *rules) attributes(file string) map[string]string {
	levels := append([][]attrLine{binaryMacro}, r.attrBase...)
	dirs := make([]string, len(levels), len(levels)+8)
	for _, dir := range foldersOf(file) {
		own, ok := r.attrs[dir]
		if !ok {
			name := filepath.Join(r.l.worktree, filepath.FromSlash(dir), ".gitattributes")
			if !isLink(name) { // git does not follow links
				own = readAttributes(name, dir == "")
			}
			r.attrs[dir] = own
		}
		levels, dirs = append(levels, own), append(dirs, dir)
	}
	levels, dirs = append(levels, r.attrLast), append(dirs, "")
	return attributesOf(file, levels, dirs, r.fold)
}

// hasFilter reports whether the configuration has a filter driver of this name, the value of the attribute filter.
func (r *rules) hasFilter(name string) bool {
	if name == "" || strings.HasPrefix(name, "\x00") {
		return false
	}
	has, known := r.filters[name]
	if !known {
		for _, key := range []string{"clean", "smudge", "process", "required"} {
			_, there := r.cfg.get(context.Background(), "filter."+name+"."+key)
			has = has || there
		}
		r.filters[name] = has
	}
	return has
}
