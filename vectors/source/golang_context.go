package source

import (
	"cmp"
	"encoding/binary"
	"go/ast"
	"go/token"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Context is the part of a file's input that is not in its own text.
type Context struct {
	// Declared is a digest of all that the folder declares and that the file names, or that these name, and so on: as long
	// as the text of a file and this stay, so do its nodes and edges.
	Declared uint64
	// Head is a digest of the package name and comment in the file.
	Head uint64
}

// Contexts returns the context of each Go file in the folder, in the order of their paths: digests of its package head
// and of the declarations that its names use, directly or through others. Files of which only the declarations are
// needed have none. Contexts takes a small part of the time of checking.
//
// The meaning of a name depends on its declarations anywhere in the folder: so Contexts finds everything that a file
// may depend on by following names, from those in the file to all their declarations, and to the names in these.
// Methods belong to their type. Whether a type implements an interface depends on interfaces that its file does not
// name.
func (f *GoFolder) Contexts(threads int) []Context {
	d := f.dependence()
	out, uses := make([]Context, len(f.files)), make([][]int, len(f.files))
	each(len(f.files), threads, func(i int) {
		if g := f.files[i]; g.ast != nil && !g.Declares {
			uses[i] = d.usedBy(nil, map[int]bool{}, g.ast)
			out[i].Head = xxhash.Sum64String(g.ast.Name.Name + "\x00" + g.ast.Doc.Text())
		}
	})
	for i, g := range f.files {
		if g.ast != nil && !g.Declares {
			out[i].Declared = d.digestOf(uses[i], slices.ContainsFunc(g.ast.Decls, declaresType))
		}
	}
	return out
}

// Declared returns a digest of all names that the Go files of the folder declare, with the digests of their
// declarations. It is the only input of all contexts; 0 if it is not known, because a file of which only the
// declarations are needed could not be parsed without its bodies.
func (f *GoFolder) Declared() uint64 {
	if slices.ContainsFunc(f.files, func(g *goFile) bool { return g.Declares && (g.broken || g.ast == nil) }) {
		return 0
	}
	d, sum := f.dependence(), uint64(0)
	for s, n := range d.numbers {
		sum += (xxhash.Sum64String(s) ^ d.names[n].digest) * 0x9e3779b97f4a7c15
	}
	return max(sum, 1)
}

// dependence is made once.
func (f *GoFolder) dependence() *goDependence {
	if f.depends == nil {
		f.depends = &goDependence{numbers: map[string]int{}}
		for _, g := range f.files {
			if g.ast != nil {
				f.depends.declare(g)
			}
		}
	}
	return f.depends
}

func declaresType(d ast.Decl) bool {
	group, ok := d.(*ast.GenDecl)
	return ok && group.Tok == token.TYPE
}

// goDependence tells what the names that a folder declares depend on.
type goDependence struct {
	numbers map[string]int
	names   []name // by number
	mayBe   []int  // types that may be interfaces
	round   int    // the current marking of reached names
}

// name is what all declarations of a name, and the methods of a type, come to.
type name struct {
	digest  uint64
	nodes   []ast.Node // in which it is declared
	uses    []int      // names in these, but for bodies of functions
	looked  bool       // uses is set
	reached int        // the last round
}

// declare takes what a file declares.
func (d *goDependence) declare(g *goFile) {
	h := xxhash.New()
	_, _ = h.WriteString(g.Path + "\x00" + g.ast.Name.Name + "\x00" + g.ast.GoVersion + "\x00")
	for _, im := range g.ast.Imports {
		_, _ = h.Write(g.slice(im))
		_, _ = h.Write([]byte{0})
	}
	head := binary.LittleEndian.AppendUint64(nil, h.Sum64())
	digest := func(n ast.Node, text []byte) stated {
		h.Reset()
		_, _ = h.Write(head)
		_, _ = h.Write(text)
		return stated{h.Sum64(), n}
	}
	for _, decl := range g.ast.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			of := Receiver(decl)
			if of == "" && decl.Name.Name != "init" { // which nothing can name
				of = decl.Name.Name
			}
			d.take(of, digest(decl, g.text(decl.Pos(), decl.Type.End())))
		case *ast.GenDecl:
			var group stated // constants may take their values from those before them
			if decl.Tok == token.CONST {
				group = digest(decl, g.slice(decl))
			}
			for _, s := range decl.Specs {
				d.addTypeSpec(s, digest(s, g.slice(s)), group)
			}
		}
	}
}

