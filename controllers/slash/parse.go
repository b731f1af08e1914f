package slash

import (
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"reconcile.dev/reconcile/schemas"
)

// Verbs of commands.
const (
	Answer   = "answer"
	Resolve  = "resolve"
	Escalate = "escalate"
	Clarify  = "clarify"
	Approve  = "approve"
	Deny     = "deny"
	Hold     = "hold"
	Retry    = "retry"
	Skip     = "skip"
	Cancel   = "cancel"
	Status   = "status"
	Explain  = "explain"
	Remember = "remember"
	Start    = "start"
	Task     = "task"
)

// verbs lists all verbs, as the documentation does.
var verbs = []string{
	Answer, Resolve, Escalate, Clarify, Approve, Deny, Hold, Retry, Skip, Cancel, Status, Explain, Remember, Start, Task,
}

// Command is one command of a comment.
type Command struct {
	Verb string // one of the verbs
	// Line is what follows on the line of the command, and Text that with everything up to the next command: both
	// without what GitHub does not show, and without space around it.
	Line, Text string
}

// Parsed is a comment as it is understood.
type Parsed struct {
	Commands []Command
	// Plain is the whole visible text, if it has no command.
	Plain string
	// Meant is the command that was probably mistyped at the very beginning of a text without any, "" if none was.
	Meant string
}

// markdown parses Markdown as GitHub does, for the constructs that matter here. A line of dashes below a command
// does not make it a heading: its author meant a rule. Emphasis is not parsed: it is text like any other, and
// parsing it is slow.
var markdown = parser.NewParser(
	parser.WithBlockParsers(without(parser.DefaultBlockParsers(), setextHeadings)...),
	parser.WithInlineParsers(without(parser.DefaultInlineParsers(), emphasis)...),
	parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
)

// Priorities by which goldmark knows parts of its parser.
const (
	setextHeadings = 100 // of the blocks
	emphasis       = 500 // of the lines
)

// Parse parses the commands in the Markdown body of a comment: a slash and a verb, in any case, at the beginning of a
// line of running text. Code, quotations, tables, headings and hidden text have no commands. Other words with a slash
// are text, as paths are. It accepts any text, and takes time in proportion to it.
func Parse(body string) Parsed {
	src := []byte(visibleText(body))
	p := commentPage{src: src}
	if tooDeep(src) {
		return Parsed{Plain: strings.TrimSpace(string(src))}
	}
	p.read(markdown.Parse(text.NewReader(src)))
	starts := p.commands()
	if len(starts) == 0 {
		plain := p.shown(0, len(src))
		return Parsed{Plain: plain, Meant: mistyped(plain)}
	}
	var out Parsed
	for i, start := range starts {
		end := len(src)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		out.Commands = append(out.Commands, p.command(start, end))
	}
	return out
}

// tooDeep reports whether a text nests quotations or lists deeper than any that a person writes: for the parser that
// is work that grows with the square of the depth.
func tooDeep(src []byte) bool {
	const deepest = 100
	depth := 0
	for i, c := range src {
		switch c {
		case '\n':
			depth = 0
		case '>':
			depth++
		case '-', '*', '+', '.', ')':
			if i+1 < len(src) && (src[i+1] == ' ' || src[i+1] == '\t') {
				depth++
			}
		}
		if depth > deepest {
			return true
		}
	}
	return false
}

// commentPage is a comment while it is read.
type commentPage struct {
	src    []byte
	prose  []int    // where the lines of running text begin, behind their indentation
	hidden [][2]int // ranges that GitHub does not show
}

// read walks over the parsed text.
func (p *commentPage) read(root ast.Node) {
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Blockquote:
			p.skip(n, 0)
			return ast.WalkSkipChildren, nil
		case *ast.Heading, *ast.FencedCodeBlock, *ast.CodeBlock, *ast.CodeSpan, *ast.AutoLink:
			return ast.WalkSkipChildren, nil
		case *ast.Paragraph, *ast.TextBlock:
			if from := p.table(n.Lines()); from >= 0 {
				p.skip(n, from)
				return ast.WalkSkipChildren, nil
			}
		case *ast.HTMLBlock:
			p.hideBlock(n)
			return ast.WalkSkipChildren, nil
		case *ast.RawHTML:
			p.hideInline(n)
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			p.prose = append(p.prose, n.Segment.Start)
		}
		return ast.WalkContinue, nil
	})
}

// skip walks nodes without commands, from an offset on, to find hidden parts.
func (p *commentPage) skip(n ast.Node, from int) {
	before := len(p.prose)
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		p.read(child)
	}
	kept := slices.DeleteFunc(p.prose[before:], func(at int) bool { return at >= from })
	p.prose = p.prose[:before+len(kept)]
}

