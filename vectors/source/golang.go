package source

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"reconcile.dev/reconcile/vectors/graph"
)

// maxCode is how many bytes of the code of a function or type are indexed.
const maxCode = 2048

// GoFolder is the Go files of one folder, parsed. It is for one goroutine at a time.
type GoFolder struct {
	id    string
	fset  *token.FileSet
	files []*goFile
	names map[string]string // ids of functions, methods and types by name, as Tree.Entry; where two have it, the first

	depends *goDependence
}

// goFile is a file of a folder, and its result.
type goFile struct {
	File
	graph.PartBuilder
	ast       *ast.File // nil if it is in no package
	broken    bool      // it has errors of syntax
	requested bool      // its result is requested; else only the ids of its declarations
	dots      []string  // folders of the work tree whose names are used without the name of their package
	decls     []declared
}

// declared is a function, method or type of a file.
type declared struct {
	id     string
	symbol string
	name   *ast.Ident
	fn     *ast.FuncDecl // nil for a type
}

// ParseGo parses the Go files of a folder, on the given number of goroutines. Of files of which only the declarations
// are needed, it drops bodies of functions where that is easy; these files have no parts.
func ParseGo(files []File, threads int) *GoFolder {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	f := &GoFolder{id: Folder(files[0].Path), fset: token.NewFileSet(), files: make([]*goFile, len(files))}
	each(len(files), threads, func(i int) {
		g := &goFile{File: files[i]}
		if g.Declares {
			g.Text = withoutBodies(g.Text)
		}
		parsed, err := parser.ParseFile(f.fset, g.Path, g.Text, parser.ParseComments|parser.SkipObjectResolution)
		g.broken = err != nil
		if parsed != nil && parsed.Name != nil && parsed.Name.Name != "" {
			g.ast = parsed
		}
		f.files[i] = g
	})
	return f
}

// each calls do for n numbers on the given number of goroutines.
func each(n, threads int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	var workers sync.WaitGroup
	for range min(n, threads) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
}

// Parts makes the graph part of each wanted Go file of the folder, in the order of their paths: nodes for the file, its
// functions, methods and types, and edges for its imports, calls and implemented interfaces. If wanted is not nil, only
// the files that it selects are processed; the part of others is empty. Edges may leave or lead to nodes of other
// files. The result depends neither on threads nor, for each file, on the other selected files.
//
// sound is false if go/types failed on the declarations of the folder, or found a cycle in them: then the result for
// any file may depend on the whole folder, and not only on its [GoFolder.Contexts].
func (f *GoFolder) Parts(wanted []bool, mods Modules, threads int) (parts []graph.Part, sound bool) {
	for i, g := range f.files {
		g.PartBuilder, g.dots, g.decls = graph.PartBuilder{}, nil, nil
		g.requested = (wanted == nil || wanted[i]) && !g.Declares
	}
	each(len(f.files), threads, func(i int) { f.files[i].nodes(f, mods) })
	f.names = map[string]string{}
	for _, g := range f.files {
		for _, d := range g.decls {
			if f.names[d.symbol] == "" {
				f.names[d.symbol] = d.id
			}
		}
	}
	if slices.ContainsFunc(f.files, func(g *goFile) bool { return g.Declares }) {
		f.dependence().markRequested(f.files)
	}
	sound = f.check(mods, threads)
	parts = make([]graph.Part, len(f.files))
	for i, g := range f.files {
		if g.requested {
			parts[i] = g.Part
		}
	}
	return parts, sound
}

// clauses are the names that the files give their package, in order of the first file.
func (f *GoFolder) clauses() []string {
	var out []string
	for _, g := range f.files {
		if g.ast != nil && !slices.Contains(out, g.ast.Name.Name) {
			out = append(out, g.ast.Name.Name)
		}
	}
	return out
}

func (f *GoFolder) of(clause string) []*goFile {
	var out []*goFile
	for _, g := range f.files {
		if g.ast != nil && g.ast.Name.Name == clause {
			out = append(out, g)
		}
	}
	return out
}

// Package makes the graph part of the Go folder's package: a node with its name and doc comment, and edges to its
// files; an empty part if no file is in a package.
func (f *GoFolder) Package() graph.Part {
	name, doc := "", ""
	for _, g := range f.files {
		if g.ast == nil {
			continue
		}
		if text := g.ast.Doc.Text(); len(text) > len(doc) {
			doc = text
		}
		if n := g.ast.Name.Name; name == "" || strings.HasSuffix(name, "_test") {
			name = n
		}
	}
	if name == "" {
		return graph.Part{}
	}
	b := &graph.PartBuilder{}
	pkg := b.Add(graph.Item{
		Node:  graph.Node{ID: f.id, Type: graph.Package, Name: name, Path: path.Dir(f.files[0].Path), Labels: goLabels},
		Title: "package " + name + " " + strings.TrimSuffix(f.id, "/"), Body: doc,
	})
	for _, g := range f.files {
		if g.ast != nil {
			b.Edge(pkg, graph.Contains, g.Path)
		}
	}
	return b.Part
}

var goLabels = []string{"lang=go"}

// nodes adds the file and its declarations.
func (g *goFile) nodes(f *GoFolder, mods Modules) {
	switch {
	case g.ast == nil:
		g.AddPart(Plain(g.File))
		return
	case g.requested:
		g.Add(graph.Item{
			Node: graph.Node{ID: g.Path, Type: graph.File, Name: path.Base(g.Path), Path: g.Path, Line: 1,
				End: f.line(g.ast.FileEnd), Labels: goLabels},
			Title: g.Path + " package " + g.ast.Name.Name,
			Body:  graph.Clip(g.ast.Doc.Text()+strings.Join(g.symbols(), " ")+g.rest(), graph.MaxBody),
		})
		g.imported(mods)
	}
	for _, d := range g.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			g.function(f, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					g.typ(f, d, s)
				case *ast.ValueSpec:
					g.values(f, d, s)
				}
			}
		}
	}
}

