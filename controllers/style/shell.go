package style

import (
	"bytes"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"reconcile.dev/reconcile/controllers/languages"
)

// shellSights is what the syntax tree of a shell script shows: names, quotation marks, and how branches end. parsed is false for a script that is not
// of sh, bash or bats, or too large.
func shellSights(text []byte) (out []sight, parsed bool) {
	if len(text) > largestScript {
		return nil, false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBats)).Parse(bytes.NewReader(text), "")
	if err != nil {
		return nil, false
	}
	add := func(aspect, value string, at syntax.Pos) {
		out = append(out, sight{aspect: aspect, value: value, line: int(at.Line())})
	}
	declare := func(aspect string, name *syntax.Lit) {
		if name != nil {
			out = named(out, languages.Shell, aspect, name.Value, int(name.Pos().Line()))
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			declare("functions", n.Name)
		case *syntax.DeclClause:
			aspect := "variables"
			if n.Variant.Value == "readonly" || declaresConstant(n) {
				aspect = "constants"
			}
			for _, a := range n.Args {
				if !a.Naked || n.Variant.Value == "local" || aspect == "constants" {
					declare(aspect, a.Name)
				}
			}
		case *syntax.CallExpr:
			for _, a := range n.Assigns {
				declare("variables", a.Name)
			}
		case *syntax.SglQuoted:
			if !n.Dollar && !strings.ContainsAny(n.Value, freeOf) {
				add("quoteStyle", "single", n.Pos())
			}
		case *syntax.DblQuoted:
			if literal, ok := literalText(n); ok && !strings.ContainsAny(literal, freeOf) {
				add("quoteStyle", "double", n.Pos())
			}
		case *syntax.IfClause:
			switch {
			case n.Else != nil:
				add("errorHandling", "nested", n.Else.Pos())
			case n.ThenPos.IsValid() && leavesShell(n.Then):
				add("errorHandling", "early_return", n.Pos())
			}
		}
		return true
	})
	return out, true
}

// largestScript is the size in bytes of the largest script that is parsed: the parser calls itself for each level of nesting, and the stack is bounded.
const largestScript = 100_000

// freeOf are the marks that a string may not have where its quotation marks were a free choice.
const freeOf = "'\"\\$#\n`"

func declaresConstant(n *syntax.DeclClause) bool {
	for _, a := range n.Args {
		if a.Naked && a.Value != nil && strings.HasPrefix(a.Value.Lit(), "-") && strings.Contains(a.Value.Lit(), "r") {
			return true
		}
	}
	return false
}

// literalText is the text between double quotation marks where nothing is expanded in it.
func literalText(q *syntax.DblQuoted) (text string, ok bool) {
	for _, part := range q.Parts {
		lit, isLit := part.(*syntax.Lit)
		if !isLit || q.Dollar {
			return "", false
		}
		text += lit.Value
	}
	return text, !q.Dollar
}

// leavesShell reports whether the last command of a branch leaves the function, the loop or the script.
func leavesShell(then []*syntax.Stmt) bool {
	if len(then) == 0 {
		return false
	}
	call, ok := then[len(then)-1].Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) > 0 && leaves().MatchString(call.Args[0].Lit())
}