// stated is a declaration of a name.
type stated struct {
	digest uint64
	node   ast.Node
}

func (d *goDependence) addTypeSpec(s ast.Spec, own, group stated) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		n := d.take(s.Name.Name, own)
		switch s.Type.(type) {
		case *ast.StructType, *ast.MapType, *ast.ArrayType, *ast.ChanType, *ast.FuncType, *ast.StarExpr:
		default:
			if n >= 0 {
				d.mayBe = append(d.mayBe, n)
			}
		}
	case *ast.ValueSpec:
		if group.node != nil && (len(s.Values) == 0 || slices.ContainsFunc(s.Values, countsAsSymbol)) {
			own = group
		}
		for _, n := range s.Names {
			d.take(n.Name, own)
		}
	}
}

// take adds a declaration of a name, and returns the name's number; -1 for an empty or blank name.
func (d *goDependence) take(s string, by stated) int {
	if s == "" || s == "_" {
		return -1
	}
	n, there := d.numbers[s]
	if !there {
		n = len(d.names)
		d.numbers[s] = n
		d.names = append(d.names, name{})
	}
	d.names[n].digest += by.digest // in whatever order they come
	d.names[n].nodes = append(d.names[n].nodes, by.node)
	return n
}

// digestOf returns the digest of all declarations reachable from names, and, for a file with types, from possible
// interfaces.
func (d *goDependence) digestOf(uses []int, types bool) uint64 {
	d.round++
	return d.follow(uses, types)
}

// markRequested marks all declarations reachable from the requested files.
func (d *goDependence) markRequested(files []*goFile) {
	d.round++
	for _, g := range files {
		if g.requested && g.ast != nil {
			d.follow(d.usedBy(nil, map[int]bool{}, g.ast), slices.ContainsFunc(g.ast.Decls, declaresType))
		}
	}
}

// has reports whether any of the names that a declaration has was reached; imports always are.
func (d *goDependence) has(decl ast.Decl) bool {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		return d.reachedName(cmp.Or(Receiver(decl), decl.Name.Name))
	case *ast.GenDecl:
		return slices.ContainsFunc(decl.Specs, func(s ast.Spec) bool {
			switch s := s.(type) {
			case *ast.TypeSpec:
				return d.reachedName(s.Name.Name)
			case *ast.ValueSpec:
				return slices.ContainsFunc(s.Names, func(n *ast.Ident) bool { return d.reachedName(n.Name) })
			}
			return true
		})
	}
	return false
}

func (d *goDependence) reachedName(s string) bool {
	n, ok := d.numbers[s]
	return ok && d.names[n].reached == d.round
}

// follow returns the digest of the declarations newly reached in this round.
func (d *goDependence) follow(uses []int, types bool) (sum uint64) {
	todo := d.reach(nil, uses)
	if types {
		todo = d.reach(todo, d.mayBe)
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		sum += d.names[n].digest
		todo = d.reach(todo, d.usesOf(n))
	}
	return sum
}

// reach adds the names that were not reached in this round.
func (d *goDependence) reach(to, more []int) []int {
	for _, n := range more {
		if d.names[n].reached != d.round {
			d.names[n].reached = d.round
			to = append(to, n)
		}
	}
	return to
}

// usesOf are the names that the declarations of a name use.
func (d *goDependence) usesOf(n int) []int {
	at := &d.names[n]
	if at.looked {
		return at.uses
	}
	seen := map[int]bool{n: true}
	for _, node := range at.nodes {
		if fn, ok := node.(*ast.FuncDecl); ok && fn.Body != nil {
			bare := *fn
			bare.Body = nil
			node = &bare
		}
		at.uses = d.usedBy(at.uses, seen, node)
	}
	at.nodes, at.looked = nil, true
	return at.uses
}

// usedBy adds the declared names that a node has anywhere, but for those that are seen.
func (d *goDependence) usedBy(to []int, seen map[int]bool, n ast.Node) []int {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if i, ok := d.numbers[id.Name]; ok && !seen[i] {
				seen[i] = true
				to = append(to, i)
			}
		}
		return true
	})
	return to
}

func takeName(edges []edgeOf) {
	for _, e := range edges {
		e.of.Edge(e.From, e.Type, e.To)
	}
}
