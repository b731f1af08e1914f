package gitrepo

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

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

const systemAttributes = "/etc/gitattributes"

// conversion returns the conversion of a file.
func (r *rules) conversion(file string) conversion {
	says := r.attributes(file)
	c := conversion{text: r.ends.auto, crlf: r.ends.crlf, ident: says["ident"] == attrSet, filter: r.hasFilter(says["filter"])}
	eol := says["eol"]
	switch textValue(says) {
	case attrClear:
		c.text, eol = binaryFile, ""
	case attrSet:
		c.text = textFile
	case "input":
		c.text, c.crlf = textFile, false
	case "auto":
		c.text = textIfGuessed
	default:
		if eol == "lf" || eol == "crlf" {
			c.text = textFile
		}
	}
	if eol == "lf" || eol == "crlf" {
		c.crlf = eol == "crlf"
	}
	if enc := says["working-tree-encoding"]; !strings.HasPrefix(enc, "\x00") && !isUTF8(enc) {
		c.encoding = enc
	}
	return c
}

// Storable checks the conversion rules of paths, and returns an error if a filter of .gitattributes would keep git from
// storing the files. The paths are below the directory given to Open, and need not exist. Without such an attribute it
// runs no command.
func (r *Repo) Storable(ctx context.Context, paths ...string) error {
	below, err := r.below(paths)
	if err != nil {
		return err
	}
	n := r.native.(*native)
	cfg, err := loadConfig(r.layout, n.git)
	if err != nil {
		return err
	}
	rules := newRules(ctx, r.layout, cfg)
	for _, p := range below {
		if c := rules.conversion(p); !c.filter && c.encoding == "" {
			continue
		}
		if r.command == nil {
			return fmt.Errorf("%s: %w: %s has a filter", r.worktree, errUnsupported, p)
		}
		sample := call{stdin: []byte("{}\n")}
		if _, err := r.command.(*command).run(ctx, sample, "hash-object", "-w", "--stdin", "--path="+p); err != nil {
			return fmt.Errorf("git cannot store what is written to %s: %w; install what .gitattributes asks for, or exempt the "+
				"folder there: %s/** -filter -ident !working-tree-encoding", path.Dir(p), err, path.Dir(p))
		}
	}
	return nil
}

// indexContent returns the content of a file in the index, or nil.
func indexContent(ix *index, store *objectStore, file string) []byte {
	e, conflict := ix.find(file)
	if e.fixed == nil || conflict {
		return nil
	}
	data, err := store.read(plumbing.BlobObject, e.blob().hash)
	if err != nil {
		return nil
	}
	return data
}
