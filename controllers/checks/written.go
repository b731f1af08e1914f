package checks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// writing is the category of a check by an agent that wrote tests. No tool has it.
const writing Category = "writing"

// Bounds of what is kept of tests that an agent wrote, in entries and characters.
const (
	mostPlanned = 20
	mostNames   = 60
	nameChars   = 200
)

// WrittenSchema is the JSON Schema of the answer of an agent that writes tests.
const WrittenSchema = `{"type":"object","required":["plan","failures"],"properties":{"summary":{"type":"string"},"plan":{"type":"array","items":{"type":"string"}},` +
	`"failures":{"type":"array","items":{"type":"object","required":["test","message"],"properties":{"test":{"type":"string","minLength":1},` +
	`"file":{"type":"string"},"message":{"type":"string"}}}}}}`

// EvidenceOfTests is the evidence of the tests that an agent wrote, from the result of its run. Its Failures are what the agent says.
func EvidenceOfTests(w Written, result json.RawMessage) *Evidence {
	c := Check{Tool: byAgent + w.By, Category: writing, Outcome: Passed}
	var answer struct {
		Plan     []string `json:"plan"`
		Summary  string   `json:"summary"`
		Failures []struct{ Test, File, Message string }
	}
	if err := readAnswer(result, WrittenSchema, &answer); err != nil {
		c.Outcome, c.Reason = Unknown, err.Error()
	}
	c.Output = answer.Summary
	for _, f := range answer.Failures {
		c.Tests = append(c.Tests, Test{Name: f.Test, File: f.File, Outcome: TestFailed, Message: f.Message})
	}
	e := Evident([]Check{c}, c.Outcome, nil, nil)
	for _, p := range answer.Plan[:min(len(answer.Plan), mostPlanned)] {
		w.Plan = append(w.Plan, shorten.Text(p, findingChars))
	}
	files, tests := len(w.Files), len(w.Tests)
	w.Files, w.Tests, w.Left = shortened(w.Files), shortened(w.Tests), shorten.Text(w.Left, findingChars)
	if e.Written = &w; c.Outcome == Passed {
		parts := []string{"wrote no test"}
		if files > 0 {
			parts[0] = fmt.Sprintf("wrote %s in %s", schemas.Count(tests, "test"), schemas.Shorten(w.Files, 3))
		}
		if len(e.Failures) > 0 {
			parts = append(parts, "says that "+schemas.Count(len(e.Failures), "test")+" failed")
		}
		e.Summary = strings.Join(parts, "; ")
	}
	if w.Left != "" {
		e.Summary += "; " + w.Left
	}
	e.fit()
	return e
}

// shortened are the first of some names, each shortened.
func shortened(names []string) []string {
	out := make([]string, min(len(names), mostNames))
	for i := range out {
		out[i] = shorten.Text(names[i], nameChars)
	}
	return out
}

// owns reports whether a failed test is one of them: it is in one of their files, or has the name of one.
func (w *Written) owns(t Test) bool {
	return w.hasFile(t.File) || slices.ContainsFunc(w.Tests, func(name string) bool { return strings.Contains(t.Name, name) })
}

func (w *Written) hasFile(file string) bool {
	return file != "" && slices.ContainsFunc(w.Files, func(own string) bool { return own == file || strings.HasSuffix(own, "/"+file) })
}

// Fault says why the outcome of a run of tests is the fault of tests that were written, and not of the change that they test; "" if it is not.
// before is the run without them.
func (w *Written) Fault(e, before *Evidence) string {
	if e.Outcome == Unknown {
		return "it is unknown how its tests end: " + e.Summary
	}
	for _, f := range e.Findings { // the errors of a build
		if before.Outcome == Passed || w.hasFile(f.File) || f.File == "" {
			return "its tests do not build: " + f.Text()
		}
	}
	if len(e.Findings)+len(e.Failures) == 0 {
		return "its tests do not build: " + e.Summary
	}
	for _, t := range e.Failures {
		switch {
		case !w.owns(t) && before.Outcome == Passed:
			return fmt.Sprintf("the test %s passed before its tests were there, and fails now: %s", t.Name, t.Message)
		case w.owns(t) && (t.Blame == Flaky || t.Blame == Dependent || t.Blame == NoDifference || t.Blame == Known || t.Blame == OfTest):
			return fmt.Sprintf("its test %s is not to be relied on: %s", t.Name, t.Why)
		}
	}
	return ""
}

// Untested reports whether no test ran, since there is none.
func (e *Evidence) Untested() bool {
	return e.Outcome == Unknown && len(e.Findings)+len(e.Failures) == 0 && !slices.ContainsFunc(e.Tools, func(r Ran) bool {
		return r.Tests == nil || *r.Tests != Counts{} || !strings.HasPrefix(r.Reason, noTestRan)
	})
}
