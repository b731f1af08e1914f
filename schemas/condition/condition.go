// Package condition checks, compiles and evaluates the conditions of nodes (when), expressions of expr-lang.
package condition

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Env is what a condition sees:
//
//	needs.build.state == "Succeeded" && needs.build.exitCode == 0
//	needs.scan.result.findings > 0
//	session == "health" && dag == "checks" && issue == 42
type Env struct {
	Needs   map[string]Need `expr:"needs"`
	Session string          `expr:"session"`
	DAG     string          `expr:"dag"`
	Issue   int             `expr:"issue"`
	// Params are the parameters of the DAG, Matrix the values of the node's element, Round the round of the node, from 1.
	Params map[string]any `expr:"params"`
	Matrix map[string]any `expr:"matrix"`
	Round  int            `expr:"round"`
	// Result is what the node itself left, for a condition about its own end.
	Result any `expr:"result"`
}

// Scope is the names that an expression may use.
type Scope struct {
	Needs          []string
	Params, Matrix []string
	AnyMatrix      bool // the values of the matrix are not known
	Result         bool // of the node itself
	anyNeed        bool
}

// Need is a node that the condition's node needs.
type Need struct {
	State    string `expr:"state"`
	ExitCode int    `expr:"exitCode"`
	Result   any    `expr:"result"` // nil where the node left none
	// Files are the declared output files of a node that has succeeded.
	Files []string `expr:"files"`
}

// maxNodes bounds the size of a condition.
const maxNodes = 500

// functions are the functions that a condition may call. None loops over a predicate, none depends on anything but
// its arguments, and none makes something much larger than them, so the time of an evaluation is bounded by the length
// of the condition times the size of the results.
var functions = []string{
	"abs", "ceil", "first", "float", "floor", "get", "hasPrefix", "hasSuffix", "indexOf", "int", "keys", "last",
	"lastIndexOf", "len", "lower", "max", "min", "round", "string", "trim", "trimPrefix", "trimSuffix", "type", "upper",
	"values",
}

// Error is a problem at one place of a condition.
type Error struct {
	Line, Column int // from 1; columns in characters
	Message      string
	Unneeded     string // the name of a node that the condition's node does not need; "": something else is wrong
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

// Program is a compiled condition.
type Program struct {
	program *vm.Program
	// ReadsState tells that it reads the state of a need.
	ReadsState bool
	// Params are the parameters that it reads, each once; AllParams tells that it may read any of them.
	Params    []string
	AllParams bool
	// Needs are the needs that it reads, each once; AllNeeds tells that it may read any of them.
	Needs    []string
	AllNeeds bool
}

// CompileSource compiles an expression over the result of one node, and returns that node's name.
func CompileSource(expression string) (source string, program *Program, err error) {
	if program, err = compile(expression, Scope{anyNeed: true}, expr.Env(Env{})); err != nil {
		return "", nil, err
	}
	if len(program.Needs) == 1 {
		return program.Needs[0], program, nil
	}
	return "", nil, errors.New("the expression has to be about one node, as needs.plan.result")
}

// CompileIn compiles a condition that may use the names of a scope. The error is of type [*Error] if its place in the
// condition is known.
func CompileIn(condition string, names Scope) (*Program, error) {
	return compile(condition, names, expr.Env(Env{}), expr.AsBool())
}

// CompileValue compiles an expression of any value over an environment other than [Env]: a struct with fields like those of Env,
// or with further ones.
func CompileValue(expression string, names Scope, env any) (*Program, error) {
	return compile(expression, names, expr.Env(env))
}

func compile(condition string, names Scope, opts ...expr.Option) (*Program, error) {
	if err := dashed(condition); err != nil {
		return nil, err
	}
	v := &visitor{names: names}
	opts = append(opts, expr.MaxNodes(maxNodes), expr.DisableAllBuiltins(), expr.Patch(v))
	for _, name := range functions {
		opts = append(opts, expr.EnableBuiltin(name))
	}
	program, err := expr.Compile(condition, opts...)
	var at *file.Error
	switch {
	case v.err != nil:
		return nil, v.err
	case errors.As(err, &at):
		return nil, &Error{Line: max(at.Line, 1), Column: at.Column + 1, Message: plain(firstLine(at.Message))}
	case err != nil:
		return nil, errors.New(firstLine(err.Error()))
	}
	return &Program{program, v.states, v.params, v.whole > 0, v.needs, v.wholeNeeds > 0}, nil
}

// plain is a message of the compiler without names of types.
func plain(message string) string {
	kind, field, ok := strings.Cut(message, " has no field ")
	if !ok || !strings.HasPrefix(kind, "type ") {
		return message
	}
	return fmt.Sprintf("there is no field %q here", field)
}

// dashed reports a name with a dash after a dot, which an expression takes for a subtraction. Texts are skipped.
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
				return &Error{Line: line, Column: utf8.RuneCountInString(condition[start:i]) + 1,
					Message: fmt.Sprintf("a name with a dash cannot follow a dot: write needs[%q]", name)}
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

// visitor refuses what could make an evaluation large, and names that are not in scope.
type visitor struct {
	names  Scope
	states bool     // the state of a need is read
	needs  []string // those that are read by name
	params []string
	// whole and wholeNeeds count how often params and needs are used as a whole.
	whole, wholeNeeds int
	err               error
}

var needType = reflect.TypeFor[Need]()

func (v *visitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.VariableDeclaratorNode:
		v.refuse(n, "variables are not supported here")
	case *ast.PredicateNode:
		v.refuse(n, "predicates are not supported here")
	case *ast.IdentifierNode:
		v.identifier(n)
	case *ast.MemberNode:
		v.member(n)
	case *ast.BinaryNode:
		if n.Operator == ".." {
			v.refuse(n, "ranges are not supported here")
		}
	}
}

