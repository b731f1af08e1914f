package repotest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// opening are the functions of package os, and the methods of its Root with how many arguments they take, that wait for the
// other end of a pipe. Package state/regular has them for the rest of the program.
var opening = struct {
	functions []string
	methods   map[string]int
}{
	[]string{"Open", "OpenFile", "OpenRoot", "ReadFile", "WriteFile", "Create"},
	map[string]int{"ReadFile": 1, "OpenFile": 3, "FS": 0, "Create": 1, "WriteFile": 3},
}

// opensItself lists who may use them, with the reason.
var opensItself = map[string]string{
	"state/regular": "it is the one that does it",
	"state/proc":    "what it opens is the kernel's",
	"cmd/reconcile/internal/runner/process_tree_linux.go": "what it opens is the kernel's",
	"cmd/reconcile/internal/runner/machine_load.go":       "what it opens is the kernel's",
	"cmd/reconcile/internal/runner/limits":                "what it opens is the kernel's",
	"cmd/reconcile/internal/runner/inherited_linux":       "what it opens is the kernel's",
	"cmd/reconcile/internal/runner/sandbox":               "what it opens is the kernel's, or in a folder that it has just made",
	"cmd/reconcile/input.go":                              "who calls names the file, which may be a pipe",
	"cmd/reconcile/internal/runner/process":               "it opens the null device",
	"cmd/reconcile/internal/runner/acp/acptest":           "an agent for tests, which also waits at pipes",
	"cmd/reconcile/internal/ops/input_text.go":            "who calls names the file, which may be a pipe",
	"cmd/reconcile/prepare.go":                            "who calls names the file, which may be a pipe",
	"cmd/reconcile/internal/engine/plan/pull.go":          "who calls names the file that is written",
	"cmd/reconcile/internal/ops/explain.go":               "who calls names the folder that is written",
	"cmd/reconcile/internal/engine/tree/checkout.go":      "it writes into a folder that it has just made",
	"cmd/reconcile/internal/gitrepo/remote_fetch":         "it writes into a folder that it has just made",
	"cmd/reconcile/internal/gitrepo/scratch":              "it writes into a folder that it has just made",
	"cmd/reconcile/internal/engine/scaffold":              "the templates are part of the program",
	"cmd/reconcile/internal/tools":                        "the project's own programs",
	"state/mutants":                                       "a program for tests",
	"schemas":                                             "what it reads is part of the program",
}

// opens returns the calls of a file that could wait for a pipe. What makes a file that must not exist opens nothing.
func opens(s source) (found []string) {
	imports := s.imports()
	ast.Inspect(s.File, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || exclusive(call) {
			return true
		}
		if x, ok := f.X.(*ast.Ident); ok && imports[x.Name] != "" {
			if imports[x.Name] == "os" && slices.Contains(opening.functions, f.Sel.Name) {
				found = append(found, fmt.Sprintf("%s:%d: os.%s", s.path, s.line(n), f.Sel.Name))
			}
		} else if takes, ok := opening.methods[f.Sel.Name]; ok && len(call.Args) == takes || f.Sel.Name == "Open" && ofRoot(f.X) {
			found = append(found, fmt.Sprintf("%s:%d: .%s", s.path, s.line(n), f.Sel.Name))
		}
		return true
	})
	return found
}

// exclusive reports whether a call has the flag that lets it make files only.
func exclusive(call *ast.CallExpr) (is bool) {
	for _, a := range call.Args {
		ast.Inspect(a, func(n ast.Node) bool {
			if x, ok := n.(*ast.SelectorExpr); ok && x.Sel.Name == "O_EXCL" {
				is = true
			}
			return true
		})
	}
	return is
}

// ofRoot reports whether an expression is called like a root.
func ofRoot(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "root"
	case *ast.SelectorExpr:
		return x.Sel.Name == "root"
	case *ast.CallExpr:
		f, ok := x.Fun.(*ast.SelectorExpr)
		return ok && f.Sel.Name == "Root"
	}
	return false
}

func TestRulesOfOpening(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, line := range opens(s) {
			allowed := false
			for p := range opensItself {
				if strings.HasPrefix(s.path, p) {
					used[p], allowed = true, true
				}
			}
			if !allowed {
				t.Errorf("%s waits for the other end where a pipe stands in place of the file: use package state/regular", line)
			}
		}
	}
	for p := range opensItself {
		if !used[p] {
			t.Errorf("%s needs no exception", p)
		}
	}
}

// TestRulesOfOpeningAreSeen tests the rule itself.
func TestRulesOfOpeningAreSeen(t *testing.T) {
	const text = `package p
import ("os"; "x/regular")
func f(root *os.Root, s struct{ root *os.Root }) {
	os.Open("a")
	os.ReadFile("a")
	root.Open("a")
	s.root.ReadFile("a")
	root.OpenFile("a", os.O_RDWR, 0)
	root.FS()
	regular.Open(root, "a")
	root.OpenFile("a", os.O_CREATE|os.O_EXCL, 0)
	os.Lstat("a")
}
`
	s, err := parse("state/p.go", "p.go", text)
	if err != nil {
		t.Fatal(err)
	}
	got := opens(s)
	want := []string{":4: os.Open", ":5: os.ReadFile", ":6: .Open", ":7: .ReadFile", ":8: .OpenFile", ":9: .FS"}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s, want %s", got[i], want[i])
		}
	}
}
