package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "reconcile.dev/reconcile"

// root returns the root of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tracked lists the files that belong to the repository: those that git knows, and those that it would.
func tracked(t *testing.T) []string {
	t.Helper()
	out := git(t, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// source is a Go file of the repository.
type source struct {
	path string // slash path below the root
	fset *token.FileSet
	*ast.File
}

// sources parses every Go file that is part of a program of the project: no test, and no example.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	for _, p := range tracked(t) {
		if path.Ext(p) != ".go" || strings.HasSuffix(p, "_test.go") || strings.Contains("/"+p, "/testdata/") ||
			strings.HasPrefix(p, "examples/") {
			continue
		}
		s, err := parse(p, filepath.Join(root(t), filepath.FromSlash(p)), nil)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		t.Fatal("no Go files found")
	}
	return all
}

// parse reads a file, or text when that is not nil.
func parse(p, file string, text any) (source, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
	return source{path: p, fset: fset, File: f}, err
}

// folder is the package's folder, a slash path below the root.
func (s source) folder() string { return path.Dir(s.path) }

func (s source) line(n ast.Node) int { return s.fset.Position(n.Pos()).Line }

// imports returns the paths of the packages that the file imports, by the names that it uses for them.
func (s source) imports() map[string]string {
	m := map[string]string{}
	for _, spec := range s.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		m[name] = p
	}
	return m
}
