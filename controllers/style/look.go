package style

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"reconcile.dev/reconcile/controllers/languages"
)

// File is a source file.
type File struct {
	Path string
	Text []byte
}

// sight is what one place of a file shows.
type sight struct {
	aspect, value string
	line          int
	name          string // of a declaration
}

// grammar has the patterns of a language.
type grammar struct {
	names     map[string]*regexp.Regexp // by aspect; the first group that matches is the name
	imports   *regexp.Regexp            // a line that imports something
	comment   string                    // that ends with the line
	block     bool                      // there are comments between /* and */
	quotes    bool                      // single and double quotation marks mean nearly the same
	comma     bool                      // a comma may follow the last element, and need not
	returns   *regexp.Regexp            // a line that leaves
	condition *regexp.Regexp            // a line that begins a branch
}

var (
	leaves = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*(?:return|throw|raise|continue|break|panic|exit|die|next|os\.Exit|log\.Fatal|t\.Fatal|process\.exit)\b`)
	})
	branch    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*(?:if|unless)\b`) })
	otherwise = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*}?\s*(?:else|elif|elsif)\b`) })
)

func grammarOf(names map[string]string, imports string) grammar {
	g := grammar{names: map[string]*regexp.Regexp{}, comment: "//", block: true, returns: leaves(), condition: branch()}
	for aspect, text := range names {
		g.names[aspect] = regexp.MustCompile(text)
	}
	if imports != "" {
		g.imports = regexp.MustCompile(imports)
	}
	return g
}

var grammars = sync.OnceValue(func() map[string]grammar {
	js := grammarOf(map[string]string{
		"functions": `\bfunction\s*\*?\s*(\w+)|^\s*(?:export\s+)?(?:const|let)\s+(\w+)\s*=\s*(?:async\s*)?(?:\([^)]*\)|\w+)\s*=>`,
		"types":     `^\s*(?:export\s+)?(?:default\s+|abstract\s+)*(?:class|interface|type|enum)\s+(\w+)`,
		"constants": `^(?:export\s+)?const\s+(\w+)\s*(?::[^=]+)?=\s*(?:[\d"'-]|true|false)`,
		"variables": `^\s+(?:const|let|var)\s+(\w+)\s*(?::[^=]+)?=\s*[^(=>]+$`,
	}, `^(?:import\b|(?:const|let|var)\s.*\brequire\()`)
	js.quotes, js.comma = true, true
	py := grammarOf(map[string]string{
		"functions": `^\s*(?:async\s+)?def\s+(\w+)`, "types": `^\s*class\s+(\w+)`,
		"constants": `^(\w+)\s*(?::[^=]+)?=\s*(?:[\d"'\[({-]|True|False)`, "variables": `^\s+(\w+)\s*(?::[^=]+)?=[^=]`,
	}, `^(?:import|from)\s`)
	py.comment, py.block, py.quotes, py.comma = "#", false, true, true
	rb := grammarOf(map[string]string{
		"functions": `^\s*def\s+(?:self\.)?(\w+)`, "types": `^\s*(?:class|module)\s+(\w+)`,
		"constants": `^\s*([A-Z]\w*)\s*=[^=~>]`, "variables": `^\s*@{0,2}([a-z_]\w*)\s*\|{0,2}=[^=~>]`,
	}, `^require`)
	rb.comment, rb.block, rb.quotes, rb.comma = "#", false, true, true
	sh := grammarOf(map[string]string{
		"functions": `^\s*(?:function\s+)?(\w+)\s*\(\)`, "constants": `^\s*(?:declare\s+-r|readonly)\s+(\w+)`,
		"variables": `^\s*(?:local\s+|export\s+)?([A-Za-z_]\w*)=`,
	}, "")
	sh.comment, sh.block, sh.quotes = "#", false, true
	rs := grammarOf(map[string]string{
		"functions": `\bfn\s+(\w+)`, "types": `\b(?:struct|enum|trait|type|union)\s+(\w+)`,
		"constants": `\b(?:const|static)\s+(?:mut\s+)?(\w+)\s*:`, "variables": `\blet\s+(?:mut\s+)?(\w+)\b`,
	}, `^use\s`)
	rs.comma = true
	c := grammarOf(map[string]string{
		"functions": `^[A-Za-z_][\w\s*&:<>]*?[\s*&](\w+)\([^;]*$`, "types": `^\s*(?:typedef\s+)?(?:struct|class|enum(?:\s+class)?|union)\s+(\w+)\b[^;(]*$`,
		"constants": `^\s*#\s*define\s+(\w+)\s+\S`, "variables": `^\s+(?:(?:const|static|unsigned|struct|auto)\s+)*\w+[\s*&]+(\w+)\s*=[^=]`,
	}, `^\s*#\s*include`)
	return map[string]grammar{
		languages.Go:         grammarOf(nil, ""),
		languages.TypeScript: js, languages.JavaScript: js, languages.Python: py, languages.Ruby: rb, languages.Shell: sh, languages.Rust: rs,
		languages.Java: grammarOf(map[string]string{
			"functions": `^\s+(?:(?:public|private|protected|static|final|abstract|synchronized)\s+)+[\w<>\[\], ?]+\s(\w+)\([^;]*$`,
			"types":     `\b(?:class|interface|enum|record)\s+(\w+)`, "constants": `\bstatic\s+final\s+[\w<>\[\], ]+\s(\w+)\s*=`,
			"variables": `^\s+(?:final\s+)?(?:var|[A-Za-z][\w<>\[\]]*)\s+([a-z]\w*)\s*=[^=]`,
		}, `^import\s`),
		languages.C: c, languages.CPP: c,
	}
})

