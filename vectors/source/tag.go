package source

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/vectors/graph"
)

// Tag is a symbol found by universal-ctags: its JSON output with --fields=+neZKSl and --output-format=json.
type Tag struct {
	Name      string `json:"name"`
	Path      string `json:"path"`
	Line      int    `json:"line"`
	End       int    `json:"end"`
	Kind      string `json:"kind"`
	Language  string `json:"language"`
	Scope     string `json:"scope"`
	Signature string `json:"signature"`
}

// kindOf maps kinds of ctags to node types; other kinds, as fields, are ignored.
var kindOf = map[string]graph.NodeType{
	"function": graph.Function, "func": graph.Function, "subroutine": graph.Function, "procedure": graph.Function,
	"macro": graph.Function, "generator": graph.Function,
	"method": graph.Method, "singletonMethod": graph.Method, "getter": graph.Method, "setter": graph.Method,
	"class": graph.Type, "struct": graph.Type, "interface": graph.Type, "enum": graph.Type, "trait": graph.Type,
	"typedef": graph.Type, "type": graph.Type, "union": graph.Type, "module": graph.Type, "namespace": graph.Type,
	"typealias": graph.Type, "object": graph.Type, "annotation": graph.Type,
	"constant": graph.Constant, "const": graph.Constant, "enumerator": graph.Constant, "enumConstant": graph.Constant,
	"define": graph.Constant, "variable": graph.Variable, "var": graph.Variable,
}

// kind returns the node type of a symbol, 0 for one to ignore. A member is a method in Python, and a field elsewhere; a
// constant, variable or property of JavaScript may be a function; an alias is another name for a type, a method or a command.
func (t *Tag) kind(line []byte) graph.NodeType {
	is := kindOf[t.Kind]
	switch t.Language {
	case "Python":
		if t.Kind == "member" {
			return graph.Method
		}
	case "JavaScript", "TypeScript":
		makes := bytes.Contains(line, []byte("=>")) || bytes.Contains(line, []byte("= function"))
		switch {
		case t.Kind == "alias" && t.declares(line):
			return graph.Type
		case t.Kind == "property" && makes:
			return graph.Method
		case (is == graph.Constant || is == graph.Variable) && makes:
			return graph.Function
		}
	case "Ruby":
		if t.Kind == "alias" {
			return graph.Method
		}
	case "Sh":
		if t.Kind == "alias" {
			return graph.Function
		}
	}
	return is
}

func (t *Tag) symbol() string {
	if t.Scope != "" {
		return t.Scope + "." + t.Name
	}
	return t.Name
}

// unnamed reports whether the name is one that ctags made up, as <lambda> in Kotlin; <=> in Ruby is a name.
func (t *Tag) unnamed() bool {
	return t.Name == "" || strings.HasPrefix(t.Name, "__anon") || strings.HasPrefix(t.Name, "<") && t.Name != "<" &&
		unicode.IsLetter(rune(t.Name[1]))
}

// declares reports whether the line defines the alias. Else it imports or exports a type of another file, which ctags takes for
// the same.
func (t *Tag) declares(line []byte) bool {
	_, after, ok := bytes.Cut(line, []byte("type "+t.Name))
	after = bytes.TrimSpace(after)
	return ok && (bytes.HasPrefix(after, []byte("=")) || bytes.HasPrefix(after, []byte("<")))
}

// TagPatterns are options of ctags: patterns of symbols in TypeScript and JavaScript, which its parsers miss in a class that
// extends Base<T>, and after text in JSX.
func TagPatterns() []string {
	const (
		word     = `([A-Za-z_$][A-Za-z0-9_$]*)`
		modifier = `((public|private|protected|static|async|override|abstract|readonly|get|set)[ \t]+)`
		method   = `^[ \t]+` + modifier + `*` + word + `(<[^()]*>)?\([^()]*(\([^()]*\)[^()]*)*\)[ \t]*(:[^={}]*)?\{/\3/m,method/`
		unclosed = `^[ \t]+` + modifier + `+` + word + `(<[^()]*>)?\($/\3/m,method/`
		arrow    = `^[ \t]+` + modifier + `*` + word + `[ \t]*=[ \t]*(async[ \t]*)?(<[^()]*>)?\(.*=>/\3/m,method/`
		top      = `^(export[ \t]+)?(default[ \t]+)?`
		constant = top + `const[ \t]+` + word + `/\3/C,constant/`
		class    = top + `(abstract[ \t]+)?class[ \t]+` + word + `/\4/c,class/`
		function = top + `(async[ \t]+)?function[ \t]+` + word + `/\4/f,function/`
	)
	var options []string
	for _, language := range []string{"TypeScript", "JavaScript"} {
		for _, pattern := range []string{method, unclosed, arrow, constant, class, function} {
			options = append(options, "--regex-"+language+"=/"+pattern)
		}
	}
	return options
}

// statements are keywords that look like methods to TagPatterns.
var statements = []string{"if", "for", "while", "switch", "catch", "with", "function", "return"}

// settlePatterns drops what TagPatterns found besides the parsers, and statements; a method without a class gets that in which
// it is: the nearest symbol above that is indented less. Tags are in the order of lines.
func settlePatterns(tags []Tag, lines [][]byte) (settled []Tag) {
	var around []int // symbols, each indented more than the one before it
	for _, t := range tags {
		if t.Language != "JavaScript" && t.Language != "TypeScript" {
			settled = append(settled, t)
			continue
		}
		if slices.Contains(statements, t.Name) {
			continue
		}
		for len(around) > 0 && indent(lines, settled[around[len(around)-1]]) >= indent(lines, t) {
			around = around[:len(around)-1]
		}
		if n := len(around); t.Kind == "method" && t.Scope == "" && n > 0 && settled[around[n-1]].Kind == "class" {
			t.Scope = settled[around[n-1]].symbol()
		}
		if twin := twinOf(settled, t); twin < 0 {
			around = append(around, len(settled))
			settled = append(settled, t)
		} else if settled[twin].Scope == "" {
			settled[twin].Scope = t.Scope
		}
	}
	return settled
}

// twinOf is where a symbol of the same line and name is; -1 if there is none.
func twinOf(settled []Tag, t Tag) int {
	for i, s := range slices.Backward(settled) {
		if s.Line != t.Line {
			break
		}
		if s.Name == t.Name {
			return i
		}
	}
	return -1
}

func indent(lines [][]byte, t Tag) int {
	line := lines[t.Line-1]
	return len(line) - len(bytes.TrimLeft(line, " \t"))
}
