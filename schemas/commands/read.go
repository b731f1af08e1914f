package commands

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

const (
	maxText  = 16 << 10 // bytes of a text for a shell; longer ones are not read
	maxDepth = 5        // of shells in shells
)

// word is an argument where it is known.
type word struct {
	text  string
	known bool // the text is what the program gets, or a glob as it is written
	plain bool // the text is what the program gets
}

// call is a simple command as it is written: program and arguments.
type call []word

func (c call) String() string {
	var argv []string
	for _, w := range c {
		if !w.known {
			w.text = "…"
		}
		argv = append(argv, w.text)
	}
	return Line(Command{Argv: argv})
}

// script is what a command would do.
type script struct {
	// calls are all simple commands that were found, also in substitutions and as arguments of other commands.
	calls []call
	// plain are the simple commands that run, without the programs that only start them; only if unclear is "".
	plain [][]string
	// unclear says, after "it", why plain does not tell all.
	unclear string
}

func (s *script) doubt(format string, args ...any) {
	if s.unclear == "" {
		s.unclear = fmt.Sprintf(format, args...)
	}
}

// read finds out what a command would do.
func read(c Command) *script {
	s := new(script)
	switch {
	case len(c.Argv) == 0 || c.Shell && strings.TrimSpace(c.Argv[0]) == "":
		s.doubt("names no program")
	case c.Shell:
		s.text(c.Argv[0], 0)
	default:
		s.argv(c.Argv, 0)
	}
	return s
}

// argv reads a list of arguments.
func (s *script) argv(argv []string, depth int) {
	var c call
	for _, a := range argv {
		clean := isClean(a)
		if !clean {
			s.doubt("has a control character, or is not UTF-8")
		}
		c = append(c, word{a, true, clean})
	}
	s.call(c, depth)
}

// text reads a text for a shell.
func (s *script) text(text string, depth int) {
	switch {
	case depth > maxDepth:
		s.doubt("nests shells too deeply")
		return
	case len(text) > maxText:
		s.doubt("is longer than %d bytes", maxText)
		return
	case !isClean(strings.NewReplacer("\n", "", "\t", "").Replace(text)):
		s.doubt("has a control character, or is not UTF-8")
		return
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		s.doubt("is not valid for a shell")
		return
	}
	for _, stmt := range file.Stmts {
		s.stmt(stmt)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if e, ok := n.(*syntax.CallExpr); ok && len(e.Args) > 0 {
			var c call
			for _, w := range e.Args {
				c = append(c, evaluate(w))
			}
			s.call(c, depth)
		}
		return true
	})
	if len(s.calls) == 0 {
		s.doubt("runs no program")
	}
}

// stmt notes what makes a statement more than simple commands, one after the other or in a pipe.
func (s *script) stmt(stmt *syntax.Stmt) {
	switch {
	case stmt.Background || stmt.Coprocess || stmt.Disown:
		s.doubt("runs a command in the background")
	case stmt.Negated:
		s.doubt("negates a result")
	}
	for _, r := range stmt.Redirs {
		s.redirect(r)
	}
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Assigns) > 0 {
			s.doubt("sets a variable")
		}
	case *syntax.BinaryCmd:
		s.stmt(c.X)
		s.stmt(c.Y)
	case *syntax.Subshell:
		for _, inner := range c.Stmts {
			s.stmt(inner)
		}
	case *syntax.TimeClause:
		if c.Stmt == nil {
			s.doubt("runs no program")
			return
		}
		s.stmt(c.Stmt)
	default:
		s.doubt("is not made of simple commands only")
	}
}

// redirect accepts what reads and writes no file: a copy of a descriptor, and /dev/null.
func (s *script) redirect(r *syntax.Redirect) {
	if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		s.doubt("sets a variable")
		return
	}
	if r.Word == nil || r.Hdoc != nil {
		s.doubt("has a here-document")
		return
	}
	to := evaluate(r.Word)
	switch r.Op {
	case syntax.DplOut, syntax.DplIn:
		if to.plain && (to.text == "1" || to.text == "2" || to.text == "0") {
			return
		}
	case syntax.RdrOut, syntax.AppOut, syntax.RdrIn, syntax.RdrAll, syntax.AppAll, syntax.RdrClob:
		if to.plain && to.text == "/dev/null" {
			return
		}
	}
	s.doubt("redirects to or from a file")
}

