package importer

import (
	"fmt"
	"slices"
	"strings"
)

// usualTargets are conventional targets for people, also in a Makefile that does not mark them.
var usualTargets = []string{"all", "build", "check", "clean", "distclean", "doc", "docs", "fmt", "format", "generate", "install", "lint",
	"run", "test", "tests", "uninstall", "vet"}

// makeKeywords begin lines that are not rules.
var makeKeywords = []string{"include", "-include", "sinclude", "undefine", "ifeq", "ifneq", "ifdef", "ifndef", "else", "endif",
	"export", "unexport", "override", "private", "vpath", "load", "-load"}

// target is a target of a Makefile.
type target struct {
	name  string
	line  int
	doc   string
	needs []string
	rule  bool
	phony bool
}

// makefile is a Makefile being parsed.
type makefile struct {
	path    string
	found   Found
	targets []*target
	byName  map[string]*target
	doc     string // of the comment above
	prefix  byte   // of lines of a recipe
}

// Makefile finds the targets in a makefile that are for people: those that are .PHONY, that a comment with ## documents, or
// that are conventional. Without any, it is the first target. It does not evaluate conditionals or read included files.
func Makefile(path string, src []byte) Found {
	m := &makefile{path: path, byName: map[string]*target{}, prefix: '\t'}
	m.read(string(src))
	chosen := slices.DeleteFunc(slices.Clone(m.targets), func(t *target) bool { return !m.forPeople(t) })
	if len(chosen) == 0 {
		if i := slices.IndexFunc(m.targets, func(t *target) bool { return t.rule && plainTarget(t.name) == "" }); i >= 0 {
			chosen = m.targets[i : i+1]
		}
	}
	needs := map[string][]string{}
	for _, t := range m.targets {
		needs[t.name] = append(needs[t.name], t.needs...)
	}
	for _, t := range chosen {
		from := fmt.Sprintf("%s:%d", path, t.line)
		switch why := plainTarget(t.name); {
		case why != "":
			m.found.omit(from, t.name, "%s", why)
		case !t.rule:
			m.found.omit(from, t.name, "there is no rule for it in %s", path)
		default:
			m.found.Commands = append(m.found.Commands, Command{ID: t.name, Name: t.name, Description: short(t.doc),
				Run: []string{"make", t.name}, Needs: t.needs, Inputs: []string{path}, Held: heldThrough(t.name, needs, heldBecause), From: from})
		}
	}
	return m.found
}

func (m *makefile) forPeople(t *target) bool {
	return t.phony || t.rule && (t.doc != "" || slices.Contains(usualTargets, t.name))
}

// plainTarget returns why a target cannot be called by its name, or "".
func plainTarget(name string) string {
	switch {
	case strings.Contains(name, "$"):
		return "its name is made of variables"
	case strings.Contains(name, "%"):
		return "it is a pattern"
	case !isShown(name) || strings.ContainsAny(name, `\*?[]=`):
		return "its name cannot be an argument"
	}
	return ""
}

func (m *makefile) read(src string) {
	lines := strings.Split(strings.ReplaceAll(src, "\r\n", "\n"), "\n")
	defines := 0
	for i := 0; i < len(lines); i++ {
		number := i + 1
		text := lines[i]
		for makeContinues(text) && i+1 < len(lines) {
			i++
			text = text[:len(text)-1] + " " + strings.TrimLeft(lines[i], " \t")
		}
		word, _, _ := strings.Cut(strings.TrimLeft(text, " \t"), " ")
		switch {
		case word == "define":
			defines++
		case word == "endef" && defines > 0:
			defines--
		case defines > 0, text != "" && text[0] == m.prefix:
		default:
			m.readLine(number, text)
		}
	}
}

// makeContinues reports whether a line ends with a backslash that escapes its end.
func makeContinues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// readLine reads a line outside of recipes.
func (m *makefile) readLine(number int, text string) {
	code, comment := cutMakeComment(text)
	code = strings.TrimSpace(code)
	above := m.doc
	m.doc = ""
	if code == "" {
		if rest, ok := strings.CutPrefix(comment, "##"); ok && !strings.HasPrefix(rest, "@") && !strings.HasPrefix(rest, "#") {
			m.doc = strings.TrimSpace(rest)
		}
		return
	}
	if m.keyword(number, code) {
		return
	}
	names, rest, is := cutRule(code)
	switch {
	case is == assignment:
		if after, ok := strings.CutPrefix(rest, "="); ok && strings.TrimSpace(names) == ".RECIPEPREFIX" {
			if m.prefix = '\t'; strings.TrimSpace(after) != "" {
				m.prefix = strings.TrimSpace(after)[0]
			}
		}
	case is == rule:
		doc := above
		if own, ok := strings.CutPrefix(comment, "##"); ok {
			doc = strings.TrimSpace(own)
		}
		m.rule(number, names, rest, doc)
	}
}

