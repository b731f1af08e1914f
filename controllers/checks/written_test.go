package checks

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestFault: whose fault it is that tests of an agent fail.
func TestFault(t *testing.T) {
	w := &Written{By: "tester", Files: []string{"sub/new_test.go"}, Tests: []string{"TestNew"}}
	failed := func(all ...Test) *Evidence {
		for i := range all {
			all[i].Outcome = TestFailed
		}
		return &Evidence{Outcome: Failed, Failures: all}
	}
	passed, untested := &Evidence{Outcome: Passed}, &Evidence{Outcome: Unknown}
	for name, c := range map[string]struct {
		found, before *Evidence
		want          string
	}{
		"a test of its own":               {failed(Test{Name: "TestNew/empty", Blame: Unclear}), passed, ""},
		"one that the old code passes":    {failed(Test{Name: "TestNew", Blame: Implementation}), passed, ""},
		"one by its file":                 {failed(Test{Name: "x", File: "new_test.go"}), passed, ""},
		"no difference":                   {failed(Test{Name: "TestNew", Blame: NoDifference}), passed, "not to be relied on"},
		"flaky":                           {failed(Test{Name: "TestNew", Blame: Flaky}), passed, "not to be relied on"},
		"dependent":                       {failed(Test{Name: "TestNew", Blame: Dependent}), passed, "not to be relied on"},
		"one of two":                      {failed(Test{Name: "TestNew", Blame: Unclear}, Test{Name: "TestNew/b", Blame: NoDifference}), passed, "not to be relied on"},
		"another test":                    {failed(Test{Name: "TestOld", File: "old_test.go"}), passed, "passed before its tests were there"},
		"another test that nobody ran":    {failed(Test{Name: "TestOld", File: "old_test.go"}), untested, ""},
		"no test that failed":             {failed(), passed, "do not build"},
		"its build":                       {&Evidence{Outcome: Failed, Findings: []Finding{{File: "new_test.go"}}}, untested, "do not build"},
		"the build, which worked before":  {&Evidence{Outcome: Failed, Findings: []Finding{{File: "a.go"}}}, passed, "do not build"},
		"the build of what nobody tested": {&Evidence{Outcome: Failed, Findings: []Finding{{File: "a.go"}}}, untested, ""},
		"nobody knows":                    {&Evidence{Outcome: Unknown, Summary: "it hangs"}, passed, "it hangs"},
	} {
		if got := w.Fault(c.found, c.before); got == "" != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: the fault is %q, want %q", name, got, c.want)
		}
	}
}

// TestEvidenceOfTests: what an agent says of its tests decides nothing but whether it has answered.
func TestEvidenceOfTests(t *testing.T) {
	w := Written{By: "tester", Files: []string{"new_test.go"}, Tests: []string{"TestNew"}, Left: "left out: a.go"}
	for answer, want := range map[string]Outcome{
		`{"plan": ["all"], "failures": []}`: Passed, `{"plan": [], "failures": [{"test": "TestNew", "message": "wrong"}]}`: Passed,
		`{"plan": ["all"]}`: Unknown, `"all tests pass"`: Unknown, `{"plan": "all", "failures": []}`: Unknown,
	} {
		e := EvidenceOfTests(w, json.RawMessage(answer))
		if e.Outcome != want || e.Written.Files[0] != "new_test.go" || !strings.Contains(e.Summary, "left out: a.go") {
			t.Errorf("%s: %+v, want %s", answer, e, want)
		}
		if failing := strings.Contains(answer, "wrong"); failing != (len(e.Failures) == 1) {
			t.Errorf("%s: the failures are %v", answer, e.Failures)
		}
	}
	long := `{"plan": [` + strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("x", 3000)+`",`, 200), ",") + `], "failures": []}`
	for range 1000 {
		w.Tests, w.Files = append(w.Tests, "Test"+strings.Repeat("x", 1000)), append(w.Files, strings.Repeat("x", 1000))
	}
	if e := EvidenceOfTests(w, json.RawMessage(long)); e.size() > evidenceBytes {
		t.Errorf("the evidence has %d bytes, of at most %d", e.size(), evidenceBytes)
	}
}

func TestUntested(t *testing.T) {
	for _, c := range []struct {
		tools []Ran
		want  bool
	}{
		{nil, true},
		{[]Ran{{Outcome: Unknown, Tests: &Counts{}, Reason: noTestRan + " (exit code 0)"}}, true},
		{[]Ran{{Outcome: Unknown, Tests: &Counts{}, Reason: "it was killed"}}, false},
		{[]Ran{{Outcome: Unknown, Reason: "it is not installed"}}, false},
	} {
		if got := (&Evidence{Outcome: Unknown, Tools: c.tools}).Untested(); got != c.want {
			t.Errorf("%+v: untested is %v, want %v", c.tools, got, c.want)
		}
	}
}
