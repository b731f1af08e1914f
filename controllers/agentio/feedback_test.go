package agentio

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/schemas/shorten"
)

// TestFeedbackIsBounded: however much is found, the agent is told of what is in changed lines first, and the prompt stays within its budget.
func TestFeedbackIsBounded(t *testing.T) {
	long := strings.Repeat("välue ", 20_000)
	c := checks.Check{Tool: "lint", Category: checks.Linter, Outcome: checks.Failed}
	for i := range 5000 {
		f := checks.Finding{File: fmt.Sprintf("pkg%d/%s.go", i%7, strings.Repeat("n", 300)), Range: checks.Range{Line: i + 1}, Severity: checks.Critical, Message: long, Suggestion: long, Rule: "R"}
		if i >= 4997 {
			f.File, f.Severity = "changed.go", checks.Low
		}
		c.Findings = append(c.Findings, f)
	}
	tests := checks.Check{Tool: "test", Category: checks.TestFramework, Outcome: checks.Failed, Output: long}
	for i := range 5000 {
		tests.Tests = append(tests.Tests, checks.Test{Name: fmt.Sprint("Test", i), Outcome: checks.TestFailed, Message: long, Stack: long, Expected: long, Actual: long, Output: long})
	}
	changed := map[string][]checks.LineRange{"changed.go": {{First: 4998, Last: 4998}, {First: 5000, Last: 5000}}}
	for name, all := range map[string][]checks.Check{"findings": {c}, "tests": {tests}, "both": {c, tests}} {
		e := checks.Evident(all, checks.Failed, nil, changed)
		data, err := json.Marshal(e)
		if err != nil || len(data) > 60_000 {
			t.Errorf("%s: the evidence has %d bytes, %v", name, len(data), err)
		}
		if shown := len(e.Findings) + len(e.Failures); shown+e.Omitted != 5000*len(all) || len(e.Findings) > 40 || len(e.Failures) > 15 {
			t.Errorf("%s: %d findings and %d failures are shown, %d omitted", name, len(e.Findings), len(e.Failures), e.Omitted)
		}
		text := (&Feedback{From: "inspector", Loop: 1, Most: 3, Summary: e.Summary, Text: e.Text()}).text()
		bare := (&Feedback{From: "inspector", Loop: 1, Most: 3, Summary: e.Summary, Text: "x"}).text()
		if n := utf8.RuneCountInString(text) - utf8.RuneCountInString(bare); n > 12_000 {
			t.Errorf("%s: the agent is told %d characters", name, n)
		}
		if name == "tests" {
			continue
		}
		at := -1
		for _, line := range []string{"changed.go:4998", "changed.go:5000", "changed.go:4999", "pkg"} {
			next := strings.Index(text, line)
			if next <= at {
				t.Errorf("%s: %s is not in its place, but at %d of %s", name, line, next, shorten.Text(text, 2000))
			}
			at = next
		}
	}
}
