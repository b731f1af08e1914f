package gitrepo

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// Ignores answers, for a walk through the tree from the top down, what git leaves out of it. It is safe for concurrent use.
type Ignores struct {
	mu      sync.Mutex // of what rules remembers, and of entered
	rules   *rules
	prefix  string
	tracked func() []string // paths below the work tree, sorted; read when the rules leave something out
	entered map[string]bool // folders that the rules leave out, and that have something that is tracked
}

// Ignores reads what holds for the whole repository; the files in folders are read when they are asked about.
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

// Folder is what is left out directly in a folder of the tree, "" for its root, which is not left out itself: of a name,
// and whether that is a folder. What is tracked is never left out. rules is false where the folder has no .gitignore, which
// then is not looked for. The answers are for one goroutine; those of a folder come before those of the ones in it.
func (i *Ignores) Folder(dir string, rules bool) func(name string, isDir bool) bool {
	at := strings.TrimSuffix(i.prefix+dir, "/")
	patterns, all := i.patterns(at, rules)
	parts := append(split(at), "")
	return func(name string, isDir bool) bool {
		parts[len(parts)-1] = name
		switch {
		case name == ".git":
			return true
		case !all && !matchIgnore(patterns, parts, isDir):
			return false
		}
		return !i.keeps(path.Join(at, name), isDir)
	}
}

// keeps reports whether what the rules leave out is tracked, or has something that is.
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

// patterns are those that hold in a folder of the work tree. all says that they leave out whatever is in it, since nothing
// below a folder that is left out can be taken back in.
func (i *Ignores) patterns(dir string, rules bool) (patterns []gitignore.Pattern, all bool) {
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
