package repotest

import (
	"go/ast"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const opsFolder = "cmd/reconcile/internal/ops"

// operations lists the operations: the exported functions of a file of ops whose second parameter is an Env.
func operations(f *ast.File) []string {
	var names []string
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !fn.Name.IsExported() || len(fn.Type.Params.List) < 2 {
			continue
		}
		if env, ok := fn.Type.Params.List[1].Type.(*ast.Ident); ok && env.Name == "Env" {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

// opsCalls adds what a file uses of ops: the functions that it calls, or chooses from to call one.
func opsCalls(s source, calls map[string]bool) {
	imports := s.imports()
	ast.Inspect(s.File, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && imports[x.Name] == module+"/"+opsFolder {
				calls[sel.Sel.Name] = true
			}
		}
		return true
	})
}

// TestRulesOperationsAreReached: a surface offers each operation, and a test of ops calls it without a command line.
func TestRulesOperationsAreReached(t *testing.T) {
	var all []string
	offered, tested := map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		switch {
		case s.folder() == opsFolder:
			all = append(all, operations(s.File)...)
		case s.folder() == "cmd/reconcile" || withinAny(s.folder(), surfaces):
			opsCalls(s, offered)
		}
	}
	for _, p := range tracked(t) {
		if path.Dir(p) != opsFolder || !strings.HasSuffix(p, "_test.go") {
			continue
		}
		s, err := parse(p, filepath.Join(root(t), filepath.FromSlash(p)), nil)
		if err != nil {
			t.Fatal(err)
		}
		opsCalls(s, tested)
	}
	if len(all) == 0 {
		t.Fatal("no operations found")
	}
	for _, name := range all {
		if !offered[name] {
			t.Errorf("no surface reaches the operation %s", name)
		}
		if !tested[name] {
			t.Errorf("no test in %s calls the operation %s", opsFolder, name)
		}
	}
}

// TestRulesOperationsAreSeen tests the rule itself.
func TestRulesOperationsAreSeen(t *testing.T) {
	const text = `package p
import "` + module + "/" + opsFolder + `"
func Get(ctx context.Context, env Env, q GetRequest) error { return ops.List(ctx, env) }
func CodeOf(err error) int { return 0 }
func private(ctx context.Context, env Env) {}
`
	s, err := parse(opsFolder+"/p.go", "p.go", text)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]bool{}
	opsCalls(s, calls)
	if got := operations(s.File); len(got) != 1 || got[0] != "Get" || !calls["List"] || len(calls) != 1 {
		t.Errorf("operations %q, calls %v", got, calls)
	}
}

// callbacks lists what of the exported declarations of a file has the type of a function that a caller fills: parameters of
// functions, and fields of structs. [Env] is what a surface makes once, and not a request.
func callbacks(f *ast.File) (out []string) {
	isFunc := func(list *ast.FieldList, of string) {
		for _, field := range list.List {
			if _, ok := field.Type.(*ast.FuncType); ok && (len(field.Names) == 0 || field.Names[0].IsExported() || of[0] != '.') {
				out = append(out, strings.TrimPrefix(of, "."))
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || receiverExported(d.Recv)) {
				isFunc(d.Type.Params, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if t, ok := s.(*ast.TypeSpec); ok && t.Name.IsExported() && t.Name.Name != "Env" {
					if st, ok := t.Type.(*ast.StructType); ok {
						isFunc(st.Fields, "."+t.Name.Name)
					}
				}
			}
		}
	}
	return out
}

func receiverExported(recv *ast.FieldList) bool {
	t := recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	name, ok := t.(*ast.Ident)
	return ok && name.IsExported()
}

// asks are the requests that have a person change a text in the middle of an operation, in an editor.
var asks = []string{"CreateRequest", "EditRequest"}

// TestRulesOperationsReturnValues: an operation takes data and returns values or iterators; it calls nothing of its caller's
// but the sinks of Env.
func TestRulesOperationsReturnValues(t *testing.T) {
	for _, s := range sources(t) {
		if s.folder() == opsFolder {
			for _, name := range callbacks(s.File) {
				if slices.Contains(asks, name) {
					continue
				}
				t.Errorf("%s: %s takes a function; return a value or an iterator, or take data", s.path, name)
			}
		}
	}
	const text = `package p
type Request struct { Found func(); hidden func() }
type Env struct { View func() }
func Bad(ctx context.Context, found func(string) error) error { return nil }
func (r Request) Worse(f func()) {}
func good(f func()) iter.Seq[int] { return nil }
`
	s, err := parse(opsFolder+"/p.go", "p.go", text)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(callbacks(s.File), " "); got != "Request Bad Worse" {
		t.Errorf("callbacks %q", got)
	}
}
