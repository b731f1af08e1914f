package gitrepo

import (
	"context"
	"encoding/binary"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"reconcile.dev/reconcile/schemas/treepath"
)

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

// indexPaths reads only the paths of an index file: verifying its checksum would take longer.
func indexPaths(data []byte) ([]string, error) {
	const header, sum = 12, 20
	if len(data) < header+sum || string(data[:4]) != "DIRC" {
		return nil, errDamagedIndex
	}
	version, n := binary.BigEndian.Uint32(data[4:]), int(binary.BigEndian.Uint32(data[8:]))
	rest := data[header : len(data)-sum]
	if version < 2 || version > 4 || n > len(rest)/fixedSize {
		return nil, errDamagedIndex
	}
	paths, text, previous := make([]string, 0, n), string(rest), ""
	for range n {
		e, size, ok := parseEntry(rest, text[len(text)-len(rest):], version, previous)
		if !ok {
			return nil, errDamagedIndex
		}
		paths = append(paths, e.path)
		rest, previous = rest[size:], e.path
	}
	if len(rest) >= 4 && string(rest[:4]) == "link" {
		return nil, &needsGit{"the index is split"} // most of its entries are in another file
	}
	return paths, nil
}
