package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// just finds the recipes of a justfile that need no arguments, from its text: for when just itself is not there to ask.
// os is what Go calls the operating system. Imported files and modules are not read.
func just(path string, src []byte, os string) Found {
	var found Found
	var recipes []recipe
	s := &justScanner{text: strings.ReplaceAll(string(src), "\r\n", "\n")}
	var doc string
	var attributes []string
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '\n':
			s.at++
			doc, attributes = "", nil
		case c == ' ' || c == '\t':
			s.line()
		case c == '#':
			doc = strings.TrimSpace(strings.TrimLeft(s.line(), "#"))
		case c == '[':
			attributes = append(attributes, s.statement()...)
		default:
			tokens := s.statement()
			r, ok := justRecipe(tokens)
			switch {
			case ok && forSystem(attributes, os):
				r.describe(doc, attributes)
				recipes = append(recipes, r)
			case !ok && len(tokens) > 1 && (tokens[0] == "import" || tokens[0] == "mod"):
				found.omit(path, short(strings.Join(tokens, " ")), "imported recipes are not looked for; with just installed they are found")
			}
			doc, attributes = "", nil
		}
	}
	commandsOf(path, recipes, &found)
	return found
}

// describe adds the comment and the attributes above a recipe.
func (r *recipe) describe(doc string, attributes []string) {
	r.doc = doc
	r.private = strings.HasPrefix(r.name, "_")
	for i, a := range attributes {
		switch {
		case a == "private":
			r.private = true
		case a == "confirm":
			r.asks = true
		case a == "doc" && i+2 < len(attributes) && attributes[i+1] == "(":
			r.doc = strings.Trim(attributes[i+2], `"'`)
		}
	}
}

// justSystems are the attributes that bind a recipe to systems.
var justSystems = []string{"linux", "macos", "windows", "unix", "openbsd", "freebsd", "netbsd", "dragonfly", "android"}

// justScanner splits a justfile into statements.
type justScanner struct {
	text string
	at   int
}

// line returns the rest of the line.
func (s *justScanner) line() string {
	line, _, found := strings.Cut(s.text[s.at:], "\n")
	s.at += len(line)
	if found {
		s.at++
	}
	return line
}

// statement returns the tokens up to the end of the line, or of the line that closes the last string and bracket.
func (s *justScanner) statement() (tokens []string) {
	depth := 0
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '\n' && depth == 0:
			s.at++
			return tokens
		case c == '#':
			s.line()
			s.at-- // the end of the line is read again
			if s.text[s.at] != '\n' {
				s.at++
			}
		case c == ' ' || c == '\t' || c == '\n' || c == '\\':
			s.at++
			if c == '\\' && s.at < len(s.text) && s.text[s.at] == '\n' {
				s.at++
			}
		default:
			token := s.token()
			switch token {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth = max(depth-1, 0)
			}
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// token returns a string with its quotes, a name, or a symbol.
func (s *justScanner) token() string {
	rest := s.text[s.at:]
	size := 1
	switch c := rest[0]; {
	case c == '"' || c == '\'' || c == '`':
		size = stringLength(rest)
	case isWord(c):
		for size < len(rest) && (isWord(rest[size]) || rest[size] == '-') {
			size++
		}
	case strings.HasPrefix(rest, ":=") || strings.HasPrefix(rest, "&&") || strings.HasPrefix(rest, "::"):
		size = 2
	}
	s.at += size
	return rest[:size]
}

func isWord(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// stringLength returns the length of the string at the start of a text, with its quotes; an unclosed one extends to the
// end.
func stringLength(text string) int {
	quote := text[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text, triple) {
		quote = triple
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		case text[i] == '\\' && quote[0] == '"':
			i++
		}
	}
	return len(text)
}

// justRecipe parses the head of a recipe: @name parameters: dependencies.
func justRecipe(tokens []string) (r recipe, ok bool) {
	if len(tokens) > 0 && tokens[0] == "@" {
		tokens = tokens[1:]
	}
	if len(tokens) < 2 || !isWord(tokens[0][0]) || tokens[0][0] <= '9' {
		return r, false
	}
	r.name = tokens[0]
	tokens = tokens[1:]
	for len(tokens) > 0 && tokens[0] != ":" {
		tokens, ok = r.parameter(tokens)
		if !ok {
			return r, false
		}
	}
	if len(tokens) == 0 {
		return r, false
	}
	r.dependencies(tokens[1:])
	return r, true
}

// parameter parses one, and returns the tokens after it.
func (r *recipe) parameter(tokens []string) (rest []string, ok bool) {
	many := false
	for len(tokens) > 0 && (tokens[0] == "*" || tokens[0] == "+" || tokens[0] == "$") {
		many = many || tokens[0] == "*"
		tokens = tokens[1:]
	}
	if len(tokens) < 2 || !isWord(tokens[0][0]) {
		return nil, false
	}
	name := tokens[0]
	tokens = tokens[1:]
	if tokens[0] != "=" {
		if !many {
			r.params = append(r.params, name)
		}
		return tokens, true
	}
	return skipValue(tokens[1:])
}

// skipValue skips a string, a name, a call or a bracketed expression.
func skipValue(tokens []string) (rest []string, ok bool) {
	if len(tokens) == 0 {
		return nil, false
	}
	first := tokens[0]
	if isWord(first[0]) && len(tokens) > 1 {
		if next := tokens[1]; next == "(" {
			tokens, first = tokens[1:], next
		} else if (first == "x" || first == "f") && strings.ContainsAny(next[:1], `"'`) {
			return tokens[2:], true
		}
	}
	if first != "(" {
		return tokens[1:], true
	}
	depth := 0
	for i, t := range tokens {
		switch t {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return tokens[i+1:], true
			}
		}
	}
	return nil, false
}

