package checking

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
)

// Where a tool checks more than was asked for, findings elsewhere do not count, but a strange end does.
func TestFindingsElsewhere(t *testing.T) {
	j := tools.Job{Narrowed: true, Asked: []string{"a.go"}}
	for _, c := range []struct {
		exit   int
		want   checks.Outcome
		reason string
	}{
		{1, checks.Passed, "1 findings in other files"},
		{0, checks.Passed, "1 findings in other files"},
		{3, checks.Unknown, "exit code 3"},
	} {
		var check checks.Check
		ended := checks.Ended{Exit: c.exit, Report: checks.Report{Complete: true, Files: -1, Findings: []checks.Finding{{File: "b.go", Severity: checks.High}}}}
		new(Checker).settle(&check, j, ended)
		if check.Outcome != c.want || !strings.Contains(check.Reason, c.reason) {
			t.Errorf("exit code %d: %s, %s", c.exit, check.Outcome, check.Reason)
		}
	}
}
