package memory

import (
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers/agentio"
)

// block is a piece of a text in Markdown.
type block struct {
	kind  blockKind
	level int    // of a heading 1 to 6, 7 for a line in bold; of a bullet the columns before it
	text  string // on one line, without the marks around it
	open  bool   // a checkbox that is not ticked
}

type blockKind int

const (
	kindParagraph blockKind = iota
	kindHeading
	kindBullet
)

// boldLevel is the level of a line in bold that serves as a heading.
const boldLevel = 7

// blocks splits a text into headings, bullets and paragraphs. Quotations (lines that begin with > or |, code
// blocks, diffs) and invisible parts (rules, comments) are left out. Any line endings are accepted.
func blocks(text string) []block {
	var b splitter
	for line := range strings.SplitSeq(agentio.Plain(text), "\n") {
		b.line(line)
	}
	b.end()
	return b.out
}

// splitter gathers the blocks of a text.
type splitter struct {
	out   []block
	lines []string // of the block under way, which is the last of out, if any
	fence string   // that ends the code block under way
	diff  bool     // inside of a diff, up to the next blank line
	bare  bool     // after a blank line
	trace int      // inside of a stack trace of Python: the columns before its first line, plus one
}

func (b *splitter) line(line string) {
	body := strings.TrimLeft(line, " \t")
	if b.inTrace(body, auditColumns(line)) || b.skip(body) {
		return
	}
	body = strings.TrimRight(body, " \t")
	switch h, level := headingOf(body); {
	case body == "":
		b.blank()
	case level > 0:
		b.begin(block{kind: kindHeading, level: level}, h)
		b.end()
	default:
		b.prose(body, auditColumns(line))
	}
}

// inTrace reports whether a line belongs to a stack trace of Python. The line below it, which names the exception, is a
// paragraph.
func (b *splitter) inTrace(body string, column int) bool {
	switch {
	case b.fence == "" && strings.HasPrefix(body, "Traceback ("):
		b.end()
		b.trace = column + 1
		return true
	case b.trace == 0 || body != "" && column >= b.trace:
		return b.trace > 0
	}
	b.trace = 0
	if !trace().MatchString(body) {
		return false
	}
	b.begin(block{kind: kindParagraph}, strings.TrimRight(body, " \t"))
	b.end()
	return true
}

// skip reports whether a line belongs to an omitted part.
func (b *splitter) skip(body string) bool {
	switch {
	case b.fence != "":
		if strings.HasPrefix(body, b.fence) {
			b.fence = ""
		}
	case strings.HasPrefix(body, "```") || strings.HasPrefix(body, "~~~"):
		b.end()
		b.fence = body[:len(body)-len(strings.TrimLeft(body, body[:1]))]
	case b.diff:
		b.diff = strings.TrimSpace(body) != ""
	case isDiff(body):
		b.end()
		b.diff = true
	case isRule(body):
		b.underline(body[0])
	case body != "" && strings.IndexByte("|>", body[0]) >= 0 || strings.HasPrefix(body, "<!--") || isOutput(body):
		b.end()
	default:
		return false
	}
	return true
}

// underline ends the current block at a rule; one line right above it is a heading.
func (b *splitter) underline(sign byte) {
	if len(b.lines) == 1 && !b.bare && (sign == '=' || sign == '-') {
		if last := &b.out[len(b.out)-1]; last.kind == kindParagraph {
			last.kind, last.level = kindHeading, 2
		}
	}
	b.end()
}

func isDiff(body string) bool {
	return strings.HasPrefix(body, "diff --git ") || strings.HasPrefix(body, "@@ ") ||
		strings.HasPrefix(body, "--- a/") || strings.HasPrefix(body, "+++ b/") || strings.HasPrefix(body, "*** Begin Patch")
}

// outputs begin lines that a program printed: test runners, compilers, logs, stack traces.
var outputs = []string{"ok  \t", "FAIL\t", "--- FAIL", "--- PASS", "=== RUN", "--- SKIP", "PASS", "FAIL", "goroutine ",
	"File \"", "at ", "npm ERR!", "npm WARN", "[INFO]", "[ERROR]", "[WARN]", "[DEBUG]", "INFO ", "WARN ",
	"ERROR ", "DEBUG ", "error[E", "warning: ", "✓ ", "✗ ", "✕ ", "✔ ", "E   ", "FAILED ", "PASSED ", "collected ",
	"panic: ", "exit status ", "make: ", "make[", "$ "}

// isOutput reports whether a line is one that a program printed, rather than a sentence.
func isOutput(body string) bool {
	for _, prefix := range outputs {
		if strings.HasPrefix(body, prefix) {
			return prefix != "at " || strings.ContainsAny(body, "(:") && !strings.HasSuffix(body, ".")
		}
	}
	return len(body) > 19 && body[4] == '-' && body[7] == '-' && (body[10] == 'T' || body[10] == ' ') && body[13] == ':'
}

// isRule reports whether a line is a rule: at least three of one sign.
func isRule(body string) bool {
	body = strings.TrimSpace(body)
	return len(body) >= 3 && strings.ContainsRune("-*_=", rune(body[0])) && strings.Trim(body, body[:1]+" ") == ""
}

// headingOf returns the text of a heading and its level, 0 for other lines.
func headingOf(body string) (string, int) {
	if n := len(body) - len(strings.TrimLeft(body, "#")); n >= 1 && n <= 6 && n < len(body) && body[n] == ' ' {
		return strings.Trim(body, "# "), n
	}
	inner, found := strings.CutPrefix(body, "**")
	if !found {
		return "", 0
	}
	inner, after, found := strings.Cut(inner, "**")
	if after = strings.TrimSpace(after); found && (after == "" || after == ":") {
		return inner, boldLevel
	}
	return "", 0
}

