package commands

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// pattern is a list of words that a list of arguments has to match.
type pattern struct {
	text  string
	words []patternWord
	not   []patternWord // that no argument may match
}

// patternWord matches one argument, or with rest any number of them.
type patternWord struct {
	rest bool
	any  []glob // of which one has to match
}

// glob is what the parts of a text have to be, with any text between them.
type glob []string

func (g glob) literal() bool { return len(g) == 1 }

func (g glob) match(s string) bool {
	if g.literal() {
		return s == g[0]
	}
	first, last := g[0], g[len(g)-1]
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for _, part := range g[1 : len(g)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, last)
}

// maxPattern bounds the words of a pattern.
const maxPattern = 100

// parsePattern parses a pattern: words with spaces between them. In a word * matches any text, {a,b} one of several texts; ' and \
// quote. The word ... matches any arguments, and !word excludes commands with an argument that matches word.
func parsePattern(text string) (*pattern, error) {
	p := &pattern{text: text}
	if strings.HasPrefix(text, "@") {
		return nil, errors.New("it begins with @, and only @default stands for other patterns")
	}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimLeft(rest, " \t") {
		not := strings.HasPrefix(rest, "!")
		rest = strings.TrimPrefix(rest, "!")
		w, n, err := parseWord(rest)
		if err != nil {
			return nil, err
		}
		rest = rest[n:]
		switch {
		case not && w.rest:
			return nil, errors.New("!... excludes everything")
		case not:
			p.not = append(p.not, w)
		case len(p.not) > 0:
			return nil, errors.New("words with ! come last")
		default:
			p.words = append(p.words, w)
		}
	}
	switch {
	case len(p.words) == 0:
		return nil, errors.New("it names no program")
	case p.words[0].rest || !allLiteral(p.words[0].any):
		return nil, errors.New("the program must be named: * and ... stand only for arguments")
	case len(p.words)+len(p.not) > maxPattern:
		return nil, errors.New("it has too many words")
	}
	return p, nil
}

func allLiteral(globs []glob) bool {
	return !slices.ContainsFunc(globs, func(g glob) bool { return !g.literal() })
}

// parseWord parses the first word of a text, and returns its length.
func parseWord(text string) (w patternWord, n int, err error) {
	var alternatives []glob // that are complete, in braces
	var before glob         // the brace
	g, braced, closed := glob{""}, false, false
	put := func(c byte) { g[len(g)-1] += string([]byte{c}) }
	for n < len(text) && text[n] != ' ' && text[n] != '\t' {
		c := text[n]
		n++
		switch {
		case c == '\\' && n < len(text):
			put(text[n])
			n++
		case c == '\'':
			end := strings.IndexByte(text[n:], '\'')
			if end < 0 {
				return w, n, errors.New("a quotation mark is not closed")
			}
			g[len(g)-1] += text[n : n+end]
			n += end + 1
		case c == '*':
			g = append(g, "")
		case c == '{' && !braced && !closed:
			braced, before = true, g
			g = glob{""}
		case c == '{' || c == '}' && !braced:
			return w, n, errors.New("a word has one list in braces; quote other braces")
		case braced && (c == ',' || c == '}'):
			alternatives = append(alternatives, join(before, g))
			if g = (glob{""}); c == '}' {
				braced, closed = false, true
			}
		default:
			put(c)
		}
	}
	switch {
	case braced:
		return w, n, errors.New("a brace is not closed")
	case closed:
		for i, a := range alternatives {
			alternatives[i] = join(a, g)
		}
		w.any = alternatives
	default:
		w.any = []glob{g}
	}
	w.rest = text[:n] == "..."
	return w, n, nil
}

// join returns a glob for a text followed by another one.
func join(a, b glob) glob {
	out := slices.Clone(a)
	out[len(out)-1] += b[0]
	return append(out, b[1:]...)
}

func (w *patternWord) match(arg string) bool {
	return slices.ContainsFunc(w.any, func(g glob) bool { return g.match(arg) })
}

func (w *patternWord) matchLiteral(arg string) bool {
	return slices.ContainsFunc(w.any, func(g glob) bool { return g.literal() && g[0] == arg })
}

// allows reports whether the pattern matches a command of plain arguments.
func (p *pattern) allows(argv []string) bool {
	for _, arg := range argv[1:] {
		if slices.ContainsFunc(p.not, func(w patternWord) bool { return w.match(arg) }) {
			return false
		}
	}
	if !p.words[0].matchLiteral(argv[0]) {
		return false
	}
	args, free := argv[1:], wildcards(argv)
	return p.match(len(args), func(w *patternWord, i int) bool { return free[i] && w.match(args[i]) || w.matchLiteral(args[i]) },
		func(i int) bool { return free[i] })
}

// wildcards says which arguments of a command wildcards may match.
func wildcards(argv []string) []bool {
	free := make([]bool, len(argv)-1)
	name, list := path.Base(argv[0]), dangers(argv[0])
	if starters[name] || shells[name] {
		return free
	}
	program := interpreters[name]
	for i, arg := range argv[1:] {
		free[i] = !program && !isDangerous(arg, list)
		program = program && strings.HasPrefix(arg, "-")
	}
	return free
}

// match matches the words after the program with n arguments: one says whether a word matches an argument, and rest whether ...
// does. It takes time in proportion to both lengths.
func (p *pattern) match(n int, one func(w *patternWord, i int) bool, rest func(i int) bool) bool {
	at := make([]bool, n+1) // the arguments up to which the words so far match
	at[0] = true
	for w := 1; w < len(p.words); w++ {
		next := make([]bool, n+1)
		for i := range next {
			if p.words[w].rest {
				next[i] = at[i] || i > 0 && next[i-1] && rest(i-1)
			} else {
				next[i] = i > 0 && at[i-1] && one(&p.words[w], i-1)
			}
		}
		at = next
	}
	return at[n]
}

// blocks reports whether the pattern may match a simple command. The program counts by its name, wherever it is.
func (p *pattern) blocks(c call) bool {
	if !c[0].known || !p.words[0].matchLiteral(c[0].text) && !p.words[0].matchLiteral(path.Base(c[0].text)) {
		return false
	}
	args := c[1:]
	for _, arg := range args {
		if arg.known && slices.ContainsFunc(p.not, func(w patternWord) bool { return w.match(arg.text) }) {
			return false
		}
	}
	return p.match(len(args), func(w *patternWord, i int) bool { return args[i].known && w.match(args[i].text) },
		func(int) bool { return true })
}

// quotePattern returns a pattern that matches only these arguments.
func quotePattern(argv []string) string {
	out := slices.Clone(argv)
	for i, a := range out {
		if a == "" || a == "..." || strings.ContainsAny(a, " \t\n*{},'\\!@") {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// Literal returns the commands that patterns without a wildcard allow, each as a line for a shell.
func Literal(allow []string) (lines []string) {
	for _, p := range patterns(allow) {
		var argv []string
		for _, w := range p.words {
			if w.rest || len(w.any) != 1 || !w.any[0].literal() {
				argv = nil
				break
			}
			argv = append(argv, w.any[0][0])
		}
		if argv != nil && len(p.not) == 0 {
			lines = append(lines, Line(Command{Argv: argv}))
		}
	}
	return lines
}