// look finds what a file shows. parsed says that a parser found the names and patterns, which else are found line by line.
func look(language string, text []byte) (out []sight, parsed bool) {
	g, known := grammars()[language]
	if !known {
		g = grammar{comment: "#", block: true, quotes: true}
		if strings.Contains(string(text), "//") {
			g.comment = "//"
		}
	}
	code, quoted := g.strip(string(text), language)
	lines := strings.Split(code, "\n")
	switch language {
	case languages.Go:
		out, parsed = goSights(text), true
	case languages.Shell:
		out, parsed = shellSights(text)
	}
	out = append(out, indents(lines)...)
	if parsed {
		return out, true
	}
	if g.quotes {
		out = append(out, quoted...)
	}
	for i, line := range lines {
		for aspect, pattern := range g.names {
			out = named(out, language, aspect, firstGroup(pattern.FindStringSubmatch(line)), i+1)
		}
	}
	if known {
		out = append(out, g.exits(lines)...)
	}
	if g.comma {
		out = append(out, commas(lines)...)
	}
	if g.imports != nil {
		out = append(out, g.grouping(strings.Split(string(text), "\n"))...)
	}
	return out, false
}

// named adds a name that is declared, if it shows how words are joined.
func named(out []sight, language, aspect, name string, line int) []sight {
	if c := caseOf(language, name); c != "" {
		out = append(out, sight{aspect, c, line, name})
	}
	return out
}

func firstGroup(found []string) string {
	for _, f := range found[min(1, len(found)):] {
		if f != "" {
			return f
		}
	}
	return ""
}

// caseOf is how the words of a name are joined; "" if it has only one, in lower case.
func caseOf(language, name string) string {
	name = strings.Trim(name, "_$")
	lower, upper, first := strings.ToLower(name), strings.ToUpper(name), rune(0)
	for _, r := range name {
		first = r
		break
	}
	snake := strings.Contains(name, "_")
	switch {
	case name == "" || len(name) == 1:
		return ""
	case name == upper && name != lower && (snake || len(name) > 2 && language != languages.Go):
		return "SCREAMING_SNAKE"
	case snake && name == lower:
		return "snake_case"
	case snake || name == lower:
		return ""
	case language == languages.Go:
		return "camelCase (PascalCase if exported)"
	case unicode.IsUpper(first):
		return "PascalCase"
	}
	return "camelCase"
}

