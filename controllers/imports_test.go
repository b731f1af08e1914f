package controllers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPurity checks that decisions touch nothing but their arguments: no files, processes, network, clock, randomness
// or goroutines, in this package and those below it.
func TestPurity(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		for _, sin := range impurities(t, path, nil) {
			t.Errorf("%s: %s", path, sin)
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Fatalf("%d files read: %v", files, err)
	}
}

// TestPurityCatches checks the check.
func TestPurityCatches(t *testing.T) {
	for src, want := range map[string]string{
		"package p\nimport \"os\"\nvar _ = os.Args":                            `imports "os"`,
		"package p\nimport \"net/http\"\nvar _ = http.Get":                     `imports "net/http"`,
		"package p\nimport \"os/exec\"\nvar _ = exec.Command":                  `imports "os/exec"`,
		"package p\nimport \"math/rand/v2\"\nvar _ = rand.Int":                 `imports "math/rand/v2"`,
		"package p\nimport \"time\"\nfunc f() time.Time { return time.Now() }": "calls time.Now",
		"package p\nfunc f() { go f() }":                                       "starts a goroutine",
		"package p\nfunc init() {}":                                            "has an init function",
	} {
		if got := impurities(t, "p.go", src); !slices.Contains(got, want) {
			t.Errorf("%q: found %q, want %q", src, got, want)
		}
	}
}

// impurities lists what a file must not do. src nil reads the file.
func impurities(t *testing.T, path string, src any) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		root, _, _ := strings.Cut(name, "/")
		if name == "net/url" {
			continue // it only computes
		}
		if slices.Contains([]string{"os", "net", "syscall", "plugin", "log"}, root) || strings.HasPrefix(name, "math/rand") ||
			name == "crypto/rand" || name == "golang.org/x/sys" || strings.Contains(name, "cmd/reconcile") {
			out = append(out, "imports "+strconv.Quote(name))
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			out = append(out, "starts a goroutine")
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil {
				out = append(out, "has an init function")
			}
		case *ast.SelectorExpr:
			clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
			if id, ok := n.X.(*ast.Ident); ok && id.Name == "time" && slices.Contains(clock, n.Sel.Name) {
				out = append(out, "calls time."+n.Sel.Name)
			}
		}
		return true
	})
	return out
}