// table returns where in a paragraph a table begins, or -1: at the line above the one that divides columns. The library's
// own reader of tables would cost every start of the program a millisecond.
func (p *commentPage) table(lines *text.Segments) int {
	for i := 1; i < lines.Len(); i++ {
		if at := lines.At(i); dividesColumns(string(at.Value(p.src))) {
			above := lines.At(i - 1)
			return above.Start
		}
	}
	return -1
}

// dividesColumns reports whether a line looks as "| :--- | ---: |". One of dashes alone is a rule.
func dividesColumns(line string) bool {
	line = strings.TrimSpace(line)
	return strings.Trim(line, "|:- \t") == "" && strings.Contains(line, "-") && strings.ContainsAny(line, "|:")
}

// hideBlock notes the comments in a block of HTML. One that is not closed hides the rest of the block.
func (p *commentPage) hideBlock(n *ast.HTMLBlock) {
	if n.HTMLBlockType != ast.HTMLBlockType2 {
		return
	}
	end := 0
	lines := n.Lines()
	for i := range lines.Len() {
		end = lines.At(i).Stop
	}
	if n.HasClosure() {
		end = n.ClosureLine.Stop
	}
	start := end
	if lines.Len() > 0 {
		start = lines.At(0).Start
	} else if n.HasClosure() {
		start = n.ClosureLine.Start
	}
	p.hideComments(start, end)
}

// hideComments notes the comments between two places, and what follows one that is not closed.
func (p *commentPage) hideComments(start, end int) {
	for start < end {
		from := strings.Index(string(p.src[start:end]), "<!--")
		if from < 0 {
			return
		}
		from += start
		to := end
		if n := strings.Index(string(p.src[from:end]), "-->"); n >= 0 {
			to = from + n + len("-->")
		}
		p.hidden = append(p.hidden, [2]int{from, to})
		start = to
	}
}

// hideInline notes a comment in running text.
func (p *commentPage) hideInline(n *ast.RawHTML) {
	if n.Segments.Len() == 0 {
		return
	}
	first, last := n.Segments.At(0), n.Segments.At(n.Segments.Len()-1)
	if strings.HasPrefix(string(p.src[first.Start:first.Stop]), "<!--") {
		p.hidden = append(p.hidden, [2]int{first.Start, last.Stop})
	}
}

// commands returns where commands begin.
func (p *commentPage) commands() []int {
	var out []int
	for _, at := range p.prose {
		if p.src[min(at, len(p.src)-1)] != '/' || !p.beginsLine(at) {
			continue
		}
		if verbOf(firstWord(p.src[at:])) != "" {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// beginsLine reports whether only a few spaces precede an offset in its line: deeper indentation looks like code.
func (p *commentPage) beginsLine(at int) bool {
	const most = 3
	start := at
	for start > 0 && p.src[start-1] == ' ' {
		start--
	}
	return at-start <= most && (start == 0 || p.src[start-1] == '\n')
}

func firstWord(src []byte) string {
	end := slices.IndexFunc(src, func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' })
	if end < 0 {
		end = len(src)
	}
	const longest = 32
	return string(src[:min(end, longest)])
}

// verbOf returns the verb of /Verb, also with a mark behind it: "/answer:". It is "" for other words.
func verbOf(word string) string {
	name := strings.ToLower(strings.TrimRight(strings.TrimPrefix(word, "/"), ":,.;!?"))
	if strings.HasPrefix(word, "/") && slices.Contains(verbs, name) {
		return name
	}
	return ""
}

// command reads what stands between the beginning of a command and that of the next one.
func (p *commentPage) command(start, end int) Command {
	word := firstWord(p.src[start:end])
	rest := start + len(word)
	line := rest
	for line < end && p.src[line] != '\n' {
		line++
	}
	return Command{Verb: verbOf(word), Line: p.shown(rest, line), Text: p.shown(rest, end)}
}

// shown is the text between two places as GitHub shows it: without comments.
func (p *commentPage) shown(start, end int) string {
	var b strings.Builder
	slices.SortFunc(p.hidden, func(a, b [2]int) int { return a[0] - b[0] })
	for _, h := range p.hidden {
		if h[1] <= start || h[0] >= end {
			continue
		}
		b.Write(p.src[start:max(h[0], start)])
		start = min(h[1], end)
	}
	b.Write(p.src[start:end])
	return strings.TrimSpace(b.String())
}

// mistyped is the verb that the first word of a text was probably meant to be.
func mistyped(plain string) string {
	word := strings.TrimRight(firstWord([]byte(plain)), ":,.;!?")
	name, slash := strings.CutPrefix(word, "/")
	if !slash || name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return ""
	}
	return schemas.GuessWord(name, verbs)
}
