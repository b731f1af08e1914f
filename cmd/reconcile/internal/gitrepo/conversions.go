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

// Conversions tell how git stores files of a tree. They are safe for concurrent use.
type Conversions struct {
	mu     sync.Mutex // of what rules remembers, and of index
	rules  *rules
	prefix string
	native *native
	index  *index // nil until it was needed
}

// Conversions reads what holds for the whole repository; attributes of folders are read when a file in them is asked about.
func (r *Repo) Conversions(ctx context.Context) (*Conversions, error) {
	n := r.native.(*native)
	cfg, err := loadConfig(r.layout, n.git)
	if err != nil {
		return nil, err
	}
	return &Conversions{rules: newRules(ctx, r.layout, cfg), prefix: r.prefix, native: n}, nil
}

// Stored returns what turns the bytes of a file, a slash path below the tree, into what git stores; nil where that is the
// same. What a filter makes of them, and an encoding that only git knows, does not count.
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

// indexed is the content that the index has of a file.
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

// ConversionSources is a text that differs when git may store the files of the tree in dir in another form: it tells of the
// configuration, of the user's and the repository's attributes, and of the .gitattributes from the top of the work tree down
// to dir. It opens only the configuration. Attributes that an included file of the configuration names are not among them.
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

// namedAttributes is the file that the configuration names. It is read as such only where it has the word.
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

// attributePaths are the files of attributes that are in no folder of the work tree, but for one that the configuration names.
func attributePaths(common string) []string {
	home, _ := os.UserHomeDir()
	xdg := envOr("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	return []string{systemAttributes, filepath.Join(xdg, "git", "attributes"), filepath.Join(common, "info", "attributes")}
}

const systemAttributes = "/etc/gitattributes"
