package source

import (
	"bytes"
	"go/ast"
	"go/token"
	"strings"
)

// withoutBodies returns the text of a Go file without bodies of functions, where they are formatted as gofmt does: from the
// end of a line to a line that is a brace. Other bodies stay. Text that only looks like a body is also cut: the rest then
// has other declarations, see [GoFolder.Declared].
func withoutBodies(text []byte) []byte {
	out := make([]byte, 0, len(text)/4)
	for at := 0; at < len(text); {
		l := lineAt(text, at)
		if !bytes.HasPrefix(text[at:], []byte("func ")) {
			out = append(out, text[at:l.next]...)
			at = l.next
			continue
		}
		for (l.last == '(' || l.last == ',') && l.next < len(text) { // parameters that have lines of their own
			l = lineAt(text, l.next)
		}
		end := -1
		if l.last == '{' {
			end = endOfBody(text, l.next)
		}
		if end < 0 {
			out = append(out, text[at:l.next]...)
			at = l.next
			continue
		}
		out = append(append(out, text[at:l.lastAt]...), '\n')
		at = end
	}
	return out
}

// endOfBody returns the end of the line with the closing brace of a body; -1 without one in text.
func endOfBody(text []byte, at int) int {
	for at < len(text) {
		next := lineAt(text, at).next
		if text[at] == '}' {
			if next-at != len("}\n") {
				return -1
			}
			return next
		}
		at = next
	}
	return -1
}

// codeLine is a line of code; tokens of several lines, as raw strings, are part of one.
type codeLine struct {
	next   int  // where the next one begins
	last   byte // the last byte that is not a space or comment; 0 if there is none
	lastAt int
}

// bareComment is how long a comment is that text begins with; 0 if it begins with none. The end of a line is part of none.
func bareComment(text []byte) int {
	switch {
	case bytes.HasPrefix(text, []byte("//")):
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			return end
		}
	case bytes.HasPrefix(text, []byte("/*")):
		if end := bytes.Index(text[2:], []byte("*/")); end >= 0 {
			return end + 4
		}
	default:
		return 0
	}
	return len(text)
}

// bareQuoted is how long the string or character is that text begins with. A string that is not raw ends with its line.
func bareQuoted(text []byte) int {
	quote := text[0]
	if quote == '`' {
		if end := bytes.IndexByte(text[1:], quote); end >= 0 {
			return end + 2
		}
		return len(text)
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case quote:
			return i + 1
		case '\n':
			return i
		case '\\':
			i++
		}
	}
	return len(text)
}

// rest is what the file says besides its symbols: its remarks, or where it has errors of syntax, after which symbols and comments
// may be lost, all of it.
func (g *goFile) rest() string {
	if g.broken {
		return "\n" + string(g.Text)
	}
	return g.remarks()
}

// remarks are the comments that are in the text of none of the file's symbols: above the package clause, between
// declarations, above groups of them, and where the code of a function is too long.
func (g *goFile) remarks() string {
	var b strings.Builder
	told := g.told()
	for _, c := range g.ast.Comments {
		if c == g.ast.Doc {
			continue
		}
		for len(told) > 0 && told[0].to <= c.Pos() {
			told = told[1:]
		}
		if len(told) == 0 || c.Pos() < told[0].from {
			b.WriteString("\n" + c.Text())
		}
	}
	return b.String()
}

// extent is a piece of a file.
type extent struct{ from, to token.Pos }

// told are the pieces of the file whose comments are in the texts of symbols, ascending.
func (g *goFile) told() (out []extent) {
	for _, d := range g.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			to := d.End()
			if d.Body != nil {
				to = min(to, d.Body.Pos()+maxCode)
			}
			out = append(out, extent{beginOf(d.Doc, d.Pos()), to})
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if e, ok := extentOf(d, s); ok {
					out = append(out, e)
				}
			}
		}
	}
	return out
}

// extentOf is the piece of a part of a declaration; ok is false for imports.
func extentOf(d *ast.GenDecl, s ast.Spec) (e extent, ok bool) {
	var doc, after *ast.CommentGroup
	begin := s.Pos()
	switch s := s.(type) {
	case *ast.TypeSpec:
		doc, begin = aboutType(d, s.Doc, begin)
	case *ast.ValueSpec:
		after = s.Comment
		doc, begin = aboutType(d, s.Doc, begin)
	default:
		return e, false
	}
	e = extent{beginOf(doc, begin), min(s.End(), s.Pos()+maxCode)}
	if after != nil {
		e.to = max(e.to, after.End())
	}
	return e, true
}

func beginOf(doc *ast.CommentGroup, begin token.Pos) token.Pos {
	if doc != nil {
		return doc.Pos()
	}
	return begin
}
