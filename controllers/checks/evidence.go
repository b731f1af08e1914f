package checks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// Evidence is the recorded part of an inspection or of a run of tests: the verdict of each tool, and the first findings,
// those in changed lines first. As JSON it has at most 60,000 bytes, so that it fits into the record of a run.
type Evidence struct {
	Outcome  Outcome   `json:"outcome"`
	Summary  string    `json:"summary"` // one line
	Tools    []Ran     `json:"tools,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
	Failures []Test    `json:"failures,omitempty"`
	// Omitted is the number of findings and failures beyond those.
	Omitted int `json:"omitted,omitempty"`
	// Written are the tests that an agent wrote; nil where none was to.
	Written *Written `json:"written,omitempty"`
	// Overridden are those that people accepted.
	Overridden []Override `json:"overridden,omitempty"`
	// Unchecked are the first files of the change in languages for which there are tools, and at which none that ran looks, unless that is
	// accepted. The outcome is not about them.
	Unchecked []string `json:"unchecked,omitempty"`
	// Undecided are the questions that remained about which tools to use.
	Undecided []schemas.ToolQuestion `json:"undecided,omitempty"`
}

// Ran is the verdict of one tool.
type Ran struct {
	Tool     string   `json:"tool"`
	Category Category `json:"category"`
	Folder   string   `json:"folder,omitempty"`
	Version  string   `json:"version,omitempty"`
	Outcome  Outcome  `json:"outcome"`
	Reason   string   `json:"reason,omitempty"`
	// NotInstalled says that this is why the outcome is unknown.
	NotInstalled bool    `json:"notInstalled,omitempty"`
	Output       string  `json:"output,omitempty"` // the end of what it printed, where the outcome is not clear from the rest
	Findings     int     `json:"findings,omitempty"`
	Tests        *Counts `json:"tests,omitempty"`
}

// Written are tests that an agent wrote of the change of another one. What it says of them decides nothing: its files are those of its
// commit.
type Written struct {
	By    string   `json:"by"`
	Plan  []string `json:"plan,omitempty"`  // what it says that it tests
	Files []string `json:"files,omitempty"` // below the top of the repository
	Tests []string `json:"tests,omitempty"` // the names of the first tests in them
	Left  string   `json:"left,omitempty"`  // what it changed besides, which was left out
}

// Bounds of evidence, in entries and characters.
const (
	mostFindings  = 40
	mostFailures  = 15
	mostTools     = 50
	findingChars  = 500
	failureChars  = 1200
	expectedChars = 300
)

// Evident sums up checks with their verdict. changed are the lines that the change has, by file; nil if they are unknown.
func Evident(all []Check, verdict Outcome, accepted []Override, changed map[string][]LineRange) *Evidence {
	e := &Evidence{Outcome: verdict, Overridden: accepted}
	var counts Counts
	for _, c := range all {
		ran := Ran{Tool: c.Tool, Category: c.Category, Folder: c.Folder, Version: c.Version, Outcome: c.Outcome, Reason: shorten.Text(c.Reason, findingChars), NotInstalled: c.NotInstalled,
			Output: shorten.Text(c.Output, failureChars), Findings: len(c.Findings)}
		if c.Category == TestFramework {
			n := Count(c.Tests)
			ran.Tests, counts = &n, counts.Plus(n)
		}
		e.Tools = append(e.Tools, ran)
		e.Findings = append(e.Findings, c.Findings...)
		for _, t := range c.Tests {
			if t.Outcome == TestFailed {
				e.Failures = append(e.Failures, t)
			}
		}
	}
	slices.SortStableFunc(e.Tools, func(a, b Ran) int { return cmp.Compare(worth(a.Outcome), worth(b.Outcome)) })
	e.Tools = e.Tools[:min(len(e.Tools), mostTools)]
	e.Summary = summary(e, counts)
	slices.SortStableFunc(e.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(far(a, changed), far(b, changed)), cmp.Compare(a.Severity.rank(), b.Severity.rank()))
	})
	e.Omitted = max(0, len(e.Findings)-mostFindings) + max(0, len(e.Failures)-mostFailures)
	e.Findings = slices.Clone(e.Findings[:min(len(e.Findings), mostFindings)])
	for i := range e.Findings {
		f := &e.Findings[i]
		f.File, f.Rule = shorten.Text(f.File, findingChars), shorten.Text(f.Rule, findingChars)
		f.Message, f.Suggestion, f.Fixes = shorten.Text(f.Message, findingChars), shorten.Text(f.Suggestion, findingChars), nil
	}
	e.Failures = slices.Clone(e.Failures[:min(len(e.Failures), mostFailures)])
	for i := range e.Failures {
		t := &e.Failures[i]
		t.Name, t.Suite, t.File = shorten.Text(t.Name, findingChars), shorten.Text(t.Suite, findingChars), shorten.Text(t.File, findingChars)
		t.Message, t.Stack, t.Output = shorten.Text(t.Message, findingChars), shorten.Text(t.Stack, failureChars), shorten.Text(t.Output, failureChars)
		t.Expected, t.Actual = shorten.Text(t.Expected, expectedChars), shorten.Text(t.Actual, expectedChars)
		t.Why = shorten.Text(t.Why, findingChars)
	}
	e.fit()
	return e
}

// fit takes away what is needed least until the evidence fits into a record.
func (e *Evidence) fit() {
	for n := 0; e.size() > evidenceBytes && n < 10; n++ {
		e.shrink(n)
	}
}

// evidenceBytes bounds evidence as JSON.
const evidenceBytes = 60_000

func (e *Evidence) size() int {
	data, err := json.Marshal(e)
	if err != nil {
		return 0 // it has only texts and numbers
	}
	return len(data)
}

// shrink removes the least important part; n counts the calls.
func (e *Evidence) shrink(n int) {
	switch n {
	case 0:
		for i := range e.Tools {
			e.Tools[i].Output = ""
		}
	case 1:
		for i := range e.Failures {
			e.Failures[i].Output, e.Failures[i].Stack = "", ""
		}
	default:
		findings, failures := (len(e.Findings)+1)/2, (len(e.Failures)+1)/2
		e.Omitted += len(e.Findings) - findings + len(e.Failures) - failures
		e.Findings, e.Failures = e.Findings[:findings], e.Failures[:failures]
		e.Tools = e.Tools[:(len(e.Tools)+1)/2]
		e.Overridden = e.Overridden[:len(e.Overridden)/2]
	}
}

// EvidenceOf is what a verification found, by its record. One that did not come to a verdict is unknown.
func EvidenceOf(record *schemas.Run) *Evidence {
	var e Evidence
	if record.Outcome == schemas.OutcomeSucceeded && json.Unmarshal(record.Result, &e) == nil && e.Outcome != "" {
		return &e
	}
	return &Evidence{Outcome: Unknown, Summary: "it came to no verdict: " + cmp.Or(record.Message, record.Outcome),
		Tools: []Ran{{Tool: "reconcile", Outcome: Unknown, Reason: record.Message, Output: record.Output}}}
}

// Lets reports whether the evidence lets a change on. allowNone accepts that there is nothing with which to check it.
func (e *Evidence) Lets(allowNone bool) bool {
	return e.Outcome == Passed || e.Outcome == Unknown && len(e.Tools) == 0 && allowNone
}

// NotInstalled are the tools for want of which there is no verdict: all that is unknown is so because a tool is not installed. nil: nothing is, or
// there is another reason.
func (e *Evidence) NotInstalled() []string {
	if e.Outcome != Unknown {
		return nil
	}
	var names []string
	for _, t := range e.Tools {
		switch {
		case t.Outcome == Unknown && !t.NotInstalled:
			return nil
		case t.Outcome == Unknown && !slices.Contains(names, t.Tool):
			names = append(names, t.Tool)
		}
	}
	return names
}

// Objections name all that keeps the evidence from passing: by finding, failed test, and tool that failed otherwise or came to no verdict. They are
// the same in each run as long as these are. complete is false where some are not named.
func (e *Evidence) Objections() (names []string, complete bool) {
	if e.Outcome == Passed {
		return nil, true
	}
	for _, f := range e.Findings {
		names = append(names, cmp.Or(f.ID, strings.Join([]string{f.Tool, f.Rule, f.File, f.Message}, " ")))
	}
	for _, t := range e.Failures {
		names = append(names, strings.Join([]string{"test", t.Suite, t.Name}, " "))
	}
	for _, r := range e.Tools {
		failed := r.Outcome == Failed && (r.Reason != "" || r.Findings == 0 && (r.Tests == nil || r.Tests.Failed == 0))
		if failed || r.Outcome == Unknown {
			names = append(names, strings.Join([]string{string(r.Outcome), r.Tool, r.Folder, r.Reason}, " "))
		}
	}
	if len(e.Tools) == 0 {
		names = append(names, string(e.Outcome))
	}
	return names, e.Omitted == 0
}

// LetsBut is Lets for a change of which a person took certain objections.
func (e *Evidence) LetsBut(taken []string, allowNone bool) bool {
	if e.Lets(allowNone) {
		return true
	}
	names, complete := e.Objections()
	return complete && len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(taken, name) })
}

// worth orders outcomes, first those that need attention.
func worth(o Outcome) int { return slices.Index([]Outcome{Failed, Unknown, Passed}, o) }

// far is 0 for a finding in a changed line, 1 for one elsewhere in a changed file, and 2 for all others.
func far(f Finding, changed map[string][]LineRange) int {
	lines, ok := changed[f.File]
	switch {
	case !ok:
		return 2
	case slices.ContainsFunc(lines, func(r LineRange) bool { return r.First <= f.Line && f.Line <= r.Last }):
		return 0
	}
	return 1
}

func summary(e *Evidence, counts Counts) string {
	var parts []string
	for _, r := range e.Tools {
		if r.Outcome == Unknown {
			parts = append(parts, r.Tool+" is unknown: "+r.Reason)
		}
	}
	parts = parts[:min(len(parts), 3)]
	if counts != (Counts{}) {
		parts = append([]string{fmt.Sprintf("%d tests passed, %d failed, %d skipped", counts.Passed, counts.Failed, counts.Skipped)}, parts...)
	}
	if n := len(e.Findings); n > 0 {
		parts = append([]string{schemas.Count(n, "finding")}, parts...)
	}
	var names []string
	for _, r := range e.Tools {
		if r.Outcome == Passed {
			names = append(names, strings.TrimSpace(r.Tool+" "+r.Version))
		}
	}
	if len(names) > 0 {
		parts = append(parts, "clean: "+strings.Join(names[:min(len(names), 8)], ", "))
	}
	if len(e.Overridden) > 0 {
		parts = append(parts, fmt.Sprintf("%d accepted by people", len(e.Overridden)))
	}
	if len(parts) == 0 {
		return "nothing was checked"
	}
	return shorten.Text(strings.Join(parts, "; "), 600)
}

// Text lists the findings, in lines for the person or agent that fixes them.
func (e *Evidence) Text() string {
	var b strings.Builder
	for _, r := range e.Tools {
		if r.Outcome == Passed {
			continue
		}
		fmt.Fprintf(&b, "%s %s", r.Tool, r.Outcome)
		if r.Folder != "" {
			fmt.Fprintf(&b, " in %s", r.Folder)
		}
		if r.Reason != "" {
			fmt.Fprintf(&b, ": %s", r.Reason)
		}
		b.WriteByte('\n')
		if r.Findings == 0 && r.Output != "" {
			b.WriteString(r.Output + "\n")
		}
	}
	for _, f := range e.Findings {
		b.WriteString(f.Text())
		if f.Suggestion != "" {
			fmt.Fprintf(&b, "; %s", f.Suggestion)
		}
		b.WriteByte('\n')
	}
	for _, t := range e.Failures {
		fmt.Fprintf(&b, "test %s failed", t.Name)
		if t.File != "" {
			fmt.Fprintf(&b, " in %s", t.File)
		}
		for _, part := range []struct{ what, text string }{{"", t.Message}, {"expected ", t.Expected}, {"actual ", t.Actual}, {"", t.Stack},
			{"", t.Why}} {
			if part.text != "" {
				fmt.Fprintf(&b, "\n  %s%s", part.what, strings.ReplaceAll(part.text, "\n", "\n  "))
			}
		}
		if t.Message == "" && t.Stack == "" && t.Output != "" {
			fmt.Fprintf(&b, "\n  %s", strings.ReplaceAll(t.Output, "\n", "\n  "))
		}
		b.WriteByte('\n')
	}
	if e.Omitted > 0 {
		fmt.Fprintf(&b, "and %d more\n", e.Omitted)
	}
	return b.String()
}

// Text is a finding in a line: where it is, how bad, what, and by which rule.
func (f Finding) Text() string {
	text := fmt.Sprintf("%s: %s: %s", f.Place(), f.Severity, f.Message)
	if f.Rule != "" {
		text += fmt.Sprintf(" (%s %s)", f.Tool, f.Rule)
	}
	return text
}

// Place is where a finding is, as file:line:column.
func (f Finding) Place() string {
	switch {
	case f.Line == 0:
		return f.File
	case f.Column == 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
}
