package checks

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that would have silence taken for success, or blame somebody wrongly.
var faults = []mutants.Mutant{
	{"what a person did not take counts as taken", "evidence.go", "return !slices.Contains(taken, name)", "return !slices.Contains(taken, name) && false", "TestLetsBut"},
	{"what is not on record counts as taken", "evidence.go", "return complete && len(names) > 0", "return len(names) > 0 || complete && false", "TestLetsBut"},
	{"what imports the file of its folder is passed over", "related.go", "if isFront(c) {", "if false {", "TestRelatedTests"},
	{"a tool that fails otherwise is passed over", "evidence.go", "if failed || r.Outcome == Unknown {", "if failed && false || r.Outcome == Unknown {", "TestLetsBut"},
	{"a tool that did not start counts", "judge.go", "case e.NotStarted != \"\":", "case false:", "TestJudge"},
	{"a tool that hangs counts", "judge.go", "case e.TimedOut:", "case false:", "TestJudge"},
	{"a tool that was killed counts", "judge.go", "case e.Signal != \"\":", "case false:", "TestJudge"},
	{"output that nobody can read counts", "judge.go", "case e.Unreadable != \"\":", "case false:", "TestJudge"},
	{"output that was cut off counts", "judge.go", "case e.Truncated:", "case false:", "TestJudge"},
	{"output without its end counts", "judge.go", "case !e.Report.Complete:", "case false:", "TestJudge"},
	{"what could not be read is passed over", "judge.go", "case len(e.Report.Missed) > 0:", "case false:", "TestJudge"},
	{"a file that says nothing of its tests counts", "judge.go", "case len(e.Report.Silent) > 0:", "case false:", "TestDoubtNeverPasses"},
	{"what was not understood is passed over", "judge.go", "case e.Report.Ignored > 0:", "case false:", "TestJudge"},
	{"a tool that stopped at an error counts", "judge.go", "case e.Report.Stopped:", "case false:", "TestJudge"},
	{"an error in a library is passed over", "judge.go", "case bad(true):", "case false:", "TestJudge"},
	{"any exit code is clean", "judge.go", "if !expected {", "if false {", "TestJudge"},
	{"a failure hides that the rest is unknown", "judge.go", "case bad(false):\n\t\treturn Failed, e.rest(clean || found)", "case bad(false):\n\t\treturn Failed, \"\"", "TestJudge"},
	{"a failed test hides that the rest is unknown", "judge.go", "case c.Failed > 0:\n\t\treturn Failed, e.rest(clean || found)", "case c.Failed > 0:\n\t\treturn Failed, \"\"", "TestJudge"},
	{"what was accepted hides that the rest is unknown", "override.go", "c.Outcome != Failed || c.Reason != \"\"", "c.Outcome != Failed", "TestApply"},
	{"an exit code of findings without one is clean", "judge.go", "case found && len(e.Report.Findings) == 0:", "case false:", "TestJudge"},
	{"a tool that read no file is clean", "judge.go", "case e.Report.Files == 0 && len(e.Report.Findings) == 0:", "case false:", "TestJudge"},
	{"a run without tests passes", "judge.go", "case c.Run == 0:\n", "case false:\n", "TestJudge"},
	{"a run that skipped all passes", "judge.go", "c.Run = c.Passed + c.Failed", "c.Run = c.Passed + c.Failed + c.Skipped", "TestJudge"},
	{"what does not build passes", "judge.go", "case len(e.Report.Broken) > 0:", "case false:", "TestJudge"},
	{"any exit code of tests is clean", "judge.go", "case !clean && !found:\n\t\treturn Unknown, e.strangeExit()\n\tcase found:", "case !clean && !found && false:\n\t\treturn Unknown, e.strangeExit()\n\tcase found:", "TestDoubtNeverPasses"},
	{"an exit code of failures without one is clean", "judge.go", "case found:\n\t\treturn Unknown, fmt.Sprintf(\"exit code %d without a failed test%s\", e.Exit, e.said())\n\t}", "}", "TestJudge"},
	{"an own exit code adds to the usual one", "judge.go", "len(x.Clean) == 0 && exit == 0", "exit == 0", "TestJudge"},
	{"no check is a success", "judge.go", "if !passed {", "if !passed && false {", "TestVerdict"},
	{"what is unknown is passed over", "judge.go", "case !slices.Contains(allowed, c.Tool):", "case false:", "TestVerdict"},

	{"a check passes on files that change", "judge.go", "c.Outcome, c.Reason = Unknown, why", "c.Reason = why", "TestDisturb"},
	{"what was accepted hides that files changed", "judge.go", "c.Reason = strings.TrimPrefix(c.Reason+\"; \"+why, \"; \")", "", "TestDisturb"},
	{"a coarse clock hides who was at work", "judge.go", "!a.At.Add(ClockTick).Before(s.From)", "!a.At.Before(s.From)", "TestDisturb"},

	{"a serious finding in no place is passed over", "opinion.go", "lost && c.Outcome == Passed", "false", "TestReviews"},
	{"a test that a tester got wrong sends a change back", "written.go", "t.Blame == NoDifference || ", "", "TestFault"},
	{"tests that break others send a change back", "written.go", "case !w.owns(t) && before.Outcome == Passed:", "case false:", "TestFault"},
	{"a tester that does not answer is believed", "written.go", "c.Outcome, c.Reason = Unknown, err.Error()", "c.Reason = err.Error()", "TestEvidenceOfTests"},
	{"a tool that is missing is no test", "written.go", " || !strings.HasPrefix(r.Reason, noTestRan)", "", "TestUntested"},
	{"a new test of new code is wrong", "blame.go", "mixed.Failed > 0 && e.Same", "mixed.Failed > 0", "TestDiagnose"},
	{"a test that passes at times is not flaky", "blame.go", "case alone.Passed > 0 && alone.Failed > 0:", "case false:", "TestDiagnose"},
	{"a test that was flaky before is not flaky", "blame.go", "case base.Passed > 0 && base.Failed > 0:", "case false:", "TestDiagnose"},
	{"a test that passes alone is to blame", "blame.go", "case alone.Passed > 0:", "case false:", "TestDiagnose"},
	{"a failure from before is new", "blame.go", "case base.Failed > 0:", "case false:", "TestDiagnose"},
	{"a test that never ran alone is judged", "blame.go", "case alone.Failed == 0:", "case false:", "TestDiagnose"},
	{"a changed test is not looked at", "blame.go", "e.CodeChanged && !e.TestChanged:", "e.CodeChanged:", "TestDiagnose"},
	{"changed code is not looked at", "blame.go", "e.TestChanged && !e.CodeChanged:", "e.TestChanged:", "TestDiagnose"},
	{"a new test that passes with the old code is wrong", "blame.go", "case mixed.Passed > 0 && e.CodeChanged:", "case false:", "TestDiagnose"},
	{"a new test of new code is wrong", "blame.go", "case mixed.Failed > 0 && base.Passed > 0:", "case mixed.Failed > 0:", "TestDiagnose"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