// strip replaces comments and the content of strings by blanks, and reports the quotation marks of strings where a choice was free.
func (g *grammar) strip(text, language string) (string, []sight) {
	b := []byte(text)
	var out []sight
	line := 1
	blank := func(from, to int) {
		for ; from < to; from++ {
			if b[from] == '\n' {
				line++
			} else {
				b[from] = ' '
			}
		}
	}
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch c := text[i]; {
		case c == '\n':
			line++
		case strings.HasPrefix(rest, g.comment) && (g.comment != "#" || i == 0 || strings.IndexByte(" \t\n;", text[i-1]) >= 0):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			blank(i, i+end)
			i += end - 1
		case g.block && strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				end = len(rest) - 4
			}
			blank(i, min(i+end+4, len(b)))
			i += end + 3
		case c == '"' || c == '\'' || c == '`':
			from := line
			n, long := stringEnd(rest, language)
			if n == 0 {
				continue
			}
			inner := text[i+1 : max(i+1, i+n-1)]
			if !long && c != '`' && !strings.ContainsAny(inner, "'\"\\$#\n") {
				value := "single"
				if c == '"' {
					value = "double"
				}
				out = append(out, sight{aspect: "quoteStyle", value: value, line: from})
			}
			blank(i+1, max(i+1, i+n-1))
			i += n - 1
		}
	}
	return string(b), out
}

// stringEnd is the length of the string that a text begins with, 0 without a complete one; long reports whether it is one between three
// marks.
func stringEnd(s, language string) (n int, long bool) {
	if mark := s[:1]; len(s) >= 6 && strings.HasPrefix(s, mark+mark+mark) && language == languages.Python {
		if end := strings.Index(s[3:], mark+mark+mark); end >= 0 {
			return end + 6, true
		}
		return len(s), true
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if s[0] != '`' || language != languages.Go {
				i++
			}
		case s[0]:
			return i + 1, false
		case '\n':
			if s[0] != '`' {
				return 0, false // an apostrophe, or the lifetime of a Rust reference
			}
		}
	}
	return 0, false
}

// indents reports how far lines go in.
func indents(lines []string) (out []sight) {
	before := ""
	for i, line := range lines {
		code := strings.TrimLeft(line, " \t")
		if code == "" {
			continue
		}
		now := line[:len(line)-len(code)]
		if more, deeper := strings.CutPrefix(now, before); deeper && more != "" {
			switch n := len(more); {
			case more[0] == '\t':
				out = append(out, sight{aspect: "indentStyle", value: "tabs", line: i + 1})
			case n > 1 && n <= 8 && strings.Trim(more, " ") == "":
				out = append(out, sight{aspect: "indentStyle", value: "spaces", line: i + 1}, sight{aspect: "indentSize", value: fmt.Sprint(n), line: i + 1})
			}
		}
		before = now
	}
	return out
}

// commas looks at the last line of lists that end on a line of their own.
func commas(lines []string) (out []sight) {
	last := 0
	for i, line := range lines {
		code := strings.TrimSpace(line)
		if code == "" {
			continue
		}
		before := strings.TrimSpace(lines[last])
		if i > 0 && (code[0] == ')' || code[0] == ']') && before != "" {
			switch end := before[len(before)-1]; {
			case end == ',':
				out = append(out, sight{aspect: "trailingComma", value: "yes", line: last + 1})
			case strings.IndexByte("([{;", end) < 0:
				out = append(out, sight{aspect: "trailingComma", value: "no", line: last + 1})
			}
		}
		last = i
	}
	return out
}

// exits looks at branches: whether they leave at once, or have another one.
func (g *grammar) exits(lines []string) (out []sight) {
	for i, line := range lines {
		switch {
		case otherwise().MatchString(line):
			out = append(out, sight{aspect: "errorHandling", value: "nested", line: i + 1})
		case g.condition.MatchString(line):
			next := ""
			if i+1 < len(lines) {
				next = lines[i+1]
			}
			_, after, _ := strings.Cut(line, ")")
			if g.returns.MatchString(next) || g.returns.MatchString(after) {
				out = append(out, sight{aspect: "errorHandling", value: "early_return", line: i + 1})
			}
		}
	}
	return out
}

// grouping reports whether empty lines part the imports of a file with three or more of them.
func (g *grammar) grouping(lines []string) []sight {
	first, last, n := 0, 0, 0
	for i, line := range lines {
		if g.imports.MatchString(line) {
			if n == 0 {
				first = i
			}
			last = i
			n++
		}
	}
	if n < 3 {
		return nil
	}
	for i := first; i < last; i++ {
		if strings.TrimSpace(lines[i]) == "" {
			return []sight{{aspect: "imports", value: "grouped", line: first + 1}}
		}
	}
	return []sight{{aspect: "imports", value: "ungrouped", line: first + 1}}
}

// Known reports whether names and patterns of a language are looked for; of others only indentation and quotation marks are.
func Known(language string) bool {
	_, ok := grammars()[language]
	return ok
}