// prose takes a line of a bullet or paragraph.
func (b *splitter) prose(body string, column int) {
	if text, open, found := bulletOf(body); found {
		b.begin(block{kind: kindBullet, level: column, open: open}, text)
		return
	}
	last := len(b.out) - 1
	switch {
	case b.lines != nil && (!b.bare || b.out[last].kind == kindBullet && column > b.out[last].level):
		b.lines = append(b.lines, body) // continues the current block
		b.bare = false
	default:
		b.begin(block{kind: kindParagraph}, body)
	}
}

// bulletOf cuts the mark of a bullet off a line of a summary in Markdown: -, *, +, •, a number with a point or bracket; and the checkbox behind it.
func bulletOf(body string) (text string, open, found bool) {
	mark := 0
	switch r, size := utf8.DecodeRuneInString(body); {
	case strings.ContainsRune("-*+•–‣◦·", r):
		mark = size
	case '0' <= r && r <= '9':
		digits := len(body) - len(strings.TrimLeft(body, "0123456789"))
		if digits <= 3 && digits < len(body) && (body[digits] == '.' || body[digits] == ')') {
			mark = digits + 1
		}
	}
	if mark == 0 || mark >= len(body) || body[mark] != ' ' && body[mark] != '\t' {
		return "", false, false
	}
	text = strings.TrimSpace(body[mark:])
	if box, rest, found := strings.Cut(text, "] "); found && len(box) == 2 && box[0] == '[' {
		return strings.TrimSpace(rest), box[1] == ' ', true
	}
	return text, false, true
}

func (b *splitter) begin(next block, text string) {
	b.end()
	b.out = append(b.out, next)
	b.lines = []string{text}
}

// blank ends a paragraph; a bullet may go on below it.
func (b *splitter) blank() {
	b.bare = true
	if last := len(b.out) - 1; last >= 0 && b.out[last].kind != kindBullet {
		b.end()
	}
}

// end closes the block under way.
func (b *splitter) end() {
	b.bare = false
	if b.lines == nil {
		return
	}
	last := &b.out[len(b.out)-1]
	last.text = unmarked(strings.Join(b.lines, " "))
	b.lines = nil
	if last.text == "" {
		b.out = b.out[:len(b.out)-1]
	}
}

// unmarked is text without marks of emphasis, and with single spaces.
func unmarked(text string) string {
	if strings.Contains(text, "**") {
		text = strings.ReplaceAll(text, "**", "")
	}
	return strings.Join(strings.Fields(text), " ")
}

// isCode reports whether a line is rather code, or output of a program, than a sentence: less than half of it is
// letters.
func isCode(text string) bool {
	letters, signs := 0, 0
	for _, c := range text {
		switch {
		case c == ' ':
		case inWord(c):
			letters++
		default:
			signs++
		}
	}
	return signs > letters/2 || strings.HasPrefix(text, "$ ") || strings.HasSuffix(text, "{") ||
		strings.HasSuffix(text, ";")
}

// passages splits a text into passages. A section extends to the next heading of the same or a higher level, or one
// that names another section. Boxes that are not ticked are plans.
func passages(text string) []passage {
	w := passageWalker{}
	all := blocks(text)
	for i, b := range all {
		switch {
		case b.kind == kindHeading:
			w.heading(b)
		case b.kind == kindBullet:
			w.bullet(b, i+1 < len(all) && all[i+1].kind == kindBullet && all[i+1].level > b.level)
		default:
			w.paragraph(b)
		}
	}
	w.flush()
	return w.out
}

// passageWalker gathers passages.
type passageWalker struct {
	out     []passage
	section string
	level   int // of the heading that opened the section

	group   block    // the bullet under way
	nested  []string // the bullets below it
	grouped bool
	marker  *marker
}

func (w *passageWalker) heading(b block) {
	w.flush()
	w.unmark(-1)
	section, named := sectionOf(b.text)
	switch {
	case named:
		w.section, w.level = section, b.level
	case w.level == 0 || b.level <= w.level:
		w.section, w.level = noSection, 0
	}
}

func (w *passageWalker) paragraph(b block) {
	w.flush()
	w.unmark(-1)
	if section, named := sectionOf(b.text); named && strings.HasSuffix(b.text, ":") {
		w.section, w.level = section, boldLevel
		return
	}
	w.out = append(w.out, passage{section: w.section, text: b.text})
}

func (w *passageWalker) bullet(b block, parent bool) {
	if w.grouped && b.level > w.group.level {
		if !b.open && !w.group.open {
			w.nested = append(w.nested, b.text)
		}
		return
	}
	w.flush()
	w.unmark(b.level)
	if section, named := sectionOf(b.text); named && parent {
		w.marker = &marker{b.level, w.level, w.section}
		w.section = section
		return
	}
	w.group, w.grouped = b, true
}

// unmark ends the section that a bullet opened, at a line that is not nested below it.
func (w *passageWalker) unmark(column int) {
	if w.marker != nil && column <= w.marker.column {
		w.section, w.level, w.marker = w.marker.section, w.marker.level, nil
	}
}

func (w *passageWalker) flush() {
	if w.grouped && !w.group.open {
		w.out = append(w.out, passage{section: w.section, text: joinedParagraph(w.group.text, w.nested), bullet: true})
	}
	w.grouped, w.nested = false, nil
}

// joinedParagraph is a bullet with those nested below it, on one line.
func joinedParagraph(parent string, nested []string) string {
	if len(nested) == 0 {
		return parent
	}
	for i, text := range nested {
		nested[i] = strings.TrimRight(text, ".;, ")
	}
	return strings.TrimRight(parent, ".:; ") + ": " + strings.Join(nested, "; ")
}