// call adds a simple command, and the commands that it runs in turn.
func (s *script) call(c call, depth int) {
	s.calls = append(s.calls, c)
	var argv []string
	for _, w := range c {
		if !w.plain {
			s.doubt("has an argument that a shell expands")
		}
		argv = append(argv, w.text)
	}
	if inner := unwrap(argv); inner != nil && s.unclear == "" {
		s.call(c[len(c)-len(inner):], depth)
		return
	}
	if inner, ok := shellText(argv); ok && s.unclear == "" {
		s.text(inner, depth+1)
		return
	}
	s.hidden(c, depth)
	s.plain = append(s.plain, argv)
}

// hidden adds commands that may be among the arguments of a program that runs others, so that they can be blocked.
func (s *script) hidden(c call, depth int) {
	name := path.Base(c[0].text)
	if !c[0].known || !starters[name] && !shells[name] && name != "eval" && len(dangers(name)) == 0 {
		return
	}
	for i := 1; i < len(c) && len(s.calls) < 1000; i++ {
		s.calls = append(s.calls, c[i:])
		if c[i].known && depth < maxDepth && strings.ContainsAny(c[i].text, " \t\n;&|") {
			inner := new(script)
			inner.text(c[i].text, depth+1)
			s.calls = append(s.calls, inner.calls...)
		}
	}
}

// evaluate returns the argument that a word represents.
func evaluate(w *syntax.Word) word {
	out := word{known: true, plain: true}
	var b strings.Builder
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			out.bare(&b, p.Value, i == 0)
		case *syntax.SglQuoted:
			out.known = out.known && !p.Dollar
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			out.known = out.known && !p.Dollar
			for at, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					out.known = false
					break
				}
				out.quoted(&b, lit.Value, at == len(p.Parts)-1)
			}
		default:
			out.known = false
		}
	}
	out.text = b.String()
	out.plain = out.plain && out.known && isClean(strings.NewReplacer("\n", "", "\t", "").Replace(out.text))
	return out
}

// bare adds text that is not quoted.
func (w *word) bare(b *strings.Builder, raw string, first bool) {
	at := 0
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '\\' && i+1 < len(raw) {
			i++
			if raw[i] != '\n' {
				b.WriteByte(raw[i])
			}
			at++
			continue
		}
		switch c {
		case '*', '?', '[', '{', '}':
			w.plain = false
		case '$', '`', '\\':
			w.known = false
		case '~':
			w.plain = w.plain && !(first && at == 0) && i > 0 && raw[i-1] != '=' && raw[i-1] != ':'
		case '=':
			w.plain = w.plain && !(first && at == 0)
		}
		at++
		b.WriteByte(c)
	}
}

// quoted adds text in double quotes. A dollar is itself only before the end.
func (w *word) quoted(b *strings.Builder, raw string, last bool) {
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\' && i+1 < len(raw) && strings.IndexByte("$`\"\\\n", raw[i+1]) >= 0:
			i++
			if raw[i] != '\n' {
				b.WriteByte(raw[i])
			}
		case c == '`', c == '$' && !(last && i == len(raw)-1):
			w.known = false
			return
		default:
			b.WriteByte(c)
		}
	}
}

// isClean reports whether a text is UTF-8 without control characters and without characters that change how it is displayed.
func isClean(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	})
}

// Line returns a command as one line for a shell.
func Line(c Command) string {
	if c.Shell && len(c.Argv) == 1 {
		return c.Argv[0]
	}
	quoted := slices.Clone(c.Argv)
	for i, a := range quoted {
		if q, err := syntax.Quote(a, syntax.LangBash); err == nil {
			quoted[i] = q
		} else {
			quoted[i] = fmt.Sprintf("%q", a)
		}
	}
	return strings.Join(quoted, " ")
}
