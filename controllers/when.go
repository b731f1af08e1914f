package controllers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"reconcile.dev/reconcile/schemas"
)

// whenEnv is what a condition sees:
//
//	needs.build.state == "Succeeded" && needs.build.exitCode == 0
//	needs.scan.result.findings > 0
//	session == "health" && dag == "checks" && issue == 42
type whenEnv struct {
	Needs   map[string]whenNeed `expr:"needs"`
	Session string              `expr:"session"`
	DAG     string              `expr:"dag"`
	Issue   int                 `expr:"issue"`
}

type whenNeed struct {
	State    string `expr:"state"`
	ExitCode int    `expr:"exitCode"`
	Result   any    `expr:"result"` // nil where the node left none
}

// maxWhenNodes bounds the size of a condition.
const maxWhenNodes = 500

// whenFunctions are the functions that a condition may call. None loops over a predicate, none depends on anything but
// its arguments, and none makes something much larger than them, so the time of an evaluation is bounded by the length
// of the condition times the size of the results.
var whenFunctions = []string{
	"abs", "ceil", "first", "float", "floor", "get", "hasPrefix", "hasSuffix", "indexOf", "int", "keys", "last",
	"lastIndexOf", "len", "lower", "max", "min", "round", "string", "trim", "trimPrefix", "trimSuffix", "type", "upper",
	"values",
}

// CheckWhen says what is wrong with the condition of a node that needs the given nodes; nil when it can be evaluated.
// The error is of type [*WhenError] where a place within the condition is known.
func CheckWhen(condition string, needs []string) error {
	_, _, err := compileWhen(condition, needs)
	return err
}

// checkConditions reports conditions of a DAG's nodes that do not compile.
func checkConditions(o *schemas.Object, r *schemas.Report) {
	if !bytes.Contains(o.Canonical(), []byte(`"when":`)) {
		return // most need not be decoded for it
	}
	dag := schemas.SpecAs[*schemas.DAGSpec](o)
	defer o.Release()
	for i, n := range dag.Nodes {
		if n.When == "" {
			continue
		}
		if err := CheckWhen(n.When, n.Needs); err != nil {
			r.At("nodes", i, "when").Errorf("bad-condition", "%v", err).
				Suggest(`for example: needs.build.exitCode == 0`)
		}
	}
}

// WhenError is a problem at one place of a condition.
type WhenError struct {
	Line, Column int // from 1; columns in characters
	Message      string
}

func (e *WhenError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

// compileWhen compiles a condition. states tells that it reads the state of a need.
func compileWhen(condition string, needs []string) (prog *vm.Program, states bool, err error) {
	if err := dashed(condition); err != nil {
		return nil, false, err
	}
	v := &whenVisitor{needs: needs}
	opts := []expr.Option{expr.Env(whenEnv{}), expr.AsBool(), expr.MaxNodes(maxWhenNodes), expr.DisableAllBuiltins(),
		expr.Patch(v)}
	for _, name := range whenFunctions {
		opts = append(opts, expr.EnableBuiltin(name))
	}
	prog, err = expr.Compile(condition, opts...)
	var at *file.Error
	switch {
	case v.err != nil:
		return nil, false, v.err
	case errors.As(err, &at):
		return nil, false, &WhenError{max(at.Line, 1), at.Column + 1, firstLine(at.Message)}
	case err != nil:
		return nil, false, errors.New(firstLine(err.Error()))
	}
	return prog, v.states, nil
}

// dashed reports a name with a dash after a dot, which an expression takes for a subtraction. Texts are passed over.
func dashed(condition string) error {
	const root = "needs."
	line, start := 1, 0 // of the line
	for i := 0; i < len(condition); i++ {
		switch c := condition[i]; {
		case c == '\n':
			line, start = line+1, i+1
		case c == '"' || c == '\'' || c == '`':
			for i++; i < len(condition) && condition[i] != c; i++ {
				if condition[i] == '\\' && c != '`' {
					i++
				}
			}
		case strings.HasPrefix(condition[i:], root) && (i == 0 || !isNamePart(condition[i-1]) && condition[i-1] != '.'):
			rest := condition[i+len(root):]
			n := 0
			for n < len(rest) && (isNamePart(rest[n]) || rest[n] == '-' && n+1 < len(rest) && isNamePart(rest[n+1])) {
				n++
			}
			if name := rest[:n]; strings.Contains(name, "-") {
				return &WhenError{line, utf8.RuneCountInString(condition[start:i]) + 1,
					fmt.Sprintf("a name with a dash cannot follow a dot: write needs[%q]", name)}
			}
		}
	}
	return nil
}

func isNamePart(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// whenVisitor refuses what could make an evaluation large, and needs that are not the node's.
type whenVisitor struct {
	needs  []string
	states bool // the state of a need is read
	err    error
}

var needType = reflect.TypeFor[whenNeed]()

func (v *whenVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.VariableDeclaratorNode:
		v.refuse(n, "variables are not supported here")
	case *ast.PredicateNode:
		v.refuse(n, "predicates are not supported here")
	case *ast.MemberNode:
		v.member(n)
	case *ast.BinaryNode:
		if n.Operator == ".." {
			v.refuse(n, "ranges are not supported here")
		}
	}
}

// member checks needs.<name>, and notes whether the state of a need is read.
func (v *whenVisitor) member(n *ast.MemberNode) {
	if field, ok := n.Property.(*ast.StringNode); ok && field.Value == "state" && n.Node.Type() == needType {
		v.states = true
	}
	of, ok := n.Node.(*ast.IdentifierNode)
	name, isName := n.Property.(*ast.StringNode)
	if !ok || of.Value != "needs" || !isName || slices.Contains(v.needs, name.Value) {
		return
	}
	msg := fmt.Sprintf("this node does not need %q", name.Value)
	if near := schemas.Nearest(name.Value, v.needs); near != "" {
		msg += fmt.Sprintf("; did you mean %q?", near)
	}
	v.refuse(n, msg)
}

func (v *whenVisitor) refuse(n ast.Node, message string) {
	if v.err == nil {
		v.err = &WhenError{1, n.Location().From + 1, message}
	}
}

// evalWhen evaluates a compiled condition.
func evalWhen(p *vm.Program, env whenEnv) (bool, error) {
	out, err := expr.Run(p, env)
	if err != nil {
		return false, errors.New(firstLine(err.Error()))
	}
	ok, isBool := out.(bool)
	if !isBool {
		return false, fmt.Errorf("it is a %T, not true or false", out)
	}
	return ok, nil
}

// value decodes a recorded JSON result; nil when there is none.
func value(raw json.RawMessage) any {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}