// symbols are the names of all that the file declares.
func (g *goFile) symbols() (names []string) {
	for _, d := range g.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, symbol(d))
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.Name != "_" {
							names = append(names, n.Name)
						}
					}
				}
			}
		}
	}
	return names
}

func (g *goFile) imported(mods Modules) {
	for _, im := range g.ast.Imports {
		p, err := strconv.Unquote(im.Path.Value)
		if err != nil || p == "" {
			continue
		}
		if dir, ours := mods.Folder(p); ours {
			g.Edge(g.Path, graph.Imports, dir)
			if im.Name != nil && im.Name.Name == "." {
				g.dots = append(g.dots, dir)
			}
			continue
		}
		if to := "import:" + p; !g.Has(to) {
			g.Add(graph.Item{Node: graph.Node{ID: to, Type: graph.Import, Name: p, Labels: goLabels}, Title: p})
		}
		g.Edge(g.Path, graph.Imports, "import:"+p)
	}
}

func (g *goFile) function(f *GoFolder, d *ast.FuncDecl) {
	name := symbol(d)
	it := graph.Item{Node: graph.Node{ID: g.Path + ":" + name}}
	if g.requested {
		kind, code := graph.Function, ""
		if d.Recv != nil {
			kind = graph.Method
		}
		if d.Body != nil {
			code = clipped(g.text(d.Body.Pos(), d.Body.End()))
		}
		it = graph.Item{
			Node:  f.node(g, kind, name, d.Pos(), d.End()),
			Title: g.ast.Name.Name + "." + name + " " + squeeze(string(g.text(d.Type.Params.Pos(), d.Type.End()))),
			Body:  d.Doc.Text() + code,
		}
	}
	id := g.declare(it, declared{symbol: name, name: d.Name, fn: d})
	if t, _, ok := strings.Cut(name, "."); ok {
		g.Edge(f.id+":"+t, graph.Contains, id)
	}
}

func (g *goFile) typ(f *GoFolder, d *ast.GenDecl, t *ast.TypeSpec) {
	it := graph.Item{Node: graph.Node{ID: g.Path + ":" + t.Name.Name}}
	if g.requested {
		doc, begin := aboutType(d, t.Doc, t.Pos())
		it = graph.Item{
			Node:  f.node(g, graph.Type, t.Name.Name, begin, t.End()),
			Title: g.ast.Name.Name + "." + t.Name.Name + " type", Body: doc.Text() + clipped(g.text(t.Pos(), t.End())),
		}
	}
	g.declare(it, declared{symbol: t.Name.Name, name: t.Name})
}

// aboutType is the comment of a part of a declaration, and where it begins: that of the whole if it is the only part.
func aboutType(d *ast.GenDecl, own *ast.CommentGroup, begin token.Pos) (*ast.CommentGroup, token.Pos) {
	if own == nil && len(d.Specs) == 1 {
		return d.Doc, d.Pos()
	}
	return own, begin
}

// values adds constants or variables.
func (g *goFile) values(f *GoFolder, d *ast.GenDecl, s *ast.ValueSpec) {
	kind := graph.Variable
	if d.Tok == token.CONST {
		kind = graph.Constant
	}
	for _, name := range s.Names {
		if name.Name == "_" {
			continue
		}
		it := graph.Item{Node: graph.Node{ID: g.Path + ":" + name.Name}}
		if g.requested {
			doc, begin := aboutType(d, s.Doc, s.Pos())
			it = graph.Item{
				Node:  f.node(g, kind, name.Name, begin, s.End()),
				Title: g.ast.Name.Name + "." + name.Name + " " + d.Tok.String(),
				Body:  doc.Text() + s.Comment.Text() + clipped(g.text(s.Pos(), s.End())),
			}
		}
		g.Edge(g.Path, graph.Defines, g.Add(it))
	}
}

func (g *goFile) declare(it graph.Item, d declared) (id string) {
	d.id = g.Add(it)
	g.Edge(g.Path, graph.Defines, d.id)
	g.decls = append(g.decls, d)
	return d.id
}

func (f *GoFolder) node(g *goFile, t graph.NodeType, name string, from, to token.Pos) graph.Node {
	line := f.line(from)
	return graph.Node{
		ID: g.Path + ":" + name, Type: t, Name: name, Path: g.Path, Line: line, Labels: goLabels,
		End: max(line, f.line(to)), // a broken declaration may have no end
	}
}

func (f *GoFolder) line(p token.Pos) int { return f.fset.PositionFor(p, false).Line }

// text is the source between two positions.
func (g *goFile) text(from, to token.Pos) []byte {
	begin := g.ast.FileStart
	if !from.IsValid() || from < begin || to < from || int(to-begin) > len(g.Text) {
		return nil
	}
	return g.Text[from-begin : to-begin]
}

// symbol is Name, or Type.Name of a method.
func symbol(d *ast.FuncDecl) string {
	if t := Receiver(d); t != "" {
		return t + "." + d.Name.Name
	}
	return d.Name.Name
}

// Receiver returns the name of a method declaration's receiver type, without pointers and type arguments; "" for a
// function.
func Receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	for e := d.Recv.List[0].Type; ; {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.ParenExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// countsAsSymbol reports whether a value depends on where in its group it stands.
func countsAsSymbol(value ast.Expr) (found bool) {
	ast.Inspect(value, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == "iota"
		return !found
	})
	return found
}

// slice is the text of a node.
func (g *goFile) slice(n ast.Node) []byte { return g.text(n.Pos(), n.End()) }
