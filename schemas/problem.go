package schemas

import (
	"fmt"
	"strings"
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
func (p *Problem) near(word string, words []string) *Problem {
	if p.Message == "" {
		return p // beyond maxProblems: it is not reported
	}
	if n := Nearest(word, words); n != "" {
		p.Suggestion = fmt.Sprintf("did you mean %q?", n)
	}
	return p
}

// hint sets the suggestion.
func (p *Problem) hint(format string, args ...any) *Problem {
	p.Suggestion = fmt.Sprintf(format, args...)
	return p
}

// also adds a related place of the same file.
func (p *Problem) also(line, col int, note string) *Problem {
	p.Related = append(p.Related, Place{Path: p.Path, Line: line, Column: col})
	p.Notes = append(p.Notes, note)
	return p
}
