package render

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
)

// Problems writes problems for people, by [schemas.Problem.Format]; with a palette, places and warnings are painted.
func Problems(w io.Writer, p Palette, problems []schemas.Problem) error {
	var b strings.Builder
	for _, problem := range problems {
		b.WriteString(paintProblem(p, problem, Text(problem.Format())))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func paintProblem(p Palette, problem schemas.Problem, text string) string {
	if !p.On {
		return text
	}
	color := Red
	if problem.Severity == schemas.Warning {
		color = Yellow
	}
	place := Line(problem.Place.String())
	return strings.Replace(text, place, p.Paint(color, place), 1)
}

// GitHub writes problems as workflow commands, ::error or ::warning, which GitHub shows as annotations of the line and
// column of the file. prefix is the tree's path below the repository, "" at its root.
func GitHub(w io.Writer, prefix string, problems []schemas.Problem) error {
	var b strings.Builder
	for _, p := range problems {
		command := "error"
		if p.Severity == schemas.Warning {
			command = "warning"
		}
		fmt.Fprintf(&b, "::%s file=%s", command, problemProperty(join(prefix, p.Path)))
		if p.Line > 0 {
			fmt.Fprintf(&b, ",line=%d", p.Line)
		}
		if p.Column > 0 {
			fmt.Fprintf(&b, ",col=%d", p.Column)
		}
		fmt.Fprintf(&b, ",title=%s::%s\n", problemProperty(p.Code), commandText(problemSentence(p)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// problemSentence is the problem without its place.
func problemSentence(p schemas.Problem) string {
	s := p.Message
	if p.Field != "" {
		s = p.Field + ": " + s
	}
	if p.Suggestion != "" {
		s += "; " + p.Suggestion
	}
	return s
}

// commandText and property escape as GitHub's own toolkit does (actions/toolkit, packages/core/src/command.ts).
func commandText(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(Text(s))
}

func problemProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(commandText(s))
}

// The part of SARIF 2.1.0 that problems need.
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
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
		Related   []sarifLocation `json:"relatedLocations,omitempty"`
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
	}
)

// SARIF writes problems as a SARIF 2.1.0 log. Columns count characters, as in [schemas.Place].
func SARIF(w io.Writer, version, prefix string, problems []schemas.Problem) error {
	run := sarifRun{
		Tool:       sarifTool{sarifDriver{Name: "reconcile", Version: version, Rules: []sarifRule{}}},
		ColumnKind: "unicodeCodePoints",
		Results:    []sarifResult{},
	}
	for _, p := range problems {
		rule := sarifRule{ID: p.Code}
		if !slices.Contains(run.Tool.Driver.Rules, rule) {
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
		}
		r := sarifResult{RuleID: p.Code, Level: string(p.Severity), Message: sarifText{problemSentence(p)}}
		r.Locations = []sarifLocation{sarifPlace(prefix, p.Place)}
		for i, at := range p.Related {
			related := sarifPlace(prefix, at)
			related.ID = i + 1
			if i < len(p.Notes) {
				related.Message = &sarifText{p.Notes[i]}
			}
			r.Related = append(r.Related, related)
		}
		run.Results = append(run.Results, r)
	}
	return document.JSON(w, sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	})
}

func sarifPlace(prefix string, at schemas.Place) sarifLocation {
	l := sarifLocation{Physical: sarifPhysical{Artifact: sarifArtifact{(&url.URL{Path: join(prefix, at.Path)}).String()}}}
	if at.Line > 0 {
		l.Physical.Region = &sarifRegion{StartLine: at.Line, StartColumn: at.Column}
	}
	return l
}

// placeOf returns a path with its line. File names may contain any character, including line ends.
func placeOf(path string, line int) string {
	if line > 0 {
		path = fmt.Sprintf("%s:%d", path, line)
	}
	return Line(path)
}
