package formats

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that would have a part of an output, or something else, taken for a clean report.
var faults = []mutants.Mutant{
	{"a tool that stopped counts", "read.go", "all.Stopped || r.Stopped", "all.Stopped && r.Stopped", "TestStopped"},
	{"what a tool could not read is passed over", "read.go", "append(all.Missed, r.Missed...)", "all.Missed", "TestMissed"},
	{"a test that is to do passes", "xml.go", "checks.TestSkipped, strings.TrimSuffix(", "checks.TestPassed, strings.TrimSuffix(", "TestToDo"},
	{"a test that asserts nothing passes", "xml.go", "checks.TestSkipped, strings.TrimSpace(bad[0].Text)", "checks.TestPassed, strings.TrimSpace(bad[0].Text)", "TestRisky"},
	{"a line that says nothing known is passed over", "declared.go", "		r.Ignored++\n	}\n	return r\n", "	}\n	return r\n", "TestRecordings"},
	{"a text needs no end", "declared.go", "Complete: c.end == nil, ", "Complete: true, ", "TestCutOff|TestRecordings"},
	{"a document needs no member", "declared.go", "if m, ok := doc.(map[string]any); !ok || !has(m, c.Require) {", "if false {", "TestForeign"},
	{"a package that has not ended counts", "gotest.go", "len(g.running)+len(g.unbuilt) == 0", "len(g.unbuilt) == 0", "TestCutOff|TestGoTest"},
	{"a plan need not be fulfilled", "tap.go", "seen == planned &&", "seen <= planned &&", "TestCutOff"},
	{"a build need not finish", "diagnostics.go", "r := checks.Report{Files: -1}\n\tmessages", "r := checks.Report{Files: -1, Complete: true}\n\tmessages", "TestCutOff"},
	{"a part of a run needs no sum", "testruns.go", "sums == begun", "sums <= begun", "TestCutOff"},
	{"half a sum of zig is one", "zig.go", "m != nil && whole &&", "m != nil && (whole || true) &&", "TestCutOff"},
	{"a test of zig that fails without a name has passed", "zig.go", "add(checks.TestFailed, failed-named)", "", "TestNoReaderGuessesSuccess"},
	{"a run that did not succeed is clean", "sarif.go", "i.ExecutionSuccessful != nil && !*i.ExecutionSuccessful {", "false {", "TestRecordings"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
