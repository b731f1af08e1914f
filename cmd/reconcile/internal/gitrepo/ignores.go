package gitrepo

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// Ignores answers, for a walk through the tree from the top down, what git leaves out of it. It is for one goroutine.
type Ignores struct {
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
	return &Ignores{newRules(ctx, r.layout, cfg), r.prefix}, nil
}

// Folder is what is left out directly in a folder of the tree, "" for its root, which is not left out itself: of a name,
// and whether that is a folder.
func (i *Ignores) Folder(dir string) func(name string, isDir bool) bool {
	path := func(name string) string {
		if dir != "" {
			name = dir + "/" + name
		}
		return i.prefix + name
	}
	var patterns []gitignore.Pattern
	for _, d := range foldersOf(path("x")) {
		patterns = append(patterns, i.rules.folder(d)...)
	}
	patterns = append(append([]gitignore.Pattern{}, i.rules.ignoreBase...), patterns...)
	return func(name string, isDir bool) bool {
		return name == ".git" || matchIgnore(patterns, split(path(name)), isDir)
	}
}