// dependencies parses the dependencies before the recipe: names, and calls in brackets. Those after && run later.
func (r *recipe) dependencies(tokens []string) {
	depth := 0
	for i := 0; i < len(tokens) && tokens[i] != "&&"; i++ {
		switch t := tokens[i]; {
		case t == "(":
			depth++
			if depth == 1 && i+1 < len(tokens) && isWord(tokens[i+1][0]) {
				r.needs = append(r.needs, tokens[i+1])
				i++
			}
		case t == ")":
			depth--
		case depth == 0 && isWord(t[0]):
			name := t
			for i+2 < len(tokens) && tokens[i+1] == "::" {
				name += "::" + tokens[i+2]
				i += 2
			}
			r.needs = append(r.needs, name)
		}
	}
}

// recipe is a recipe of a justfile.
type recipe struct {
	name    string // with its modules: tools::build
	doc     string
	needs   []string
	params  []string // without a default
	private bool
	asks    bool
}

// commandsOf returns the commands of recipes, sorted by name, as in "just --list".
func commandsOf(path string, recipes []recipe, found *Found) {
	slices.SortStableFunc(recipes, func(a, b recipe) int { return strings.Compare(a.name, b.name) })
	recipes = slices.CompactFunc(recipes, func(a, b recipe) bool { return a.name == b.name })
	needs, asks := map[string][]string{}, map[string]bool{}
	for _, r := range recipes {
		needs[r.name], asks[r.name] = r.needs, r.asks
	}
	own := func(name string) string {
		if asks[name] {
			return heldAsks
		}
		return heldBecause(name)
	}
	for _, r := range recipes {
		switch {
		case r.private:
			continue
		case len(r.params) > 0:
			found.omit(path, r.name, "it needs %s", strings.Join(r.params, ", "))
			continue
		}
		found.Commands = append(found.Commands, Command{ID: r.name, Name: r.name, Description: short(r.doc), Run: []string{"just", r.name},
			Needs: r.needs, Inputs: []string{path}, Held: heldThrough(r.name, needs, own), From: path})
	}
}

// justModule is a justfile, or a module of it, as "just --dump --dump-format json" prints it.
type justModule struct {
	Recipes map[string]struct {
		Attributes   []json.RawMessage `json:"attributes"`
		Dependencies []struct {
			Recipe string `json:"recipe"`
		} `json:"dependencies"`
		Doc        string `json:"doc"`
		Parameters []struct {
			Default json.RawMessage `json:"default"`
			Kind    string          `json:"kind"`
			Name    string          `json:"name"`
		} `json:"parameters"`
		Priors  int  `json:"priors"`
		Private bool `json:"private"`
	} `json:"recipes"`
	Modules map[string]justModule `json:"modules"`
}

// justDump finds the recipes in the JSON dump of just: those without required arguments, as commands.
func justDump(path string, dump []byte) (Found, error) {
	var found Found
	var m justModule
	if err := json.Unmarshal(dump, &m); err != nil {
		return found, fmt.Errorf("what just prints of %s is not the JSON that is expected: %w", path, err)
	}
	commandsOf(path, m.recipes("", nil), &found)
	return found, nil
}

func (m *justModule) recipes(prefix string, all []recipe) []recipe {
	for _, name := range sortedKeys(m.Recipes) {
		from := m.Recipes[name]
		r := recipe{name: prefix + name, doc: from.Doc, private: from.Private}
		for i, d := range from.Dependencies {
			if i < from.Priors {
				r.needs = append(r.needs, prefix+d.Recipe)
			}
		}
		for _, p := range from.Parameters {
			if (len(p.Default) == 0 || string(p.Default) == "null") && p.Kind != "star" {
				r.params = append(r.params, p.Name)
			}
		}
		for _, a := range from.Attributes {
			r.asks = r.asks || strings.Contains(string(a), `"confirm"`)
		}
		if isShown(r.name) {
			all = append(all, r)
		}
	}
	for _, name := range sortedKeys(m.Modules) {
		sub := m.Modules[name]
		all = sub.recipes(prefix+name+"::", all)
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// forSystem reports whether a recipe with these attributes applies to this system.
func forSystem(attributes []string, os string) bool {
	bound := false
	for _, a := range attributes {
		if !slices.Contains(justSystems, a) {
			continue
		}
		bound = true
		if a == os || a == "macos" && os == "darwin" || a == "unix" && os != "windows" {
			return true
		}
	}
	return !bound
}
