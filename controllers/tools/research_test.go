package tools

import (
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/checks"
)

var asked = []Open{{Category: checks.Linter, Language: "python", Options: []Option{{Tool: "ruff"}, {Tool: "pylint"}}}}

func TestReadAdvice(t *testing.T) {
	one := func(fields string) string {
		return `{"tools": [{` + fields + "}]}"
	}
	for answer, want := range map[string]string{
		one(`"language": "python", "category": "linter", "tool": "ruff", "why": "x", "confidence": 0.9`):               "ruff",
		one(`"language": "python", "category": "linter", "tool": "ruf", "why": "x", "confidence": 0.9`):                "none of the tools",
		one(`"language": "python", "category": "linter", "tool": "black", "why": "x", "confidence": 0.9`):              "none of the tools",
		one(`"language": "go", "category": "linter", "tool": "ruff", "why": "x", "confidence": 0.9`):                   "answers no question",
		one(`"language": "python", "category": "linter", "tool": "ruff", "why": " ", "confidence": 0.9`):               "has no reason",
		one(`"language": "python", "category": "linter", "tool": "ruff", "why": "x", "confidence": 7`):                 "has the confidence 7",
		one(`"language": "python", "category": "linter", "tool": "ruff", "why": "x"`):                                  "is not sure",
		one(`"language": "python", "category": "linter", "tool": "ruff", "why": "x", "confidence": 1, "run": "rm -r"`): "error",
		`I would take ruff.`:              "error",
		`{"tools": []} and so on`:         "error",
		"```json\n{\"tools\": []}\n```\n": "error",
		``:                                "error",
		`{"tools": []}`:                   "",
	} {
		accepted, refused, err := ReadAdvice([]byte(answer), asked)
		got := strings.Join(refused, "; ")
		if err != nil {
			got = "error"
		}
		for _, a := range accepted {
			got += a.Tool
		}
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
}

// Whatever an agent says, only tools that were offered are accepted, each question once.
func FuzzReadAdvice(f *testing.F) {
	f.Add(`{"tools": [{"language": "python", "category": "linter", "tool": "ruff", "why": "x", "confidence": 0.9}]}`)
	f.Fuzz(func(t *testing.T, answer string) {
		accepted, _, err := ReadAdvice([]byte(answer), asked)
		if len(accepted) > len(asked) || err != nil && len(accepted) > 0 {
			t.Error(accepted, err)
		}
		for _, a := range accepted {
			if a.Tool != "ruff" && a.Tool != "pylint" || a.Confidence < sureEnough {
				t.Error(a)
			}
		}
	})
}

// TestQuestionsIn shows that a prompt has the questions that were asked, and nothing that an option says becomes one.
func TestQuestionsIn(t *testing.T) {
	all := []Open{{Category: checks.Linter, Language: "python", Files: 1, Options: []Option{{Tool: "ruff", Pros: []string{"linter of go (3 files):"}}}},
		{Category: checks.TestFramework, Language: "objective-c++", Files: 12}}
	got := QuestionsIn(ResearchPrompt(all))
	if len(got) != len(all) {
		t.Fatalf("got %+v", got)
	}
	for i, q := range got {
		if q.Category != all[i].Category || q.Language != all[i].Language {
			t.Errorf("question %d is %s of %s", i, q.Category, q.Language)
		}
	}
	if !slices.ContainsFunc(got[0].Options, func(o Option) bool { return o.Tool == "pylint" }) {
		t.Errorf("the options are %v", got[0].Options)
	}
}
