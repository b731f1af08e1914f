package source

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/vectors/graph"
)

// stubs replace all imported packages.
type stubs map[string]*types.Package

func (s stubs) Import(p string) (*types.Package, error) {
	if p == "unsafe" {
		return types.Unsafe, nil
	}
	if s[p] == nil {
		s[p] = types.NewPackage(p, guessName(p))
		s[p].MarkComplete()
	}
	return s[p], nil
}

// check tells what the files that are asked for call and implement, see [GoFolder.Parts].
func (f *GoFolder) check(mods Modules, threads int) (sound bool) {
	var all []*check
	total := bodies(f.files)
	for _, name := range f.clauses() {
		files := f.of(name)
		share := 0
		if total > 0 {
			share = (threads*bodies(files) + total/2) / total
		}
		all = append(all, f.checks(files, mods, share)...)
	}
	each(len(all), threads, func(i int) { all[i].run() })
	sound = true
	for _, c := range all {
		takeName(c.calls)
		sound = sound && !c.unsound
	}
	for _, c := range all {
		takeName(c.implements)
	}
	return sound
}

// check is the check of a package, or of a share of the bodies of its functions: these do not depend on each other.
type check struct {
	folder *GoFolder
	mods   Modules
	files  []*goFile
	first  bool                   // of the package: it tells what implements what
	of     int                    // how many there are of the package
	bodies map[*ast.FuncDecl]bool // that are checked
	info   types.Info
	ids    map[token.Pos]string // of functions, methods and types, by where their name is declared

	calls, implements []edgeOf
	unsound           bool
}

// edgeOf is an edge that a file comes to.
type edgeOf struct {
	of *goFile
	graph.Edge
}

// worthSharing is how many bytes of bodies a share has at least.
const worthSharing = 16 << 10

// checks splits the check of one package into at most shares checks, fewer for small ones; none if no file is
// requested.
func (f *GoFolder) checks(files []*goFile, mods Modules, shares int) []*check {
	if !slices.ContainsFunc(files, func(g *goFile) bool { return g.requested }) {
		return nil
	}
	size := bodies(files)
	shares = max(1, min(shares, size/worthSharing))
	out := make([]*check, shares)
	for i := range out {
		out[i] = &check{folder: f, mods: mods, files: files, first: i == 0, of: shares, bodies: map[*ast.FuncDecl]bool{}}
	}
	at := 0
	eachBody(files, func(d *ast.FuncDecl, n int) {
		out[min(at*shares/max(size, 1), shares-1)].bodies[d] = true
		at += n
	})
	return out
}

// bodies is how many bytes all bodies of functions have, of files that are asked for.
func bodies(files []*goFile) int {
	size := 0
	eachBody(files, func(_ *ast.FuncDecl, n int) { size += n })
	return size
}

// eachBody goes through the functions that have a body, of files that are asked for, and tells how many bytes that is.
func eachBody(files []*goFile, do func(d *ast.FuncDecl, bytes int)) {
	for _, g := range files {
		if !g.requested {
			continue
		}
		for _, d := range g.decls {
			if d.fn != nil && d.fn.Body != nil {
				do(d.fn, int(d.fn.Body.End()-d.fn.Body.Pos()))
			}
		}
	}
}

// run checks the files. Code on which go/types panics, as it has on invalid files, is indexed by its syntax only: the
// bodies of one file, or the whole package.
func (c *check) run() {
	if c.try() {
		return
	}
	all := c.bodies
	c.bodies = nil
	if c.unsound = !c.try(); c.unsound {
		return
	}
	c.first = false // it is reported already
	for _, g := range c.files {
		c.bodies = map[*ast.FuncDecl]bool{}
		for _, d := range g.decls {
			if all[d.fn] {
				c.bodies[d.fn] = true
			}
		}
		c.try()
	}
}

// try checks the files and adds the results; it adds nothing if go/types panics.
func (c *check) try() (ok bool) {
	calls := len(c.calls)
	defer func() {
		if !ok {
			_ = recover()
			c.calls = c.calls[:calls]
		}
	}()
	pkg := c.typeCheck()
	if c.ids == nil {
		c.ids = map[token.Pos]string{}
		for _, g := range c.files {
			for _, d := range g.decls {
				c.ids[d.name.Pos()] = d.id
			}
		}
	}
	for _, g := range c.files {
		for _, d := range g.decls {
			if c.bodies[d.fn] {
				c.call(g, d)
			}
		}
	}
	if c.first {
		c.implement(pkg.Scope())
	}
	return true
}

