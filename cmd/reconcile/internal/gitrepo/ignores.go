package gitrepo

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/regular"
)

// rules evaluates .gitignore and .gitattributes for single paths. It reads only the files on the way to a path,
// each once.
type rules struct {
	l          layout
	ignoreBase []ignorePattern
	attrBase   [][]attrLine               // of the system and of the user
	attrLast   []attrLine                 // info/attributes: over those of the folders
	ignores    map[string][]ignorePattern // by folder: its own .gitignore
	attrs      map[string][]attrLine
	ends       lineEnds
	fold       bool // patterns of attributes ignore case
	cfg        *gitConfig
	filters    map[string]bool // by name: whether the driver exists
}

// newRules reads the rules of the whole repository: the user's files, and info/exclude and info/attributes.
func newRules(ctx context.Context, l layout, c *gitConfig) *rules {
	r := &rules{l: l, cfg: c, ignores: map[string][]ignorePattern{}, attrs: map[string][]attrLine{}, filters: map[string]bool{}}
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

// ignorePattern is a line of a .gitignore, for the paths below its folder whose own folders are not ignored.
type ignorePattern struct {
	gitignore.Pattern
	named bool // it has no slash but at its end, and is about names in any folder
}

func newIgnorePattern(line string, domain []string) ignorePattern {
	name := strings.TrimSuffix(strings.TrimRight(strings.TrimPrefix(line, "!"), " "), "/")
	if strings.Contains(name, "/") {
		return ignorePattern{gitignore.ParsePattern(line, domain), false}
	}
	return ignorePattern{gitignore.ParsePattern(line, nil), true}
}

func readIgnore(file string, domain []string) []ignorePattern {
	data, err := regular.ReadPath(file)
	if err != nil {
		return nil
	}
	var out []ignorePattern
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" && line[0] != '#' {
			out = append(out, newIgnorePattern(line, domain))
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
func (r *rules) folder(dir string) []ignorePattern {
	own, ok := r.ignores[dir]
	if !ok {
		own = readIgnore(filepath.Join(r.l.worktree, filepath.FromSlash(dir), ".gitignore"), splitTreePath(dir))
		r.ignores[dir] = own
	}
	return own
}

// matchIgnore applies the last pattern that matches.
func matchIgnore(patterns []ignorePattern, parts []string, dir bool) bool {
	for i := len(patterns) - 1; i >= 0; i-- {
		about := parts
		if patterns[i].named {
			about = parts[len(parts)-1:]
		}
		if m := patterns[i].Match(about, dir); m != gitignore.NoMatch {
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

// Ignores reports, for a top-down walk of the tree, the paths that git ignores. It is safe for concurrent use.
type Ignores struct {
	mu      sync.Mutex // guards the caches of rules, and entered
	rules   *rules
	prefix  string
	tracked func() []string // paths below the work tree, sorted; read when a rule matches
	entered map[string]bool // ignored folders that contain tracked files
}

// Ignores loads the ignore rules of the whole repository and its tracked paths; files in folders are read on demand.
func (r *Repo) Ignores(ctx context.Context) (*Ignores, error) {
	git := ""
	if c, ok := r.command.(*command); ok {
		git = c.git
	}
	cfg, err := loadConfig(r.layout, git)
	if err != nil {
		return nil, err
	}
	return &Ignores{
		rules: newRules(ctx, r.layout, cfg), prefix: r.prefix, entered: map[string]bool{},
		tracked: sync.OnceValue(func() []string { return r.trackedPaths(ctx) }),
	}, nil
}

// Folder returns a function that reports whether a name directly in a folder of the tree is ignored; isDir tells
// whether the name is a folder. dir is "" for the root and is not ignored itself. Tracked paths are never ignored.
// rules is false if the folder has no .gitignore; then it is not looked up. The function is for one goroutine; a
// folder is queried before its subfolders.
func (i *Ignores) Folder(dir string, rules bool) func(name string, isDir bool) bool {
	at := strings.TrimSuffix(i.prefix+dir, "/")
	patterns, all := i.patterns(at, rules)
	parts := append(splitTreePath(at), "")
	return func(name string, isDir bool) bool {
		parts[len(parts)-1] = name
		switch {
		case treepath.OfName(name) == treepath.Git:
			return true
		case !all && !matchIgnore(patterns, parts, isDir):
			return false
		}
		return !i.keeps(path.Join(at, name), isDir)
	}
}

// keeps reports whether an ignored path is tracked, or contains a tracked one.
func (i *Ignores) keeps(p string, isDir bool) bool {
	if !has(i.tracked(), p, isDir) {
		return false
	}
	if isDir {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.entered[p] = true
	}
	return true
}

// patterns returns the patterns that apply in a folder of the work tree. all is set if the folder is ignored as a
// whole, since nothing below an ignored folder can be included again.
func (i *Ignores) patterns(dir string, rules bool) (patterns []ignorePattern, all bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !rules {
		i.rules.ignores[dir] = nil
	}
	patterns = slices.Clone(i.rules.ignoreBase)
	for _, d := range foldersOf(dir) {
		patterns = append(patterns, i.rules.folder(d)...)
	}
	if dir != "" {
		patterns = append(patterns, i.rules.folder(dir)...)
	}
	return patterns, i.entered[dir]
}

// trackedPaths returns the paths in git's index, below the work tree and sorted. git never ignores them. An
// unreadable index has no paths; a commit reports the error.
func (r *Repo) trackedPaths(ctx context.Context) []string {
	data, _, _, err := readIndex(filepath.Join(r.gitDir, "index"))
	if err != nil {
		return nil
	}
	paths, err := indexPaths(data)
	var other *needsGit
	if k, ok := r.command.(*command); ok && errors.As(err, &other) {
		out, err := k.run(ctx, call{}, "ls-files", "-z", "--cached")
		if err != nil {
			return nil
		}
		paths = nulSplit(out)
	}
	return paths
}

// Ignored lists what git ignores in a checkout: paths below its top, folders with a final slash.
func (r *Repo) Ignored(ctx context.Context, co Checkout) ([]string, error) {
	k, err := r.gitCommand()
	if err != nil {
		return nil, err
	}
	in, c := k.inWorkspace(co)
	out, err := in.run(ctx, c, "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
	return nulSplit(out), err
}
