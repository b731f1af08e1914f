// Package template compiles and executes texts with inserted expressions, "deploy {{ params.env }}", in the language of
// package condition.
package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas/condition"
)

// Env is what the expressions of a template see. It is that of conditions, but for the issue, which has a text here.
type Env struct {
	Needs   map[string]Need `expr:"needs"`
	Session string          `expr:"session"`
	DAG     string          `expr:"dag"`
	Issue   Issue           `expr:"issue"`
	Params  map[string]any  `expr:"params"`
	Matrix  map[string]any  `expr:"matrix"`
	Round   int             `expr:"round"`
}

// Need is a node that the template's node needs.
type Need = condition.Need

// Issue is what the work is for. As a whole it is inserted as its number.
type Issue struct {
	Number   int    `expr:"number"`
	Title    string `expr:"title"`
	Text     string `expr:"text"`
	Comments string `expr:"comments"`
}

func (i Issue) String() string { return fmt.Sprint(i.Number) }

// maxLength bounds the text that a template becomes.
const maxLength = 1 << 20

// exprError is a problem at one place of a template.
type exprError struct {
	Line, Column int // from 1; columns in characters
	Message      string
}

func (e *exprError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

// Template is a compiled text.
type Template struct {
	parts []part
	// Params are the parameters that it reads, each once; AllParams tells that it may read any of them.
	Params    []string
	AllParams bool
	// Needs are the needs that it reads, each once; AllNeeds tells that it may read any of them.
	Needs    []string
	AllNeeds bool
}

// part is an expression, and the text before it.
type part struct {
	before string
	value  *condition.Program // nil in the last part
	source string
	at     exprError // the place of the expression; without a message
}

// Has reports whether a text has an expression.
func Has(text string) bool { return strings.Contains(text, "{{") }

// Compile compiles a text whose expressions may use the names of a scope. The error is of type [*Error].
func Compile(text string, names condition.Scope) (*Template, error) {
	t := new(Template)
	for at := 0; ; {
		open := strings.Index(text[at:], "{{")
		if open < 0 {
			t.parts = append(t.parts, part{before: text[at:]})
			return t, nil
		}
		open += at
		from := open + len("{{")
		end := closing(text, from)
		if end < 0 {
			return nil, placed(text, open, "{{ has no }}")
		}
		p := part{before: text[at:open], source: strings.TrimSpace(text[from:end]), at: *placed(text, open, "")}
		if err := t.compile(&p, text, from, end, names); err != nil {
			return nil, err
		}
		t.parts = append(t.parts, p)
		at = end + len("}}")
	}
}

func (t *Template) compile(p *part, text string, from, end int, names condition.Scope) error {
	if p.source == "" {
		return placed(text, from, "there is no expression between {{ and }}")
	}
	program, err := condition.CompileValue(text[from:end], names, Env{})
	if wrong, ok := errors.AsType[*condition.Error](err); ok {
		start := placed(text, from, wrong.Message)
		if start.Line += wrong.Line - 1; wrong.Line > 1 {
			start.Column = wrong.Column
		} else {
			start.Column += wrong.Column - 1
		}
		return start
	}
	if err != nil {
		return placed(text, from, err.Error())
	}
	p.value = program
	t.AllParams, t.AllNeeds = t.AllParams || program.AllParams, t.AllNeeds || program.AllNeeds
	t.Params, t.Needs = union(t.Params, program.Params), union(t.Needs, program.Needs)
	return nil
}

func union(names, more []string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// closing finds the }} that ends the expression which begins at from; those in texts and after an opened brace do not. It is
// negative without one.
func closing(text string, from int) int {
	depth := 0
	for i := from; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\'' || c == '`':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' && c != '`' {
					i++
				}
			}
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case strings.HasPrefix(text[i:], "}}"):
			return i
		}
	}
	return -1
}

func placed(text string, at int, message string) *exprError {
	before := text[:at]
	start := strings.LastIndexByte(before, '\n') + 1
	return &exprError{1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[start:]), message}
}

// Execute returns the text with the values of its expressions. mark, unless it is nil, is what becomes of each inserted text. A
// value of nothing is an error, since it is a wrong name more often than not.
func (t *Template) Execute(env *Env, mark func(string) string) (string, error) {
	var b strings.Builder
	for i := range t.parts {
		p := &t.parts[i]
		b.WriteString(p.before)
		if p.value == nil {
			break
		}
		text, err := p.text(env)
		if err != nil {
			return "", &exprError{p.at.Line, p.at.Column, fmt.Sprintf("{{ %s }}: %v", p.source, err)}
		}
		if mark != nil {
			text = mark(text)
		}
		if b.WriteString(text); b.Len() > maxLength {
			return "", &exprError{p.at.Line, p.at.Column, fmt.Sprintf("the text becomes longer than %d bytes", maxLength)}
		}
	}
	return b.String(), nil
}

func (p *part) text(env *Env) (string, error) {
	v, err := p.value.Value(*env)
	if v == nil && err == nil {
		err = errors.New(`there is no such value; write ?? "" after it for an empty text`)
	}
	if err != nil {
		return "", err
	}
	return Text(v), nil
}

// Text is a value as a text: a string as it is, any other value as JSON.
func Text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case fmt.Stringer:
		return v.String()
	}
	raw, _ := json.Marshal(v) // values of expressions are JSON, or the structs of Env
	return string(raw)
}
