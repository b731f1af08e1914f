package gitrepo

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// Ignores answers, for a walk through the tree from the top down, what git leaves out of it. It is safe for concurrent use.
type Ignores struct {
	mu     sync.Mutex // of what rules remembers
	rules  *rules
	prefix string
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
	return &Ignores{rules: newRules(ctx, r.layout, cfg), prefix: r.prefix}, nil
}

// Folder is what is left out directly in a folder of the tree, "" for its root, which is not left out itself: of a name,
// and whether that is a folder. rules is false where the folder has no .gitignore, which then is not looked for. The
// answers are for one goroutine.
func (i *Ignores) Folder(dir string, rules bool) func(name string, isDir bool) bool {
	at := strings.TrimSuffix(i.prefix+dir, "/")
	patterns := i.patterns(at, rules)
	parts := append(split(at), "")
	return func(name string, isDir bool) bool {
		parts[len(parts)-1] = name
		return name == ".git" || matchIgnore(patterns, parts, isDir)
	}
}

// patterns are those that hold in a folder of the work tree.
func (i *Ignores) patterns(dir string, rules bool) []gitignore.Pattern {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !rules {
		i.rules.ignores[dir] = nil
	}
	patterns := slices.Clone(i.rules.ignoreBase)
	for _, d := range foldersOf(dir) {
		patterns = append(patterns, i.rules.folder(d)...)
	}
	if dir != "" {
		patterns = append(patterns, i.rules.folder(dir)...)
	}
	return patterns
}
