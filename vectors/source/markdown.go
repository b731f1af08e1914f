package source

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"reconcile.dev/reconcile/vectors/graph"
)

// Markdown makes the graph part of a Markdown document: nodes for the document and its sections. Links and paths in
// code spans become edges to their targets: Documents for a file, References for another document.
func Markdown(f File) graph.Part {
	d := &markdownDocument{
		File: f, slugs: map[string]int{}, lines: lineStarts(f.Text),
		root: newParser().Parse(text.NewReader(withoutMatter(f.Text))),
	}
	d.sections()
	return d.Part
}

// newParser makes a parser of CommonMark.
func newParser() parser.Parser {
	return parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))
}

// withoutMatter is a document with blank lines for the front matter: what stands between lines of three dashes at its very
// begin is data, and no Markdown, in which the second of these lines would make a heading of it.
func withoutMatter(doc []byte) []byte {
	open, rest, _ := bytes.Cut(doc, []byte("\n"))
	if string(bytes.TrimRight(open, " \t\r")) != "---" {
		return doc
	}
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if mark := string(bytes.TrimRight(line, " \t\r")); mark == "---" || mark == "..." {
			out := bytes.Clone(doc)
			for i, c := range out[:len(doc)-len(rest)] {
				if c != '\n' {
					out[i] = ' '
				}
			}
			return out
		}
	}
	return doc
}

type markdownDocument struct {
	graph.PartBuilder
	File
	root  ast.Node
	slugs map[string]int
	lines []int // where each line begins
	open  []section
}

// maxName is how many bytes of a heading are its name.
const maxName = 200

// section is a heading that others may be below.
type section struct {
	id, name string
	level    int
}

// sections processes the top-level blocks. Text before the first heading belongs to the document.
func (d *markdownDocument) sections() {
	var heading *ast.Heading
	from, begin := 0, 0
	var blocks []ast.Node
	end := func(to int) {
		id := d.section(heading, from, begin, to)
		for _, b := range blocks {
			d.links(id, b)
		}
		blocks = nil
	}
	for n := d.root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			at := d.beginOf(h)
			end(at)
			heading, from, begin = h, at, d.endOf(h)
		}
		blocks = append(blocks, n)
	}
	end(len(d.Text))
}

// section adds the document, or a section that begins with a heading, and returns its id.
func (d *markdownDocument) section(h *ast.Heading, from, begin, to int) string {
	line, last := d.line(from), max(d.line(max(to-1, from)), d.line(from))
	body := graph.Clip(strings.TrimSpace(string(d.Text[min(begin, to):to])), graph.MaxBody)
	if h == nil {
		id := d.Add(graph.Item{
			Node: graph.Node{ID: d.Path, Type: graph.Doc, Name: path.Base(d.Path), Path: d.Path, Line: 1,
				End: d.line(len(d.Text)), Labels: docLabels},
			Title: d.Path, Body: body,
		})
		d.open = []section{{id: id}}
		return id
	}
	name := graph.Clip(squeeze(plain(h, d.Text)), maxName)
	for len(d.open) > 1 && d.open[len(d.open)-1].level >= h.Level {
		d.open = d.open[:len(d.open)-1]
	}
	var trail []string
	for _, s := range d.open[1:] {
		trail = append(trail, s.name)
	}
	id := d.Add(graph.Item{
		Node: graph.Node{ID: d.Path + "#" + d.slug(name), Type: graph.Doc, Name: name, Path: d.Path, Line: line, End: last,
			Labels: docLabels},
		Title: strings.Join(append(trail, name), " > "), Body: body,
	})
	d.Edge(d.open[len(d.open)-1].id, graph.Contains, id)
	d.open = append(d.open, section{id, name, h.Level})
	return id
}

var docLabels = []string{"lang=markdown"}

// slug returns the anchor that GitHub gives a heading: lower case, without punctuation, with dashes for spaces, and
// numbered if an earlier heading has the same.
func (d *markdownDocument) slug(name string) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.In(r, unicode.Letter, unicode.Number, unicode.Mark):
			return unicode.ToLower(r)
		}
		return -1
	}, name)
	n := d.slugs[s]
	d.slugs[s]++
	if n > 0 {
		return fmt.Sprintf("%s-%d", s, n)
	}
	return s
}

// links relates a section to what a block of it links to or names.
func (d *markdownDocument) links(id string, block ast.Node) {
	_ = ast.Walk(block, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			d.link(id, string(n.Destination))
		case *ast.CodeSpan:
			if p := plain(n, d.Text); pathLike().MatchString(p) {
				d.relate(id, path.Clean(strings.TrimPrefix(p, "./")))
			}
		}
		return ast.WalkContinue, nil
	})
}

// pathLike is what looks like the path of a file below the root.
var pathLike = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\./)?[\w.-]+(/[\w.-]+)*/?\.?[\w-]*\.\w{1,8}$`)
})

func (d *markdownDocument) link(id, destination string) {
	u, err := url.Parse(destination)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return
	}
	to := d.Path
	if u.Path != "" {
		to = path.Join(path.Dir(d.Path), u.Path)
	}
	if strings.HasPrefix(to, "..") || strings.HasPrefix(u.Path, "/") {
		return
	}
	if IsMarkdown(to) && u.Fragment != "" {
		to += "#" + u.Fragment
	}
	d.relate(id, to)
}

func (d *markdownDocument) relate(id, to string) {
	file, _, _ := strings.Cut(to, "#")
	if IsMarkdown(file) {
		d.Edge(id, graph.References, to)
		return
	}
	d.Edge(id, graph.Documents, to)
}

// IsMarkdown reports whether a path has the extension of a Markdown file, .md or .markdown.
func IsMarkdown(p string) bool {
	ext := strings.ToLower(path.Ext(p))
	return ext == ".md" || ext == ".markdown"
}

// plain is the text of a node without marks.
func plain(n ast.Node, src []byte) string {
	var b bytes.Buffer
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := c.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(src))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// beginOf is where the line of a heading begins.
func (d *markdownDocument) beginOf(h *ast.Heading) int {
	if h.Lines().Len() == 0 {
		return d.lines[d.line(h.Pos())-1]
	}
	return d.lines[d.line(h.Lines().At(0).Start)-1]
}

// endOf is where what follows a heading begins.
func (d *markdownDocument) endOf(h *ast.Heading) int {
	at := h.Pos()
	if n := h.Lines().Len(); n > 0 {
		at = h.Lines().At(n - 1).Stop
	}
	line := d.line(max(at, 0))
	if begin := bytes.TrimLeft(d.Text[d.beginOf(h):], " "); !bytes.HasPrefix(begin, []byte("#")) {
		line++ // the line that underlines it
	}
	if line < len(d.lines) {
		return d.lines[line]
	}
	return len(d.Text)
}

// line is the number of the line of an offset, from 1.
func (d *markdownDocument) line(at int) int {
	lo, hi := 0, len(d.lines)
	for lo < hi {
		if mid := (lo + hi) / 2; d.lines[mid] <= at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return max(lo, 1)
}
