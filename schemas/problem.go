package schemas

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Severity of a problem.
type Severity string

// An error makes its object Stalled and the exit code 3; a warning is only reported.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Place is a position in a file; Line and Column count from 1, columns in characters. 0 means unknown.
type Place struct {
	Path   string `json:"path"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String formats the place as path:line:column, without the parts that are not known. It is on one line whatever the file is
// called: a name must not pass for another message.
func (p Place) String() string {
	path := lineEnds.Replace(p.Path)
	switch {
	case p.Line == 0:
		return path
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", path, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", path, p.Line, p.Column)
}

var lineEnds = strings.NewReplacer("\n", `\n`, "\r", `\r`)

// Problem is one thing that is wrong with one file.
type Problem struct {
	Place
	Severity Severity `json:"severity"`
	// Code is a stable kebab-case word: "unknown-field", "duplicate-key", "missing-reference", "cycle", …
	Code string `json:"code"`
	// Ref is the object that the problem belongs to, where it can be named.
	Ref Ref `json:"-"`
	// Field is a dotted path: "spec.nodes[2].needs[0]". Empty for problems of the whole file.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	// Suggestion is what the user may have meant, as a full clause: `did you mean "needs"?`.
	Suggestion string `json:"suggestion,omitempty"`
	// Related are further places that belong to the problem, each with a note in Notes at the same index.
	Related []Place  `json:"related,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// Source is the line at Place, without its end, for the caret; empty when not known.
	Source string `json:"-"`
}

// Error returns the problem in one line, with its place, field, message and suggestion: path:line:column: field: problem;
// suggestion.
func (p Problem) Error() string {
	s := p.Place.String() + ": "
	if p.Field != "" {
		s += p.Field + ": "
	}
	s += p.Message
	if p.Suggestion != "" {
		s += "; " + p.Suggestion
	}
	return s
}

// eachText changes every text of the problem but that of the file.
func (p *Problem) eachText(change func(string) string) {
	p.Message, p.Suggestion, p.Field = change(p.Message), change(p.Suggestion), change(p.Field)
	for i, n := range p.Notes {
		p.Notes[i] = change(n)
	}
}

// FieldPath formats a path below the root of a document as text, as problems name the field: spec.nodes[2].needs[0].
func FieldPath(path []any) string { return pathText(path) }

// near adds a suggestion from a list of words, if one is near.
func (p *Problem) near(word string, words []string) {
	if p.Message == "" {
		return // beyond maxProblems: it is not reported
	}
	if n := GuessWord(word, words); n != "" {
		p.Suggestion = fmt.Sprintf("did you mean %q?", n)
	}
}

// nearField is near for the name of a field. Else it says which fields there are: a few by name, more with the command that explains where.
func (p *Problem) nearField(name string, fields []string, where string) {
	const few = 12
	if p.Message == "" {
		return // as in near
	}
	switch near := guessField(name, fields); {
	case near != "":
		p.hint("did you mean %q?", near)
	case len(fields) > few && where != "":
		p.hint("\"reconcile explain %s\" lists the fields", where)
	default:
		p.hint("fields: %s", strings.Join(fields, ", "))
	}
}

// hint sets the suggestion.
func (p *Problem) hint(format string, args ...any) *Problem {
	p.Suggestion = fmt.Sprintf(format, args...)
	return p
}

// also adds a related place of the same file.
func (p *Problem) also(line, col int, note string) {
	p.Related = append(p.Related, Place{Path: p.Path, Line: line, Column: col})
	p.Notes = append(p.Notes, note)
}

// Report collects the findings of one spec while [Spec.Check] runs. The zero Report is ready to use.
type Report struct {
	findings []*Finding
	state    string // the folder of observed state; empty: the default
}

// Finding is a problem of a spec whose position in the file is not known yet; the decoder turns it into a [Problem].
type Finding struct {
	Severity   Severity
	Code       string
	Field      []any // path below spec: names and indices
	Message    string
	Suggestion string
	Related    []Related
}

// Related is a further field that a finding is about.
type Related struct {
	Field []any // path below spec
	Note  string
}

// Findings returns the findings, in the order of reporting.
func (r *Report) Findings() []*Finding { return r.findings }

// At returns a spot for findings in the report, the field at a path below spec: At("nodes", 3, "needs", 0).
func (r *Report) At(field ...any) Spot { return Spot{report: r, field: field} }

// Spot is a field that findings can be reported at.
type Spot struct {
	report *Report
	field  []any
}

// At returns the spot of a field below this spot's field, at the given path.
func (s Spot) At(field ...any) Spot {
	return Spot{report: s.report, field: slices.Concat(s.field, field)}
}

// Errorf adds a finding of severity Error, with a code and a formatted message, about the spot's field. The code is the
// stable word of [Problem.Code].
func (s Spot) Errorf(code, format string, args ...any) *Finding {
	return s.add(Error, code, fmt.Sprintf(format, args...))
}

// warnf adds a finding of severity Warning, with a code and a formatted message, about the spot's field. A warning is about
// something that is allowed and probably not meant.
func (s Spot) warnf(code, format string, args ...any) *Finding {
	return s.add(Warning, code, fmt.Sprintf(format, args...))
}

func (s Spot) add(severity Severity, code, message string) *Finding {
	f := &Finding{Severity: severity, Code: code, Field: s.field, Message: message}
	s.report.findings = append(s.report.findings, f)
	return f
}

