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

// Go makes the nodes of a folder of Go files: the package, its files, functions, methods and types, what they import,
// call and implement. As many goroutines work on it as threads says; the result does not depend on it.
func Go(files []File, mods Modules, threads int) graph.Part {
	if len(files) == 0 {
		return graph.Part{}
	}
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	f := &folder{id: Folder(files[0].Path), mods: mods, fset: token.NewFileSet(), names: map[string]string{}}
	f.parse(files, threads)
	f.packages()
	f.check(threads)
	return f.Part
}

// folder is what is known of the Go files of a folder.
type folder struct {
	graph.PartBuilder
	id    string
	mods  Modules
	fset  *token.FileSet
	files []*goFile
	names map[string]string // ids of functions, methods and types by name, as Tree.Entry; where two have it, the first
}

type goFile struct {
	File
	ast   *ast.File
	dots  []string // folders of the work tree whose names are used without the name of their package
	decls []declared
}

// declared is a function, method or type of a file.
type declared struct {
	id   string
	name *ast.Ident
	fn   *ast.FuncDecl // nil for a type
}

func (f *folder) parse(files []File, threads int) {
	parsed := make([]*ast.File, len(files))
	each(len(files), threads, func(i int) {
		parsed[i], _ = parser.ParseFile(f.fset, files[i].Path, files[i].Text, parser.ParseComments|parser.SkipObjectResolution)
	})
	for i, p := range parsed {
		if p == nil || p.Name == nil || p.Name.Name == "" {
			f.AddPart(Plain(files[i])) // it is in no package
			continue
		}
		f.files = append(f.files, &goFile{File: files[i], ast: p})
	}
}

// each does n things with so many goroutines.
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

// clauses are the names that the files give their package, in order of the first file.
func (f *folder) clauses() []string {
	var out []string
	for _, g := range f.files {
		if !slices.Contains(out, g.ast.Name.Name) {
			out = append(out, g.ast.Name.Name)
		}
	}
	return out
}

func (f *folder) of(clause string) []*goFile {
	var out []*goFile
	for _, g := range f.files {
		if g.ast.Name.Name == clause {
			out = append(out, g)
		}
	}
	return out
}

// packages adds the package and its files with what they declare.
func (f *folder) packages() {
	name, doc := "", ""
	for _, g := range f.files {
		if text := g.ast.Doc.Text(); len(text) > len(doc) {
			doc = text
		}
		if n := g.ast.Name.Name; name == "" || strings.HasSuffix(name, "_test") {
			name = n
		}
	}
	if name == "" {
		return
	}
	pkg := f.Add(graph.Item{
		Node:  graph.Node{ID: f.id, Type: graph.Package, Name: name, Path: path.Dir(f.files[0].Path), Labels: goLabels},
		Title: "package " + name + " " + strings.TrimSuffix(f.id, "/"), Body: doc,
	})
	for _, g := range f.files {
		f.Edge(pkg, graph.Contains, f.file(g))
	}
}

var goLabels = []string{"lang=go"}

func (f *folder) file(g *goFile) (id string) {
	var names []string
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
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	id = f.Add(graph.Item{
		Node: graph.Node{ID: g.Path, Type: graph.File, Name: path.Base(g.Path), Path: g.Path, Line: 1,
			End: f.line(g.ast.FileEnd), Labels: goLabels},
		Title: g.Path + " package " + g.ast.Name.Name, Body: g.ast.Doc.Text() + strings.Join(names, " "),
	})
	f.imported(g, id)
	for _, d := range g.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.function(g, id, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if t, ok := s.(*ast.TypeSpec); ok {
					f.typ(g, id, d, t)
				}
			}
		}
	}
	return id
}

func (f *folder) imported(g *goFile, id string) {
	for _, im := range g.ast.Imports {
		p, err := strconv.Unquote(im.Path.Value)
		if err != nil || p == "" {
			continue
		}
		if dir, ours := f.mods.Folder(p); ours {
			f.Edge(id, graph.Imports, dir)
			if im.Name != nil && im.Name.Name == "." {
				g.dots = append(g.dots, dir)
			}
			continue
		}
		if to := "import:" + p; !f.Has(to) {
			f.Add(graph.Item{Node: graph.Node{ID: to, Type: graph.Import, Name: p, Labels: goLabels}, Title: p})
		}
		f.Edge(id, graph.Imports, "import:"+p)
	}
}

// guessName is the name that a package of the import path probably has.
func guessName(p string) string {
	name := path.Base(p)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(p))
	}
	name, _, _ = strings.Cut(name, ".")
	return strings.ReplaceAll(strings.TrimPrefix(name, "go-"), "-", "_")
}

func (f *folder) function(g *goFile, file string, d *ast.FuncDecl) {
	name := symbol(d)
	kind := graph.Function
	if d.Recv != nil {
		kind = graph.Method
	}
	code := ""
	if d.Body != nil {
		code = graph.Clip(g.text(f, d.Body.Pos(), d.Body.End()), maxCode)
	}
	id := f.Add(graph.Item{
		Node:  f.node(g, kind, name, d.Pos(), d.End()),
		Title: g.ast.Name.Name + "." + name + " " + squeeze(g.text(f, d.Type.Params.Pos(), d.Type.End())),
		Body:  d.Doc.Text() + code,
	})
	f.declare(g, file, name, declared{id, d.Name, d})
	if t, _, ok := strings.Cut(name, "."); ok {
		f.Edge(f.id+":"+t, graph.Contains, id)
	}
}

func (f *folder) typ(g *goFile, file string, d *ast.GenDecl, t *ast.TypeSpec) {
	doc, begin := t.Doc.Text(), t.Pos()
	if doc == "" && len(d.Specs) == 1 {
		doc, begin = d.Doc.Text(), d.Pos()
	}
	id := f.Add(graph.Item{
		Node:  f.node(g, graph.Type, t.Name.Name, begin, t.End()),
		Title: g.ast.Name.Name + "." + t.Name.Name + " type", Body: doc + graph.Clip(g.text(f, t.Pos(), t.End()), maxCode),
	})
	f.declare(g, file, t.Name.Name, declared{id, t.Name, nil})
}

func (f *folder) declare(g *goFile, file, name string, d declared) {
	f.Edge(file, graph.Defines, d.id)
	g.decls = append(g.decls, d)
	if f.names[name] == "" {
		f.names[name] = d.id
	}
}

func (f *folder) node(g *goFile, t graph.NodeType, name string, from, to token.Pos) graph.Node {
	line := f.line(from)
	return graph.Node{
		ID: g.Path + ":" + name, Type: t, Name: name, Path: g.Path, Line: line, Labels: goLabels,
		End: max(line, f.line(to)), // what is broken may have no end
	}
}

func (f *folder) line(p token.Pos) int { return f.fset.PositionFor(p, false).Line }

// text is the source between two positions.
func (g *goFile) text(f *folder, from, to token.Pos) string {
	a, b := f.fset.PositionFor(from, false).Offset, f.fset.PositionFor(to, false).Offset
	if !from.IsValid() || a > b || b > len(g.Text) {
		return ""
	}
	return string(g.Text[a:b])
}

// symbol is Name, or Type.Name of a method.
func symbol(d *ast.FuncDecl) string {
	if t := Receiver(d); t != "" {
		return t + "." + d.Name.Name
	}
	return d.Name.Name
}

// Receiver is the name of the type that a method is of, without pointers and arguments; "" for a function.
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