// keyword reports whether a line begins with a keyword of make, and records the files that are not read.
func (m *makefile) keyword(number int, code string) bool {
	word, rest, _ := strings.Cut(code, " ")
	rest = strings.TrimSpace(rest)
	if !slices.Contains(makeKeywords, word) || strings.HasPrefix(rest, ":") {
		return false
	}
	if strings.HasSuffix(word, "include") {
		m.found.omit(fmt.Sprintf("%s:%d", m.path, number), "include "+short(rest), "targets of included files are not looked for")
	}
	return true
}

func (m *makefile) rule(number int, names, rest, doc string) {
	if recipe := makeIndexOutside(rest, ";"); recipe >= 0 {
		rest = rest[:recipe]
	}
	if makeIndexOutside(rest, "=") >= 0 {
		return // a variable of the target
	}
	if pattern := makeIndexOutside(rest, ":"); pattern >= 0 {
		rest = rest[pattern+1:]
	}
	words := makeFieldsOutside(rest)
	for _, name := range makeFieldsOutside(strings.TrimSuffix(strings.TrimSpace(names), "&")) {
		switch {
		case name == ".PHONY":
			for _, w := range words {
				m.target(w, number).phony = true
			}
		case strings.HasPrefix(name, ".") && !strings.Contains(name, "/"):
		default:
			m.addRule(m.target(name, number), number, words, doc)
		}
	}
}

func (m *makefile) addRule(t *target, number int, needs []string, doc string) {
	if !t.rule {
		t.rule, t.line = true, number
	}
	if t.doc == "" {
		t.doc = strings.TrimSpace(strings.TrimPrefix(doc, t.name+":"))
	}
	t.needs = append(t.needs, needs...)
}

func (m *makefile) target(name string, number int) *target {
	t := m.byName[name]
	if t == nil {
		t = &target{name: name, line: number}
		m.byName[name] = t
		m.targets = append(m.targets, t)
	}
	return t
}

// The forms of a line of a Makefile.
type lineForm int

const (
	other lineForm = iota
	assignment
	rule
)

// cutRule distinguishes rules from assignments by the first sign outside of $(…).
func cutRule(code string) (before, after string, is lineForm) {
	switch i := makeIndexOutside(code, ":="); {
	case i < 0:
		return "", "", other
	case code[i] == '=':
		return strings.TrimRight(code[:i], "?+! \t"), code[i:], assignment
	default:
		colons := code[i:]
		after := strings.TrimLeft(colons, ":")
		if strings.HasPrefix(after, "=") {
			return strings.TrimSpace(code[:i]), after, assignment
		}
		return code[:i], after, rule
	}
}

// makeIndexOutside returns the index of the first of some bytes outside of $(…) and ${…}, or -1.
func makeIndexOutside(s, any string) int {
	depth := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '(' || c == '{':
			if depth > 0 || i > 0 && s[i-1] == '$' {
				depth++
			}
		case (c == ')' || c == '}') && depth > 0:
			depth--
		case depth == 0 && strings.IndexByte(any, c) >= 0:
			return i
		}
	}
	return -1
}

// makeFieldsOutside returns the words of a text; $(a b) is one, and so is a\ b.
func makeFieldsOutside(s string) (words []string) {
	for s = strings.TrimLeft(s, " \t"); s != ""; s = strings.TrimLeft(s, " \t") {
		end := 0
		for end < len(s) {
			i := makeIndexOutside(s[end:], " \t")
			if i < 0 {
				end = len(s)
				break
			}
			if end += i; !makeContinues(s[:end]) {
				break
			}
			end++
		}
		if s[:end] != "|" {
			words = append(words, s[:end])
		}
		s = s[end:]
	}
	return words
}

// cutMakeComment splits a line at its first unescaped #.
func cutMakeComment(text string) (code, comment string) {
	for i := range len(text) {
		if text[i] == '#' && !makeContinues(text[:i]) {
			return text[:i], text[i:]
		}
	}
	return text, ""
}