// suggest formats and sets the suggestion of the finding, a full clause such as `did you mean "needs"?`.
func (f *Finding) suggest(format string, args ...any) *Finding {
	f.Suggestion = fmt.Sprintf(format, args...)
	return f
}

// near suggests the word of the list that s was probably meant to be, if there is one.
func (f *Finding) near(s string, words []string) *Finding {
	if near := GuessWord(s, words); near != "" {
		return f.suggest("did you mean %q?", near)
	}
	return f
}

// also adds a further field that the finding is about.
func (f *Finding) also(note string, field ...any) *Finding {
	f.Related = append(f.Related, Related{Field: field, Note: note})
	return f
}

// Format formats the problem for people: the one-line form of [Problem.Error], the source line with a caret under the
// column, if they are known, and a line for each related place. No colours; every line but the first is indented; the result
// ends in a line end.
//
//	specs/dags/checks.yaml:14:15: spec.nodes[1].needs[0]: there is no node called "biuld"; did you mean "build"?
//	  14 |       needs: [biuld]
//	     |               ^
//	  specs/dags/checks.yaml:9:13: the first one
func (p Problem) Format() string {
	var b strings.Builder
	if p.Severity == Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(p.Error() + "\n")
	if p.Source != "" && p.Line > 0 {
		source, caret := excerpt(p.Source, p.Column)
		number := fmt.Sprint(p.Line)
		fmt.Fprintf(&b, "  %s | %s\n", number, source)
		if p.Column > 0 {
			fmt.Fprintf(&b, "  %s | %s^\n", strings.Repeat(" ", len(number)), strings.Repeat(" ", caret))
		}
	}
	for i, at := range p.Related {
		note := "see here"
		if i < len(p.Notes) {
			note = p.Notes[i]
		}
		fmt.Fprintf(&b, "  %s: %s\n", at, note)
	}
	return b.String()
}

// excerpt returns a line in its form on a terminal, with tabs as spaces, characters that move the cursor replaced
// and long lines cut around the column, and the width of the text before that column.
func excerpt(line string, column int) (shown string, caret int) {
	const before, most = 60, 110 // characters kept before the column, and in all
	text := []rune(line)
	at := min(max(column-1, 0), len(text))
	from := 0
	if len(text) > most && at > before {
		from = at - before
	}
	to := min(len(text), from+most)
	var b strings.Builder
	if from > 0 {
		b.WriteString("… ")
		caret = 2
	}
	for i, r := range text[from:to] {
		s, width := visibleExcerpt(r)
		b.WriteString(s)
		if from+i < at {
			caret += width
		}
	}
	if to < len(text) {
		b.WriteString(" …")
	}
	return b.String(), caret
}

// visibleExcerpt is how a character is shown, and how many columns that takes.
func visibleExcerpt(r rune) (string, int) {
	switch {
	case r == '\t':
		return "    ", 4
	case unicode.In(r, unicode.Mn, unicode.Me):
		return string(r), 0
	case !unicode.IsPrint(r):
		return "\uFFFD", 1
	case isWide(r):
		return string(r), 2
	}
	return string(r), 1
}

// wide are the blocks whose characters take two columns: the larger ones of Unicode's EastAsianWidth table (W and F)
// and the emoji. For a caret, near enough is right.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115F, Stride: 1}, {Lo: 0x2E80, Hi: 0x303E, Stride: 1}, {Lo: 0x3041, Hi: 0x33FF, Stride: 1},
		{Lo: 0x3400, Hi: 0x4DBF, Stride: 1}, {Lo: 0x4E00, Hi: 0x9FFF, Stride: 1}, {Lo: 0xA000, Hi: 0xA4CF, Stride: 1},
		{Lo: 0xAC00, Hi: 0xD7A3, Stride: 1}, {Lo: 0xF900, Hi: 0xFAFF, Stride: 1}, {Lo: 0xFE30, Hi: 0xFE6F, Stride: 1},
		{Lo: 0xFF00, Hi: 0xFF60, Stride: 1}, {Lo: 0xFFE0, Hi: 0xFFE6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1F300, Hi: 0x1F64F, Stride: 1}, {Lo: 0x1F680, Hi: 0x1F6FF, Stride: 1}, {Lo: 0x1F900, Hi: 0x1F9FF, Stride: 1},
		{Lo: 0x20000, Hi: 0x3FFFD, Stride: 1},
	},
}

func isWide(r rune) bool { return r >= 0x1100 && unicode.Is(wide, r) }

// pathText writes a path as users read it: spec.nodes[2].needs[0], spec.env["a b"].
func pathText(path []any) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(step) + "]")
		case string:
			if !isEnvName(strings.ReplaceAll(step, "-", "_")) {
				b.WriteString("[" + strconv.Quote(step) + "]")
				continue
			}
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}

// Count returns n with the noun, in the plural unless n is 1, for messages: "1 file", "3 files", "2 processes".
func Count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "ch"):
		noun += "es"
	default:
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// Shorten joins the first n words with commas, and says how many more there are: "a, b and 3 more".
func Shorten(words []string, n int) string {
	if len(words) <= n {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), len(words)-n)
}

// AndOthers says how many others there are, for the end of a list that names one: "" for none.
func AndOthers(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " and another one"
	}
	return fmt.Sprintf(" and %d others", n)
}