// typeCheck fills in info where possible: unknown names are not errors here. Definitions are not recorded: most of
// them are in bodies.
func (c *check) typeCheck() *types.Package {
	size := 0
	for d := range c.bodies {
		size += int(d.Body.End() - d.Body.Pos())
	}
	const perName = 24 // bytes of source for each name that is used: so the table seldom grows
	c.info = types.Info{
		Uses:       make(map[*ast.Ident]types.Object, size/perName),
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	conf := types.Config{
		Importer: stubs{}, Error: c.noteError, FakeImportC: true, DisableUnusedImportCheck: true,
	}
	parsed := make([]*ast.File, len(c.files))
	for i, g := range c.files {
		parsed[i] = c.shared(g)
	}
	pkg, _ := conf.Check(strings.TrimSuffix(c.folder.id, "/"), c.folder.fset, parsed, &c.info)
	return pkg
}

// noteError receives the errors. In a cycle of declarations, the one that go/types gives up depends on where it begins.
// Declarations in a body concern only that body.
func (c *check) noteError(err error) {
	e, ok := errors.AsType[types.Error](err)
	if !ok || !strings.Contains(e.Msg, "recursive type") && !strings.Contains(e.Msg, "cycle in declaration") {
		return
	}
	for d := range c.bodies {
		if d.Body.Pos() <= e.Pos && e.Pos < d.Body.End() {
			return
		}
	}
	c.unsound = true
}

// shared returns a file without the bodies that are not checked; and, of a file of which only the declarations are
// needed, without the declarations that are not reachable from the requested files.
func (c *check) shared(g *goFile) *ast.File {
	file := *g.ast
	file.Decls = make([]ast.Decl, 0, len(g.ast.Decls))
	for _, d := range g.ast.Decls {
		if g.Declares && !c.folder.depends.has(d) {
			continue
		}
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && !c.bodies[fn] {
			bare := *fn
			bare.Body = nil
			d = &bare
		}
		file.Decls = append(file.Decls, d)
	}
	return &file
}

func (c *check) call(g *goFile, d declared) {
	ast.Inspect(d.fn.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if to := c.callee(g, call.Fun); to != "" {
				c.calls = append(c.calls, edgeOf{g, graph.Edge{From: d.id, Type: graph.Calls, To: to}})
			}
		}
		return true
	})
}

// callee is the id or alias of what an expression calls; "" if that is not known, or not in the work tree.
func (c *check) callee(g *goFile, fun ast.Expr) string {
	switch e := fun.(type) {
	case *ast.ParenExpr:
		return c.callee(g, e.X)
	case *ast.IndexExpr:
		return c.callee(g, e.X)
	case *ast.IndexListExpr:
		return c.callee(g, e.X)
	case *ast.Ident:
		if o := c.info.Uses[e]; o != nil {
			return c.own(o)
		}
		if id := c.folder.names[e.Name]; id != "" {
			return id // of a file that go/types left out: the same function for another system
		}
		if len(g.dots) == 1 {
			return g.dots[0] + ":" + e.Name
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			if pkg, ok := c.info.Uses[x].(*types.PkgName); ok {
				return c.foreign(pkg.Imported().Path(), e.Sel.Name)
			}
		}
		if s := c.info.Selections[e]; s != nil {
			return c.own(s.Obj())
		}
		return c.own(c.info.Uses[e.Sel])
	}
	return ""
}

// own is the id of a function or method of this folder.
func (c *check) own(o types.Object) string {
	fn, ok := o.(*types.Func)
	if !ok {
		return ""
	}
	return c.ids[fn.Origin().Pos()]
}

// foreign is the alias of a function of another folder.
func (c *check) foreign(importPath, name string) string {
	if dir, ours := c.mods.Folder(importPath); ours {
		return dir + ":" + name
	}
	return ""
}

// implement relates the types of a package to its interfaces.
func (c *check) implement(scope *types.Scope) {
	type typ struct {
		of   *goFile
		id   string
		name *types.TypeName
	}
	var all, interfaces []typ
	for _, g := range c.files {
		for _, d := range g.decls {
			name, ok := scope.Lookup(d.symbol).(*types.TypeName)
			if !ok || name.Pos() != d.name.Pos() || name.Type() == nil {
				continue // it is not a type, or another one with the name
			}
			if n, ok := name.Type().(*types.Named); ok && n.TypeParams().Len() > 0 {
				continue // whether it does depends on its arguments
			}
			t := typ{g, d.id, name}
			if i, ok := name.Type().Underlying().(*types.Interface); ok {
				if i.NumMethods() > 0 && i.IsMethodSet() {
					interfaces = append(interfaces, t)
				}
				continue
			}
			if g.requested {
				all = append(all, t)
			}
		}
	}
	for _, i := range interfaces {
		in := i.name.Type().Underlying().(*types.Interface)
		for _, t := range all {
			if types.Implements(t.name.Type(), in) || types.Implements(types.NewPointer(t.name.Type()), in) {
				c.implements = append(c.implements, edgeOf{t.of, graph.Edge{From: t.id, Type: graph.Implements, To: i.id}})
			}
		}
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
