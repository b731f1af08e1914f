package checks

import "testing"

func TestApply(t *testing.T) {
	fresh := func() []Check {
		c := []Check{
			{Tool: "lint", Category: Linter, Outcome: Failed, Findings: []Finding{{File: "a", Message: "x", Severity: High, Tool: "lint"}, {File: "b", Message: "y", Severity: Info, Tool: "lint"}}},
			{Tool: "go test", Category: TestFramework, Outcome: Failed, Tests: []Test{{Name: "A", Suite: "p", Outcome: TestFailed}, {Name: "B", Suite: "p", Outcome: TestPassed}}},
			{Tool: "broken", Outcome: Unknown, Reason: "not installed"},
		}
		Identify(c[0].Findings)
		return c
	}
	ids := fresh()
	accept := func(digest string) []Override {
		return []Override{
			{Action: "one", Finding: ids[0].Findings[0].ID, Digest: digest, Covers: []string{"a"}, Reason: "r"},
			{Action: "two", Test: "A", Suite: "p", Digest: digest, Reason: "r"},
			{Action: "three", Test: "A", Suite: "other", Digest: digest},
			{Action: "four", Finding: "none", Digest: digest},
		}
	}
	digest := func([]string) (string, error) { return "now", nil }
	checks := fresh()
	used, err := Apply(checks, accept("now"), "", digest)
	if err != nil || len(used) != 2 || used[0].Void != "" {
		t.Fatalf("%+v, %v", used, err)
	}
	if checks[0].Outcome != Passed || len(checks[0].Findings) != 1 || checks[1].Outcome != Passed || checks[2].Outcome != Unknown {
		t.Errorf("%+v", checks)
	}
	checks = fresh()
	if used, _ = Apply(checks, accept("before"), "", digest); len(used) != 2 || used[0].Void == "" || checks[0].Outcome != Failed || checks[1].Outcome != Failed {
		t.Errorf("after a change: %+v, %+v", used, checks)
	}
	checks = fresh()
	checks[0].Findings[1].Severity = Low
	if _, _ = Apply(checks, accept("now"), "", digest); checks[0].Outcome != Failed {
		t.Errorf("another finding is left: %+v", checks[0])
	}
	checks = fresh()
	checks[0].Reason = "its output ends early"
	if _, _ = Apply(checks, accept("now"), "", digest); checks[0].Outcome != Failed {
		t.Errorf("nobody knows the rest: %+v", checks[0])
	}
	checks = fresh()
	checks[1].Tests = checks[1].Tests[:1]
	if _, _ = Apply(checks, accept("now"), "", digest); checks[1].Outcome != Failed {
		t.Errorf("no other test ran: %+v", checks[1])
	}
}
