package formats

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
)

// Annotation is a remark about a place: a finding, or a problem of a spec.
type Annotation struct {
	checks.Finding
	Title   string // "": tool and rule
	Related []Related
}

// Related is another place that an annotation is about.
type Related struct {
	File string
	checks.Range
	Message string
}

// Of returns the annotations of checks: their findings, failed tests, and unknown outcomes.
func Of(all []checks.Check) (out []Annotation) {
	for _, c := range all {
		for _, f := range c.Findings {
			out = append(out, Annotation{Finding: f})
		}
		for _, t := range c.Tests {
			if t.Outcome == checks.TestFailed {
				f := checks.Finding{File: t.File, Range: checks.Range{Line: t.Line}, Severity: checks.High, Tool: c.Tool, Rule: t.Name,
					Message: firstOf(t.Message, t.Output, "the test failed")}
				out = append(out, Annotation{Finding: f, Title: strings.TrimSpace(t.Suite + " " + t.Name)})
			}
		}
		if c.Outcome == checks.Unknown {
			out = append(out, Annotation{Finding: checks.Finding{Severity: checks.Medium, Tool: c.Tool, Rule: "unknown", Message: c.Tool + " is unknown: " + c.Reason}})
		}
	}
	return out
}

// WriteGitHub writes annotations as workflow commands of GitHub Actions: ::error, ::warning and ::notice. prefix is the path of the root below
// the repository, "" at its top.
func WriteGitHub(w io.Writer, prefix string, all []Annotation) error {
	var b strings.Builder
	for _, a := range all {
		command := "warning"
		switch {
		case a.Severity.AtLeast(checks.High):
			command = "error"
		case a.Severity == checks.Info:
			command = "notice"
		}
		b.WriteString("::" + command)
		separator := " "
		property := func(name, value string) {
			if value != "" && value != "0" {
				b.WriteString(separator + name + "=" + gitHubProperty(value))
				separator = ","
			}
		}
		if a.File != "" {
			property("file", join(prefix, a.File))
		}
		property("line", strconv.Itoa(a.Line))
		property("col", strconv.Itoa(a.Column))
		property("endLine", strconv.Itoa(a.EndLine))
		property("title", firstOf(a.Title, a.title()))
		b.WriteString("::" + gitHubText(a.Message) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *Annotation) title() string {
	if a.Rule == "" {
		return a.Tool
	}
	return a.Tool + "/" + a.Rule
}

// gitHubText and gitHubProperty escape as GitHub's toolkit does (actions/toolkit, packages/core/src/command.ts).
func gitHubText(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(clean(s))
}

func gitHubProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(gitHubText(s))
}

func join(prefix, p string) string {
	if prefix == "" || strings.HasPrefix(p, "/") {
		return p
	}
	return prefix + "/" + p
}

const sarifSchema = "https://json.schemastore.org/sarif-2.1.0.json"

// WriteSARIF writes annotations as SARIF 2.1.0, a run for each tool, in the order of their first annotations. With none it writes a run of
// tool without results. prefix is as for [WriteGitHub]; version is that of tool.
func WriteSARIF(w io.Writer, prefix, tool, version string, all []Annotation) error {
	log := sarifLog{Schema: sarifSchema, Version: "2.1.0"}
	at := map[string]int{}
	run := func(name string) *sarifRun {
		i, ok := at[name]
		if !ok {
			i = len(log.Runs)
			at[name] = i
			r := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
			r.Tool.Driver = sarifDriver{Name: name, Rules: []sarifRule{}}
			if name == tool {
				r.Tool.Driver.Version = version
			}
			log.Runs = append(log.Runs, r)
		}
		return &log.Runs[i]
	}
	rules := map[string]int{} // the place of a rule among those of its run
	for i := range all {
		a := &all[i]
		r := run(firstOf(a.Tool, tool))
		id := firstOf(a.Rule, a.Tool, tool)
		key := r.Tool.Driver.Name + "\x00" + id
		if _, known := rules[key]; !known {
			rules[key] = len(r.Tool.Driver.Rules)
			r.Tool.Driver.Rules = append(r.Tool.Driver.Rules, sarifRule{ID: id})
		}
		if rule := &r.Tool.Driver.Rules[rules[key]]; rule.HelpURI == "" {
			rule.HelpURI = a.URL
		}
		r.Results = append(r.Results, a.sarif(prefix, id))
	}
	if len(log.Runs) == 0 {
		run(tool)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(log)
}

func (a *Annotation) sarif(prefix, rule string) sarifResult {
	level := "warning"
	switch {
	case a.Severity.AtLeast(checks.High):
		level = "error"
	case !a.Severity.AtLeast(checks.Medium):
		level = "note"
	}
	r := sarifResult{RuleID: rule, Level: level, Message: sarifText{clean(a.Message)}}
	if a.ID != "" {
		r.Properties.ID, r.Properties.Severity = a.ID, a.Severity
	}
	place := func(file string, at checks.Range) (l sarifLocation) {
		l.Physical.Artifact.URI, l.Physical.Region = escape(join(prefix, file)), regionOf(at)
		return l
	}
	if a.File != "" {
		r.Locations = []sarifLocation{place(a.File, a.Range)}
	}
	for i, o := range a.Related {
		l := place(o.File, o.Range)
		l.ID, l.Message.Text = i+1, clean(o.Message)
		r.Related = append(r.Related, l)
	}
	if len(a.Fixes) > 0 && a.File != "" {
		c := sarifChange{Artifact: r.Locations[0].Physical.Artifact}
		for _, e := range a.Fixes {
			if e.Line > 0 {
				c.Replacements = append(c.Replacements, sarifReplacement{regionOf(e.Range), sarifText{e.Text}})
			}
		}
		if len(c.Replacements) > 0 {
			r.Fixes = []sarifFix{{sarifText{clean(a.Suggestion)}, []sarifChange{c}}}
		}
	}
	return r
}

func regionOf(r checks.Range) (_ sarifRegion) {
	if r.Line == 0 {
		return
	}
	return sarifRegion{r.Line, r.Column, r.EndLine, r.EndColumn}
}

// escape makes a path a URI reference. A colon in its first segment would be taken for a scheme.
func escape(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c > ' ' && c < 0x7f && !strings.ContainsRune("%\"<>\\^`{|}?#:[]", rune(c)):
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// The form of JUnit XML that is written.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     string     `xml:"time,attr"`
		Cases    []junitOut `xml:"testcase"`
	}
	junitOut struct {
		Name    string     `xml:"name,attr"`
		Class   string     `xml:"classname,attr,omitempty"`
		File    string     `xml:"file,attr,omitempty"`
		Line    int        `xml:"line,attr,omitempty"`
		Time    string     `xml:"time,attr,omitempty"`
		Failure *junitText `xml:"failure"`
		Error   *junitText `xml:"error"`
		Skipped *junitText `xml:"skipped"`
	}
)

// WriteJUnit writes checks as JUnit XML, a suite for each. A finding is a failed case; a check that is unknown has a case with an error.
func WriteJUnit(w io.Writer, all []checks.Check) error {
	out := junitSuites{Suites: []junitSuite{}}
	for _, c := range all {
		s := junitSuite{Name: strings.TrimSpace(c.Tool + " " + c.Folder), Time: seconds(c.Seconds)}
		for _, t := range c.Tests {
			k := junitOut{Name: clean(t.Name), Class: clean(t.Suite), File: t.File, Line: t.Line, Time: seconds(t.Seconds)}
			switch t.Outcome {
			case checks.TestFailed:
				s.Failures++
				k.Failure = &junitText{Message: clean(t.Message), Text: clean(firstOf(t.Stack, t.Output))}
			case checks.TestSkipped:
				s.Skipped++
				k.Skipped = &junitText{Message: clean(t.Message)}
			}
			s.Cases = append(s.Cases, k)
		}
		for _, f := range c.Findings {
			s.Failures++
			s.Cases = append(s.Cases, junitOut{Name: clean(firstOf(f.Rule, f.Tool) + " " + f.ID), Class: f.File, File: f.File, Line: f.Line,
				Failure: &junitText{Message: clean(f.Message), Type: string(f.Severity), Text: clean(f.Suggestion)}})
		}
		switch {
		case c.Outcome == checks.Unknown:
			s.Errors++
			s.Cases = append(s.Cases, junitOut{Name: c.Tool, Error: &junitText{Message: clean(c.Reason), Type: "unknown", Text: clean(c.Output)}})
		case len(s.Cases) == 0:
			s.Cases = append(s.Cases, junitOut{Name: c.Tool})
		}
		s.Tests = len(s.Cases)
		out.Suites = append(out.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }
