package style

import (
	"go/ast"
	"go/parser"
	"go/token"

	"reconcile.dev/reconcile/controllers/languages"
)

// goSights is what the syntax tree of a Go file shows: names, how branches end, and groups of imports. Of a file with errors it is what could be read.
func goSights(text []byte) (out []sight) {
	files := token.NewFileSet()
	file, _ := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	if file == nil {
		return nil
	}
	line := func(p token.Pos) int { return files.Position(p).Line }
	declare := func(aspect string, name ast.Expr) {
		if id, ok := name.(*ast.Ident); ok {
			out = named(out, languages.Go, aspect, id.Name, line(id.Pos()))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			declare("functions", n.Name)
		case *ast.TypeSpec:
			declare("types", n.Name)
		case *ast.GenDecl:
			aspect := map[token.Token]string{token.CONST: "constants", token.VAR: "variables"}[n.Tok]
			for _, spec := range n.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range v.Names {
						declare(aspect, name)
					}
				}
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, name := range n.Lhs {
					declare("variables", name)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				declare("variables", n.Key)
				declare("variables", n.Value)
			}
		case *ast.IfStmt:
			switch {
			case n.Else != nil:
				out = append(out, sight{aspect: "errorHandling", value: "nested", line: line(n.Else.Pos())})
			case leavesGo(n.Body):
				out = append(out, sight{aspect: "errorHandling", value: "early_return", line: line(n.Pos())})
			}
		}
		return true
	})
	return append(out, goImports(file, line)...)
}

// leavesGo reports whether the last statement of a block leaves the function, the loop or the program.
func leavesGo(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	switch last := b.List[len(b.List)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	case *ast.ExprStmt:
		call, ok := last.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			return f.Name == "panic"
		case *ast.SelectorExpr:
			switch f.Sel.Name {
			case "Exit", "Fatal", "Fatalf", "Skip", "Skipf":
				return true
			}
		}
	}
	return false
}

// goImports reports whether empty lines part the imports of a declaration with three or more of them.
func goImports(file *ast.File, line func(token.Pos) int) []sight {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT || len(g.Specs) < 3 {
			continue
		}
		value := "ungrouped"
		for i, spec := range g.Specs[1:] {
			began := spec.Pos()
			if doc := spec.(*ast.ImportSpec).Doc; doc != nil {
				began = doc.Pos()
			}
			if line(began) > line(g.Specs[i].End())+1 {
				value = "grouped"
			}
		}
		return []sight{{aspect: "imports", value: value, line: line(g.Specs[0].Pos())}}
	}
	return nil
}
