package gitrepo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// Conversions describes how git stores files of a tree. It is safe for concurrent use.
type Conversions struct {
	mu     sync.Mutex // guards the caches of rules, and index
	rules  *rules
	prefix string
	native *native
	index  *index // nil until first used
}

// Conversions loads the attribute rules of the whole repository and its native configuration, by which git converts the
// files that it stores. Attributes of folders are read on the first query for a file in them.
func (r *Repo) Conversions(ctx context.Context) (*Conversions, error) {
	n := r.native.(*native)
	cfg, err := loadConfig(r.layout, n.git)
	if err != nil {
		return nil, err
	}
	return &Conversions{rules: newRules(ctx, r.layout, cfg), prefix: r.prefix, native: n}, nil
}

// Stored returns a function that converts the bytes of a file, given as a slash path below the tree, to the form
// that git stores; nil if they are the same. Filters, and encodings that only git supports, are ignored.
func (s *Conversions) Stored(path string) func([]byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := s.prefix + path
	c := s.rules.conversion(file)
	c.filter = false
	if c.plain() {
		return nil
	}
	return func(data []byte) []byte {
		out, err := c.clean(data, func() []byte { return s.indexed(file) })
		if err != nil {
			return data
		}
		return out
	}
}

// indexed returns the content of a file in the index.
func (s *Conversions) indexed(file string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index == nil {
		var err error
		if s.index, err = s.native.readIndex(); err != nil {
			s.index = &index{version: 2}
		}
	}
	store := newObjectStore(s.native.layout)
	defer store.close()
	return indexContent(s.index, store, file)
}

// ConversionSources describes the configuration and the .gitattributes files, from the top of the work tree to dir, by
// which git may convert files, in a text that changes whenever they do. It covers the user's and the repository's
// attributes, too. It opens only the configuration. It does not cover attribute files named by an included
// configuration file.
func ConversionSources(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	l, err := worktree.Find(abs)
	if err != nil {
		return ""
	}
	at := layout{worktree: l.Top, gitDir: l.GitDir, common: l.Common}
	files := slices.Concat(configPaths(at), attributePaths(l.Common), namedAttributes(at))
	for at := abs; len(at) >= len(l.Top); at = filepath.Dir(at) {
		files = append(files, filepath.Join(at, ".gitattributes"))
		if at == filepath.Dir(at) {
			break
		}
	}
	var b strings.Builder
	for _, name := range files {
		if fi, err := os.Stat(name); err == nil {
			fmt.Fprintf(&b, "%+v", statOf(fi))
		}
		b.WriteByte('\n')
	}
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "GIT_CONFIG") || strings.HasPrefix(v, "GIT_ATTR") {
			b.WriteString(v + "\n")
		}
	}
	return b.String()
}

// attributesKey is the setting that names the user's attributes.
const attributesKey = "core.attributesfile"

// namedAttributes returns the file that the configuration names. It parses the configuration only if the word
// occurs in it.
func namedAttributes(l layout) []string {
	_, named := environmentConfig(attributesKey)
	for _, p := range configPaths(l) {
		data, err := regular.ReadPath(p)
		named = named || err == nil && bytes.Contains(bytes.ToLower(data), []byte("attributesfile"))
	}
	if !named {
		return nil
	}
	c, err := loadConfig(l, "")
	if err != nil {
		return nil
	}
	return []string{c.userFile(context.Background(), attributesKey, "attributes")}
}

// attributePaths returns the attribute files outside the folders of the work tree, except the one that the
// configuration names.
func attributePaths(common string) []string {
	home, _ := os.UserHomeDir()
	xdg := envOr("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	return []string{systemAttributes, filepath.Join(xdg, "git", "attributes"), filepath.Join(common, "info", "attributes")}
}

const systemAttributes = "/etc/gitattributes"
