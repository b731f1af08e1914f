package source

import (
	"go/ast"
	"go/token"
	"strings"
)

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
