package schemas

import (
	"fmt"
	"slices"
)

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

// Warnf adds a finding of severity Warning, with a code and a formatted message, about the spot's field. A warning is about
// something that is allowed and probably not meant.
func (s Spot) Warnf(code, format string, args ...any) *Finding {
	return s.add(Warning, code, fmt.Sprintf(format, args...))
}

func (s Spot) add(severity Severity, code, message string) *Finding {
	f := &Finding{Severity: severity, Code: code, Field: s.field, Message: message}
	s.report.findings = append(s.report.findings, f)
	return f
}

// Suggest formats and sets the suggestion of the finding, a full clause such as `did you mean "needs"?`.
func (f *Finding) Suggest(format string, args ...any) *Finding {
	f.Suggestion = fmt.Sprintf(format, args...)
	return f
}

// Near suggests the word of the list that s was probably meant to be, if there is one.
func (f *Finding) Near(s string, words []string) *Finding {
	if near := Nearest(s, words); near != "" {
		return f.Suggest("did you mean %q?", near)
	}
	return f
}

// Also adds a further field that the finding is about.
func (f *Finding) Also(note string, field ...any) *Finding {
	f.Related = append(f.Related, Related{Field: field, Note: note})
	return f
}
