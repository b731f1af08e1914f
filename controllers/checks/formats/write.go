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

// Annotation is what is written about a place: a finding, or a problem of a spec.
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

// Of returns the annotations of checks: their findings, the tests that failed, and what is unknown.
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

// The form of SARIF 2.1.0 that is written.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string `json:"id"`
		HelpURI string `json:"helpUri,omitempty"`
	}
	sarifResult struct {
		RuleID     string           `json:"ruleId"`
		Level      string           `json:"level"`
		Message    sarifText        `json:"message"`
		Locations  []sarifLocation  `json:"locations,omitempty"`
		Related    []sarifLocation  `json:"relatedLocations,omitempty"`
		Fixes      []sarifFix       `json:"fixes,omitempty"`
		Properties *sarifProperties `json:"properties,omitempty"`
	}
	sarifProperties struct {
		ID       string          `json:"id,omitempty"`
		Severity checks.Severity `json:"severity,omitempty"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		ID       int           `json:"id,omitempty"`
		Physical sarifPhysical `json:"physicalLocation"`
		Message  *sarifText    `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
		EndLine     int `json:"endLine,omitempty"`
		EndColumn   int `json:"endColumn,omitempty"`
	}
	sarifFix struct {
		Description *sarifText    `json:"description,omitempty"`
		Changes     []sarifChange `json:"artifactChanges"`
	}
	sarifChange struct {
		Artifact     sarifArtifact      `json:"artifactLocation"`
		Replacements []sarifReplacement `json:"replacements"`
	}
	sarifReplacement struct {
		Deleted  sarifRegion `json:"deletedRegion"`
		Inserted sarifText   `json:"insertedContent"`
	}
)

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
			r := sarifRun{Tool: sarifTool{sarifDriver{Name: name, Rules: []sarifRule{}}}, ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
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
		r.Properties = &sarifProperties{a.ID, a.Severity}
	}
	if a.File != "" {
		r.Locations = []sarifLocation{{Physical: sarifPhysical{sarifArtifact{escape(join(prefix, a.File))}, regionOf(a.Range)}}}
	}
	for i, o := range a.Related {
		r.Related = append(r.Related, sarifLocation{i + 1, sarifPhysical{sarifArtifact{escape(join(prefix, o.File))}, regionOf(o.Range)}, &sarifText{clean(o.Message)}})
	}
	if len(a.Fixes) > 0 && a.File != "" {
		c := sarifChange{Artifact: sarifArtifact{escape(join(prefix, a.File))}}
		for _, e := range a.Fixes {
			if region := regionOf(e.Range); region != nil {
				c.Replacements = append(c.Replacements, sarifReplacement{*region, sarifText{e.Text}})
			}
		}
		if len(c.Replacements) > 0 {
			f := sarifFix{Changes: []sarifChange{c}}
			if a.Suggestion != "" {
				f.Description = &sarifText{clean(a.Suggestion)}
			}
			r.Fixes = []sarifFix{f}
		}
	}
	return r
}

func regionOf(r checks.Range) *sarifRegion {
	if r.Line == 0 {
		return nil
	}
	return &sarifRegion{r.Line, r.Column, r.EndLine, r.EndColumn}
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
		Name    string      `xml:"name,attr"`
		Class   string      `xml:"classname,attr,omitempty"`
		File    string      `xml:"file,attr,omitempty"`
		Line    int         `xml:"line,attr,omitempty"`
		Time    string      `xml:"time,attr,omitempty"`
		Failure *junitCause `xml:"failure"`
		Error   *junitCause `xml:"error"`
		Skipped *junitCause `xml:"skipped"`
	}
	junitCause struct {
		Message string `xml:"message,attr,omitempty"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes checks as JUnit XML, a suite for each. A finding is a failed case; a check that is unknown has a case with an error.
func WriteJUnit(w io.Writer, all []checks.Check) error {
	out := junitSuites{Suites: []junitSuite{}}
	for _, c := range all {
		s := junitSuite{Name: strings.TrimSpace(c.Tool + " " + c.Folder), Time: seconds(c.Seconds)}
		for _, t := range c.Tests {
			k := junitOut{Name: text(t.Name), Class: text(t.Suite), File: t.File, Line: t.Line, Time: seconds(t.Seconds)}
			switch t.Outcome {
			case checks.TestFailed:
				s.Failures++
				k.Failure = &junitCause{Message: text(t.Message), Text: text(firstOf(t.Stack, t.Output))}
			case checks.TestSkipped:
				s.Skipped++
				k.Skipped = &junitCause{Message: text(t.Message)}
			}
			s.Cases = append(s.Cases, k)
		}
		for _, f := range c.Findings {
			s.Failures++
			s.Cases = append(s.Cases, junitOut{Name: text(firstOf(f.Rule, f.Tool) + " " + f.ID), Class: f.File, File: f.File, Line: f.Line,
				Failure: &junitCause{Message: text(f.Message), Type: string(f.Severity), Text: text(f.Suggestion)}})
		}
		switch {
		case c.Outcome == checks.Unknown:
			s.Errors++
			s.Cases = append(s.Cases, junitOut{Name: c.Tool, Error: &junitCause{Message: text(c.Reason), Type: "unknown", Text: text(c.Output)}})
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

// text is a text without what XML cannot have.
func text(s string) string { return clean(s) }
