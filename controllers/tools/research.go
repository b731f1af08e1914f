package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers/checks"
)

// Advice is what a knowledge agent recommends for one question.
type Advice struct {
	Category   checks.Category `json:"category"`
	Language   string          `json:"language"`
	Tool       string          `json:"tool"`
	Why        string          `json:"why"`
	Confidence float64         `json:"confidence"` // 0 to 1
}

const (
	// sureEnough is the confidence from which an advice counts; with less a person decides.
	sureEnough = 0.5
	longestWhy = 2000
)

// ResearchPrompt asks a knowledge agent which tools a project should use, of those that may be chosen.
func ResearchPrompt(all []Open) string {
	var b strings.Builder
	b.WriteString("Which tools should this project check its code with? Nothing in it says that. For each question choose one of its tools, by what is recommended today " +
		"and what the project looks like. Change no file and install nothing.\n")
	for _, o := range all {
		fmt.Fprintf(&b, "\n%s of %s (%d files):\n", o.Category, o.Language, o.Files)
		for _, x := range o.Options {
			fmt.Fprintf(&b, "- %s", x.Tool)
			if len(x.Pros) > 0 {
				fmt.Fprintf(&b, "; for it: %s", strings.Join(x.Pros, ", "))
			}
			if len(x.Cons) > 0 {
				fmt.Fprintf(&b, "; against it: %s", strings.Join(x.Cons, ", "))
			}
			b.WriteByte('\n')
		}
	}
	b.WriteString("\nAnswer with JSON and nothing else. Leave out a question where no tool is clearly better; confidence is 0 to 1:\n" +
		`{"tools": [{"language": "python", "category": "linter", "tool": "ruff", "why": "one sentence", "confidence": 0.9}]}` + "\n")
	return b.String()
}

// QuestionsIn are the questions of a prompt that ResearchPrompt made, with all options.
func QuestionsIn(prompt string) (all []Open) {
	for line := range strings.Lines(prompt) {
		category, rest, ok := strings.Cut(strings.TrimSuffix(line, " files):\n"), " of ")
		i := strings.LastIndex(rest, " (")
		if !ok || i < 0 || !strings.HasSuffix(line, " files):\n") || !slices.Contains(checks.Categories(), checks.Category(category)) {
			continue
		}
		o := Open{Category: checks.Category(category), Language: rest[:i]}
		for _, name := range For(o.Language, o.Category) {
			o.Options = append(o.Options, Option{Tool: name})
		}
		all = append(all, o)
	}
	return all
}

// ReadAdvice reads the answer of a knowledge agent to questions. Advice about other questions, or tools that may not be
// chosen, is refused with the reason, as is an advice that is not sure enough. The error says that the answer is not in the form.
func ReadAdvice(answer []byte, all []Open) (accepted []Advice, refused []string, err error) {
	var a struct {
		Tools []Advice `json:"tools"`
	}
	d := json.NewDecoder(bytes.NewReader(answer))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return nil, nil, fmt.Errorf("it is not the JSON that was asked for: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("there is more than the JSON that was asked for")
	}
	for _, x := range a.Tools {
		what := fmt.Sprintf("%s of %s: %q", x.Category, x.Language, x.Tool)
		i := slices.IndexFunc(all, func(o Open) bool { return o.Category == x.Category && o.Language == x.Language })
		switch {
		case i < 0:
			refused = append(refused, what+" answers no question")
		case slices.ContainsFunc(accepted, func(o Advice) bool { return o.Category == x.Category && o.Language == x.Language }):
			refused = append(refused, what+" is a second answer")
		case !slices.ContainsFunc(all[i].Options, func(o Option) bool { return o.Tool == x.Tool }):
			refused = append(refused, what+" is none of the tools")
		case strings.TrimSpace(x.Why) == "" || !utf8.ValidString(x.Why) || utf8.RuneCountInString(x.Why) > longestWhy:
			refused = append(refused, what+" has no reason")
		case !(x.Confidence >= 0 && x.Confidence <= 1):
			refused = append(refused, fmt.Sprintf("%s has the confidence %v", what, x.Confidence))
		case x.Confidence < sureEnough:
			refused = append(refused, fmt.Sprintf("%s is not sure (%v)", what, x.Confidence))
		default:
			accepted = append(accepted, x)
		}
	}
	return accepted, refused, nil
}