// identifier refuses the roots that have no names in scope.
func (v *visitor) identifier(n *ast.IdentifierNode) {
	switch {
	case n.Value == "params" && len(v.names.Params) == 0:
		v.refuse(n, "there are no parameters here: spec.params declares them")
	case n.Value == "matrix" && len(v.names.Matrix) == 0 && !v.names.AnyMatrix:
		v.refuse(n, "there is no matrix here: a node's matrix declares its values")
	case n.Value == "result" && !v.names.Result:
		v.refuse(n, "the node has no result yet: a need's is needs.<name>.result")
	case n.Value == "params":
		v.whole++
	case n.Value == "needs":
		v.wholeNeeds++
	}
}

// member checks needs.<name>, params.<name> and matrix.<name>, and notes which are read.
func (v *visitor) member(n *ast.MemberNode) {
	if field, ok := n.Property.(*ast.StringNode); ok && field.Value == "state" && n.Node.Type() == needType {
		v.states = true
	}
	of, ok := n.Node.(*ast.IdentifierNode)
	name, isName := n.Property.(*ast.StringNode)
	if !ok || !isName {
		return
	}
	switch of.Value {
	case "needs":
		if v.wholeNeeds--; !slices.Contains(v.needs, name.Value) {
			v.needs = append(v.needs, name.Value)
		}
		if !v.names.anyNeed && !slices.Contains(v.names.Needs, name.Value) && v.err == nil {
			v.err = &Error{1, n.Location().From + 1, fmt.Sprintf("this node does not need %q", name.Value), name.Value}
		}
	case "params":
		if v.whole--; !slices.Contains(v.params, name.Value) {
			v.params = append(v.params, name.Value)
		}
		if !slices.Contains(v.names.Params, name.Value) {
			v.refuse(n, fmt.Sprintf("there is no parameter %q", name.Value))
		}
	case "matrix":
		if !v.names.AnyMatrix && !slices.Contains(v.names.Matrix, name.Value) {
			v.refuse(n, fmt.Sprintf("the matrix has no %q", name.Value))
		}
	}
}

func (v *visitor) refuse(n ast.Node, message string) {
	if v.err == nil {
		v.err = &Error{Line: 1, Column: n.Location().From + 1, Message: message}
	}
}

// Holds evaluates the condition.
func (p *Program) Holds(env Env) (bool, error) {
	out, err := expr.Run(p.program, env)
	if err != nil {
		return false, p.failure(err)
	}
	ok, isBool := out.(bool)
	if !isBool {
		return false, fmt.Errorf("it is a %T, not true or false", out)
	}
	return ok, nil
}

// Value evaluates an expression over the environment that it was compiled for.
func (p *Program) Value(env any) (any, error) {
	out, err := expr.Run(p.program, env)
	if err != nil {
		return nil, p.failure(err)
	}
	return out, nil
}

// fieldless are the messages of the evaluation about a field of what has none, and what it is.
var fieldless = []struct{ ends, is string }{
	{"int(string)", "a text or a list"}, {"from <nil>", "nothing"}, {"from float64", "a number"}, {"from int", "a number"}, {"from bool", "true or false"},
}

// endsPath reports whether a character before a field is not part of what the field is of.
func endsPath(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(`._?[]"-`, r)
}

// failure is an error of the evaluation on one line; of a field that there cannot be, it names what has no fields.
func (p *Program) failure(err error) error {
	if at, ok := errors.AsType[*file.Error](err); ok {
		if strings.HasPrefix(at.Message, "invalid operation: float64 %") {
			return fmt.Errorf("%% is for whole numbers: write int(…) around what comes before it (%d:%d)", max(at.Line, 1), at.Column+1)
		}
		lines := strings.Split(p.program.Source().String(), "\n")
		line := []rune(lines[min(max(at.Line, 1), len(lines))-1])
		before := strings.TrimRight(string(line[:min(max(at.Column, 0), len(line))]), `.?["'`)
		base := before[strings.LastIndexFunc(before, endsPath)+1:]
		for _, f := range fieldless {
			if base != "" && strings.HasSuffix(at.Message, f.ends) {
				return fmt.Errorf("%s has no fields: it is %s (%d:%d)", base, f.is, max(at.Line, 1), at.Column+1)
			}
		}
	}
	return errors.New(firstLine(err.Error()))
}

// Result decodes a recorded JSON result for [Need.Result]; nil without one.
func Result(raw json.RawMessage) any {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}
