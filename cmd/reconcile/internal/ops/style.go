package ops

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/controllers/languages"
	"reconcile.dev/reconcile/controllers/style"
	"reconcile.dev/reconcile/state/regular"
)

// StyleRequest asks how the code of a project is written.
type StyleRequest struct {
	Dir      string   // the folder of the caller
	Paths    []string // files and folders below it whose style is inferred; none: Dir
	Language string   // as a person names it; "": all that the project has
	Check    []string // files that are compared with the style
}

// StyleResult is the style of a project, by language.
type StyleResult struct {
	Root   string         `json:"root"`
	Styles []*style.Style `json:"styles"`
	// Differences are where the files of Check are not in that style; nil if none were asked for.
	Differences []style.Difference `json:"differences,omitempty"`
}

// mostSamples is how many files of a language are read, spread over all of them; largestSource is the size of a larger one, in bytes,
// which is left out.
const (
	mostSamples   = 500
	largestSource = 1 << 20
)

// Style infers the style of the code of a project, or takes it from the cache if no file that it depends on has changed.
func Style(ctx context.Context, env Env, q StyleRequest) (r *StyleResult, err error) {
	defer func() { err = typed(err) }()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	wanted := ""
	if q.Language != "" {
		var ok bool
		if wanted, ok = languages.Named(q.Language); !ok {
			return nil, badRequest("no language is called %q; leave it out to see all", q.Language)
		}
	}
	p, err := env.openProject(ctx, &CheckRequest{Dir: q.Dir, Paths: q.Paths})
	if err != nil {
		return nil, err
	}
	sources, settings, err := p.sources(ctx)
	if err != nil {
		return nil, err
	}
	r = &StyleResult{Root: p.root, Styles: []*style.Style{}}
	for _, f := range q.Check {
		rel, err := p.below(f)
		if err != nil {
			return nil, err
		}
		l := languages.Of(rel)
		if l == "" {
			return nil, badRequest("%s: its language is not known", f)
		}
		s, err := p.styleOf(ctx, l, slices.DeleteFunc(slices.Clone(sources[l]), func(s string) bool { return s == rel }), settings)
		if err != nil {
			return nil, err
		}
		text, err := p.text(rel, largestSource)
		if err != nil {
			return nil, err
		}
		r.Differences = append(r.Differences, s.Compare(style.File{Path: rel, Text: text})...)
		if !slices.ContainsFunc(r.Styles, func(o *style.Style) bool { return o.Language == l }) {
			r.Styles = append(r.Styles, s)
		}
	}
	if len(q.Check) > 0 {
		return r, nil
	}
	for l, files := range sources {
		if wanted == "" && !style.Known(l) || wanted != "" && l != wanted {
			continue
		}
		s, err := p.styleOf(ctx, l, files, settings)
		if err != nil {
			return nil, err
		}
		r.Styles = append(r.Styles, s)
	}
	slices.SortFunc(r.Styles, func(a, b *style.Style) int { return strings.Compare(a.Language, b.Language) })
	return r, nil
}

// sources lists the source files in the scope of the project by language, and the configuration of formatters.
func (p *project) sources(ctx context.Context) (byLanguage map[string][]string, settings []string, err error) {
	files, err := p.allFiles()
	if err != nil {
		return nil, nil, err
	}
	byLanguage = map[string][]string{}
	slices.Sort(files)
	for _, f := range files {
		switch {
		case style.IsSettings(f):
			settings = append(settings, f)
		case p.inScope(f) && !isForeign(f):
			if l := languages.Of(f); l != "" {
				byLanguage[l] = append(byLanguage[l], f)
			}
		}
	}
	// Those of the root last, so that they win: they are what the project as a whole declares.
	slices.SortStableFunc(settings, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	return byLanguage, settings, nil
}

// isForeign reports whether a file is the code of others, or data of tests.
func isForeign(p string) bool {
	for _, dir := range strings.Split(p, "/") {
		switch dir {
		case "vendor", "node_modules", "third_party", "testdata":
			return true
		}
	}
	return false
}

// cachedStyle is a style with the digest of the sizes and times of the files that it was inferred from.
type cachedStyle struct {
	Key   string
	Style *style.Style
}

// styleOf infers the style of one language.
func (p *project) styleOf(ctx context.Context, language string, files, settings []string) (*style.Style, error) {
	files = spread(files, mostSamples)
	key, name := p.stamp(append(slices.Clone(settings), files...)), "style-"+language
	var known cachedStyle
	if p.lastResult(name, &known) == nil && known.Key == key && known.Style != nil {
		return known.Style, nil
	}
	texts, err := p.read(ctx, files)
	if err != nil {
		return nil, err
	}
	declared, err := p.read(ctx, settings)
	if err != nil {
		return nil, err
	}
	s := style.Infer(language, texts, style.Settings(declared))
	p.keepResult(name, cachedStyle{key, s})
	return s, nil
}

// spread takes at most n of a list, evenly.
func spread(list []string, n int) []string {
	if len(list) <= n {
		return list
	}
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, list[i*len(list)/n])
	}
	return out
}

// awareVersion is part of the keys of cached results: it is raised where the same files give other results.
const awareVersion = "2"

// stamp is a digest of the names, sizes and times of files.
func (p *project) stamp(files []string) string {
	h := xxhash.New()
	_, _ = h.WriteString(awareVersion)
	for _, f := range files {
		_, _ = h.WriteString(f + "\x00")
		if fi, err := os.Lstat(filepath.Join(p.root, filepath.FromSlash(f))); err == nil {
			_, _ = h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(fi.Size())), uint64(fi.ModTime().UnixNano())))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// read reads files. Those that are gone, too large or no regular files are left out.
func (p *project) read(ctx context.Context, files []string) (out []style.File, err error) {
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text, err := p.text(f, largestSource)
		switch {
		case err == nil:
			out = append(out, style.File{Path: f, Text: text})
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, regular.ErrTooLarge) && !errors.Is(err, regular.ErrNot):
			return nil, err
		}
	}
	return out, nil
}

// text reads a file of the project with at most limit bytes, by its path below the root.
func (p *project) text(file string, limit int64) ([]byte, error) {
	return regular.ReadPathUpTo(filepath.Join(p.root, filepath.FromSlash(file)), limit)
}
