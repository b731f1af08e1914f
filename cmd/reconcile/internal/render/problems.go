package render

import (
	"fmt"
	"io"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/checks/formats"
	"reconcile.dev/reconcile/schemas"
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

// FirstProblems writes at most that many problems, and how many there are more. A warning that several files of a kind have
// is written once, with the number of the others: an agent without a spec, say, has as many captures as it had runs.
func FirstProblems(w io.Writer, p Palette, list []schemas.Problem, most int) error {
	list = warnedOnce(list)
	more := len(list) - most
	if err := Problems(w, p, list[:min(most, len(list))]); err != nil || more <= 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "… and %d more; \"reconcile validate\" lists them\n", more)
	return err
}

func warnedOnce(list []schemas.Problem) (out []schemas.Problem) {
	type warning struct{ kind, code, message string }
	files, first := map[warning]map[string]bool{}, map[warning]int{}
	for _, p := range list {
		w := warning{p.Ref.Kind, p.Code, p.Message}
		if p.Severity == schemas.Warning {
			if files[w] == nil {
				files[w], first[w] = map[string]bool{}, len(out)
			} else if files[w][p.Path] = true; p.Path != out[first[w]].Path {
				continue
			}
		}
		out = append(out, p)
	}
	for w, others := range files {
		p := &out[first[w]]
		if delete(others, p.Path); len(others) > 0 {
			p.Message += fmt.Sprintf(", also in %s", schemas.Count(len(others), "other file"))
		}
	}
	return out
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
	return formats.WriteGitHub(w, prefix, annotations(problems))
}

// SARIF writes problems as a SARIF 2.1.0 log. Columns count characters, as in [schemas.Place].
func SARIF(w io.Writer, version, prefix string, problems []schemas.Problem) error {
	return formats.WriteSARIF(w, prefix, "reconcile", version, annotations(problems))
}

func annotations(problems []schemas.Problem) []formats.Annotation {
	out := make([]formats.Annotation, len(problems))
	for i, p := range problems {
		severity := checks.High
		if p.Severity == schemas.Warning {
			severity = checks.Medium
		}
		a := formats.Annotation{Title: p.Code, Finding: checks.Finding{File: p.Path, Range: rangeOf(p.Place), Severity: severity, Message: problemSentence(p),
			Tool: "reconcile", Rule: p.Code}}
		for k, at := range p.Related {
			related := formats.Related{File: at.Path, Range: rangeOf(at)}
			if k < len(p.Notes) {
				related.Message = p.Notes[k]
			}
			a.Related = append(a.Related, related)
		}
		out[i] = a
	}
	return out
}

func rangeOf(at schemas.Place) checks.Range { return checks.Range{Line: at.Line, Column: at.Column} }

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

// placeOf returns a path with its line. File names may contain any character, including line ends.
func placeOf(path string, line int) string {
	if line > 0 {
		path = fmt.Sprintf("%s:%d", path, line)
	}
	return Line(path)
}
