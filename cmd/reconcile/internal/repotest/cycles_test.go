package repotest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"reconcile.dev/reconcile/schemas/topology"
)

// cyclicLimits bound, for the largest packages, the references between files that lie on a cycle of files. Before the engine
// was moved out of package main, there were 1,877 in main, 1,395 in state and 1,068 in controllers.
var cyclicLimits = map[string]int{
	"cmd/reconcile": 0,
	"state":         212,
	"controllers":   55, // the engine that settles
}

// splitOff are the packages that were split off a bounded one; their references count together with its own.
var splitOff = map[string]string{
	"controllers/actions":        "controllers",
	"controllers/admission":      "controllers",
	"controllers/agents":         "controllers",
	"controllers/clarifications": "controllers",
	"controllers/dags":           "controllers",
	"controllers/dags/plan":      "controllers",
	"controllers/derive":         "controllers",
	"controllers/keys":           "controllers",
	"controllers/ledgers":        "controllers",
	"controllers/nodes":          "controllers",
	"controllers/observations":   "controllers",
	"controllers/readiness":      "controllers",
	"controllers/sessions":       "controllers",
	"controllers/settle":         "controllers",
	"controllers/spans":          "controllers",
	"controllers/threads":        "controllers",
	"controllers/work":           "controllers",
}

// checkedPackage is a package of the repository with its types.
type checkedPackage struct {
	folder string
	fset   *token.FileSet
	syntax []*ast.File
	types  *types.Package
	uses   map[*ast.Ident]types.Object
}

// checkPackages checks the types of all packages, without tests, as they are built here.
func checkPackages(t *testing.T) []*checkedPackage {
	t.Helper()
	if testing.Short() {
		t.Skip("checks the types of all packages")
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module", "./...")
	cmd.Dir = root(t)
	data, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	export := map[string]string{}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })
	var out []*checkedPackage
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var listed struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
			Module                  *struct{ Main bool }
		}
		if err := d.Decode(&listed); err != nil {
			t.Fatal(err)
		}
		if export[listed.ImportPath] = listed.Export; listed.Module == nil || !listed.Module.Main {
			continue
		}
		p := &checkedPackage{fset: fset, uses: map[*ast.Ident]types.Object{}}
		p.folder, _ = filepath.Rel(module, listed.ImportPath)
		for _, name := range listed.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(listed.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			p.syntax = append(p.syntax, f)
		}
		config := types.Config{Importer: imports}
		if p.types, err = config.Check(listed.ImportPath, fset, p.syntax, &types.Info{Uses: p.uses}); err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// fileGraph has the references between the files of a package: by a file, to a file, how many.
type fileGraph struct {
	files []string
	refs  []map[uint32]int
}

// newFileGraph counts what the identifiers of each file name in the other files of its package: constants, variables, types,
// functions and methods. Fields are not counted: they go with their type.
func newFileGraph(p *checkedPackage) fileGraph {
	g := fileGraph{refs: make([]map[uint32]int, len(p.syntax))}
	number := map[string]uint32{}
	for i, f := range p.syntax {
		name := p.fset.Position(f.Package).Filename
		number[name] = uint32(i)
		g.files = append(g.files, filepath.Base(name))
		g.refs[i] = map[uint32]int{}
	}
	for from, f := range p.syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				o := p.uses[id]
				if o != nil && o.Pkg() == p.types && ownFile(o) {
					if to, ok := number[p.fset.Position(o.Pos()).Filename]; ok && to != uint32(from) {
						g.refs[from][to]++
					}
				}
			}
			return true
		})
	}
	return g
}

// ownFile reports whether the file matters that declares an object: it is a method, or declared by the package itself.
func ownFile(o types.Object) bool {
	if fn, ok := o.(*types.Func); ok && fn.Signature().Recv() != nil {
		return true
	}
	return o.Parent() == o.Pkg().Scope()
}

// cycle is a strongly connected component of files.
type cycle struct {
	files []string
	refs  int // between its files
}

// cycles lists the cycles of files, the one with the most references first.
func (g fileGraph) cycles() (out []cycle) {
	next := make([][]uint32, len(g.refs))
	for i, to := range g.refs {
		for t := range to {
			next[i] = append(next[i], t)
		}
	}
	c := topology.NewComponents(len(g.refs))
	for i := range g.refs {
		c.Search(uint32(i), func(node uint32, at *int) (uint32, bool) {
			if *at >= len(next[node]) {
				return 0, false
			}
			*at++
			return next[node][*at-1], true
		}, func(component []uint32) {
			if len(component) == 1 {
				return
			}
			var found cycle
			for _, from := range component {
				found.files = append(found.files, g.files[from])
				for to, n := range g.refs[from] {
					if slices.Contains(component, to) {
						found.refs += n
					}
				}
			}
			slices.Sort(found.files)
			out = append(out, found)
		})
	}
	slices.SortFunc(out, func(a, b cycle) int { return cmp.Compare(b.refs, a.refs) })
	return out
}

// TestRulesCyclesOfFiles: within a package, files that refer to each other in a cycle can only be understood together. It
// prints for each package the references on such cycles, and bounds them for the largest packages and what was split off them.
func TestRulesCyclesOfFiles(t *testing.T) {
	seen, refs := map[string]bool{}, map[string]int{}
	for _, p := range checkPackages(t) {
		seen[p.folder] = true
		for _, c := range newFileGraph(p).cycles() {
			refs[cmp.Or(splitOff[p.folder], p.folder)] += c.refs
			t.Logf("%s: %d references on a cycle of %d files: %q", p.folder, c.refs, len(c.files), c.files)
		}
	}
	for folder, limit := range cyclicLimits {
		t.Logf("%s: %d references on cycles of files, at most %d", folder, refs[folder], limit)
		if refs[folder] > limit {
			t.Errorf("%s: %d references on cycles of files, at most %d are allowed; go test -v lists the cycles. Move what several "+
				"files need into one that refers to none of them", folder, refs[folder], limit)
		}
		if !seen[folder] {
			t.Errorf("the package %s was not found", folder)
		}
	}
	for folder := range splitOff {
		if !seen[folder] {
			t.Errorf("the package %s was not found", folder)
		}
	}
}

// TestRulesCyclesOfFilesAreSeen tests the count itself.
func TestRulesCyclesOfFilesAreSeen(t *testing.T) {
	g := fileGraph{files: []string{"a", "b", "c", "d"}, refs: []map[uint32]int{{1: 2}, {2: 3, 3: 9}, {0: 1}, {}}}
	got := g.cycles()
	if len(got) != 1 || got[0].refs != 6 || !slices.Equal(got[0].files, []string{"a", "b", "c"}) {
		t.Errorf("%+v", got)
	}
}
