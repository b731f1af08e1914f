package checks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestEvidenceIsBounded: however much tools print, a record of it stays small, and begins with what the change is about.
func TestEvidenceIsBounded(t *testing.T) {
	long := strings.Repeat("é long text ", 5000)
	lint := Check{Tool: "lint", Category: Linter, Outcome: Failed, Reason: long, Output: long}
	for i := range 10_000 {
		lint.Findings = append(lint.Findings, Finding{File: fmt.Sprintf("f%d.go", i%100), Range: Range{Line: i}, Severity: Low, Message: long, Suggestion: long, Fixes: []Edit{{Text: long}}})
	}
	lint.Findings = append(lint.Findings, Finding{File: "mine.go", Range: Range{Line: 7}, Severity: Info, Message: "here"},
		Finding{File: "mine.go", Range: Range{Line: 90}, Severity: High, Message: "near"})
	test := Check{Tool: "test", Category: TestFramework, Outcome: Failed}
	for i := range 1000 {
		test.Tests = append(test.Tests, Test{Name: fmt.Sprint("Test", i), Outcome: TestFailed, Message: long, Expected: long, Actual: long, Stack: long, Output: long})
	}
	all := []Check{lint, test}
	for i := range 500 {
		all = append(all, Check{Tool: fmt.Sprint("tool", i), Category: Linter, Outcome: Unknown, Reason: long, Output: long})
	}
	e := Evident(all, Failed, nil, map[string][]LineRange{"mine.go": {{First: 5, Last: 9}}})
	data, err := json.Marshal(e)
	if err != nil || len(data) > evidenceBytes || len(e.Text()) > evidenceBytes {
		t.Errorf("%d bytes as JSON, %d as text; %v", len(data), len(e.Text()), err)
	}
	if e.Findings[0].Message != "here" || e.Findings[1].Message != "near" {
		t.Errorf("first of %d: %+v", len(e.Findings), e.Findings[:2])
	}
	if e.Omitted+len(e.Findings)+len(e.Failures) != 10_002+1000 || len(e.Findings) < 5 || len(e.Failures) < 5 {
		t.Errorf("%d omitted", e.Omitted)
	}
	if len(lint.Findings[0].Fixes) != 1 || len(lint.Findings) != 10_002 {
		t.Error("the checks themselves were changed")
	}
	if !strings.HasPrefix(e.Summary, "10002 findings; 0 tests passed, 1000 failed, 0 skipped; ") || strings.Contains(e.Summary, "\n") {
		t.Errorf("summary %q", e.Summary)
	}
}

// TestEvidenceOfOneLongName: an agent names its tests, and a name that is longer than all evidence does not keep the rest from being written.
func TestEvidenceOfOneLongName(t *testing.T) {
	long := strings.Repeat("x", 2*evidenceBytes)
	c := Check{Tool: "test", Category: TestFramework, Outcome: Failed, Tests: []Test{{Name: long, Suite: long, File: long, Outcome: TestFailed}},
		Findings: []Finding{{File: long, Rule: long}}}
	if e := Evident([]Check{c}, Failed, nil, nil); e.size() > evidenceBytes || len(e.Failures) != 1 || len(e.Findings) != 1 {
		t.Errorf("%d bytes", e.size())
	}
}

// TestLetsBut: what a person took of a change does not keep it back, and all else does.
func TestLetsBut(t *testing.T) {
	unused, wrong := Finding{ID: "a", File: "a.go"}, Finding{ID: "b", File: "b.go"}
	failed := func(findings ...Finding) *Evidence {
		return &Evidence{Outcome: Failed, Findings: findings, Tools: []Ran{{Tool: "lint", Outcome: Failed, Findings: len(findings)}}}
	}
	tests := func(names ...string) *Evidence {
		e := &Evidence{Outcome: Failed, Tools: []Ran{{Tool: "test", Outcome: Failed, Tests: &Counts{Failed: len(names)}}}}
		for _, name := range names {
			e.Failures = append(e.Failures, Test{Name: name})
		}
		return e
	}
	more := failed(unused)
	more.Omitted = 1
	broken := failed(unused)
	broken.Tools = append(broken.Tools, Ran{Tool: "build", Outcome: Failed, Reason: "does not build"})
	unknown := &Evidence{Outcome: Unknown, Tools: []Ran{{Tool: "lint", Outcome: Unknown, Reason: "it is not installed"}}}
	none := &Evidence{Outcome: Unknown}
	for _, c := range []struct {
		name       string
		taken, now *Evidence
		want       bool
	}{
		{"passes", none, &Evidence{Outcome: Passed}, true},
		{"the same finding", failed(unused, wrong), failed(unused), true},
		{"another finding", failed(unused), failed(unused, wrong), false},
		{"more than is on record", failed(unused), more, false},
		{"it does not build now", failed(unused), broken, false},
		{"the same test", tests("one"), tests("one"), true},
		{"another test", tests("one"), tests("two"), false},
		{"as unknown as before", unknown, unknown, true},
		{"unknown now", failed(unused), unknown, false},
		{"nothing to check with, as before", none, none, true},
		{"nothing to check with now", failed(unused), none, false},
	} {
		taken, _ := c.taken.Objections()
		if got := c.now.LetsBut(taken, false); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
