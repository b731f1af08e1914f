package checks

import (
	"strings"
	"testing"
	"time"
)

var (
	aFinding = []Finding{{File: "a.go", Severity: High, Message: "bad"}}
	aNote    = []Finding{{File: "a.go", Severity: Info, Message: "look"}}
)

func TestJudge(t *testing.T) {
	complete := func(r Report) Report { r.Complete = true; return r }
	for _, c := range []struct {
		name string
		x    Expected
		e    Ended
		want Outcome
		why  string
	}{
		{"clean", Expected{}, Ended{Report: complete(Report{Files: 3})}, Passed, ""},
		{"clean, number of files unknown", Expected{}, Ended{Report: complete(Report{Files: -1})}, Passed, ""},
		{"finding", Expected{}, Ended{Exit: 1, Report: complete(Report{Findings: aFinding})}, Failed, ""},
		{"finding with a clean exit code", Expected{}, Ended{Report: complete(Report{Findings: aFinding})}, Failed, ""},
		{"only a note", Expected{}, Ended{Exit: 1, Report: complete(Report{Findings: aNote})}, Passed, ""},
		{"note that counts", Expected{FailOn: Info}, Ended{Exit: 1, Report: complete(Report{Findings: aNote})}, Failed, ""},
		{"not installed", Expected{}, Ended{NotStarted: "eslint is not installed"}, Unknown, "not installed"},
		{"hangs", Expected{Timeout: time.Minute}, Ended{TimedOut: true, Report: complete(Report{Files: 1})}, Unknown, "within 1m0s"},
		{"hangs after a finding", Expected{Timeout: time.Minute}, Ended{TimedOut: true, Report: complete(Report{Findings: aFinding})}, Unknown, "within"},
		{"crash", Expected{}, Ended{Signal: "SIGSEGV"}, Unknown, "SIGSEGV"},
		{"strange exit code", Expected{}, Ended{Exit: 2, LastLine: "no such flag", Report: complete(Report{Files: 3})}, Unknown, "no such flag"},
		{"findings and a strange exit code", Expected{}, Ended{Exit: 2, Report: complete(Report{Findings: aFinding})}, Failed, "exit code 2"},
		{"a finding before the output was cut off", Expected{}, Ended{Exit: 1, Report: Report{Findings: aFinding}}, Failed, "ends early"},
		{"garbage", Expected{Format: "sarif"}, Ended{Unreadable: "it is no JSON", Report: complete(Report{})}, Unknown, "not sarif"},
		{"cut off", Expected{}, Ended{Report: Report{Files: 3}}, Unknown, "ends early"},
		{"too large", Expected{}, Ended{Truncated: true, Report: complete(Report{Files: 3})}, Unknown, "larger"},
		{"not understood", Expected{}, Ended{Report: complete(Report{Files: 3, Ignored: 1})}, Unknown, "1 part of its output could not be understood"},
		{"exit code of findings without one", Expected{}, Ended{Exit: 1, Report: complete(Report{Files: 3})}, Unknown, "without a finding"},
		{"could not read a file", Expected{}, Ended{Report: complete(Report{Missed: []string{"a.py: syntax error"}})}, Unknown, "it could not read a.py: syntax error"},
		{"stopped at an error", Expected{}, Ended{Exit: 1, Report: complete(Report{Findings: aNote, Stopped: true})}, Unknown, "from checking the rest"},
		{"finding in a library", Expected{}, Ended{Exit: 1, Report: complete(Report{Findings: []Finding{{File: "/usr/lib/a.py", Severity: High}}})}, Unknown, "outside of the project"},
		{"finding in the project and in a library", Expected{}, Ended{Exit: 1, Report: complete(Report{Findings: append([]Finding{{File: "C:/lib/a.py", Severity: High}}, aFinding...)})}, Failed, ""},
		{"no file", Expected{}, Ended{Report: complete(Report{})}, Unknown, "no file"},
		{"own codes", Expected{Clean: []int{3}, Found: []int{4}}, Ended{Exit: 3, Report: complete(Report{Files: 1})}, Passed, ""},
		{"own codes, zero", Expected{Clean: []int{3}, Found: []int{4}}, Ended{Report: complete(Report{Files: 1})}, Unknown, "exit code 0"},

		{"tests pass", Expected{Tests: true}, Ended{Report: complete(Report{Tests: []Test{{Outcome: TestPassed}}})}, Passed, ""},
		{"a test fails", Expected{Tests: true}, Ended{Exit: 1, Report: complete(Report{Tests: []Test{{Outcome: TestPassed}, {Outcome: TestFailed}}})}, Failed, ""},
		{"a test fails, exit code 0", Expected{Tests: true}, Ended{Report: complete(Report{Tests: []Test{{Outcome: TestFailed}}})}, Failed, ""},
		{"no test", Expected{Tests: true}, Ended{Report: complete(Report{})}, Unknown, "no test ran"},
		{"all skipped", Expected{Tests: true}, Ended{Report: complete(Report{Tests: []Test{{Outcome: TestSkipped}}})}, Unknown, "1 skipped"},
		{"does not build", Expected{Tests: true}, Ended{Exit: 1, Report: complete(Report{Broken: []string{"example.org/a"}})}, Failed, "example.org/a"},
		{"one does not build, another fails", Expected{Tests: true}, Ended{Exit: 1, Report: complete(Report{Broken: []string{"example.org/a"}, Tests: []Test{{Outcome: TestFailed}}})}, Failed, "example.org/a"},
		{"a test fails, and the run is killed", Expected{Tests: true}, Ended{Exit: 7, Report: complete(Report{Tests: []Test{{Outcome: TestFailed}}})}, Failed, "exit code 7"},
		{"a test fails before the output is cut off", Expected{Tests: true}, Ended{Exit: 1, Report: Report{Tests: []Test{{Outcome: TestFailed}}}}, Failed, "ends early"},
		{"fails without a failed test", Expected{Tests: true}, Ended{Exit: 1, Report: complete(Report{Tests: []Test{{Outcome: TestPassed}}})}, Unknown, "without a failed test"},
		{"tests cut off", Expected{Tests: true}, Ended{Report: Report{Tests: []Test{{Outcome: TestPassed}}}}, Unknown, "ends early"},
	} {
		got, why := Judge(c.x, c.e)
		if got != c.want || !strings.Contains(why, c.why) || (c.why == "") != (why == "") {
			t.Errorf("%s: %s %q, want %s %q", c.name, got, why, c.want, c.why)
		}
	}
}

// Nothing passes that did not start, end, and speak as expected, whatever else is known.
func TestDoubtNeverPasses(t *testing.T) {
	good := Ended{Report: Report{Complete: true, Files: 2, Tests: []Test{{Outcome: TestPassed}}}}
	spoil := []func(*Ended){
		func(e *Ended) { e.NotStarted = "missing" },
		func(e *Ended) { e.TimedOut = true },
		func(e *Ended) { e.Signal = "SIGKILL" },
		func(e *Ended) { e.Exit = 7 },
		func(e *Ended) { e.Exit = 1 },
		func(e *Ended) { e.Truncated = true },
		func(e *Ended) { e.Unreadable = "text" },
		func(e *Ended) { e.Report.Complete = false },
		func(e *Ended) { e.Report.Ignored = 1 },
		func(e *Ended) { e.Report.Stopped = true },
		func(e *Ended) { e.Report.Missed = []string{"a"} },
		func(e *Ended) { e.Report.Silent = []string{"a"} },
		func(e *Ended) { e.Report.Files, e.Report.Tests = 0, nil },
	}
	for _, tests := range []bool{false, true} {
		if got, why := Judge(Expected{Tests: tests}, good); got != Passed {
			t.Fatalf("the good end is %s: %s", got, why)
		}
		for set := 1; set < 1<<len(spoil); set++ {
			e := good
			for i, f := range spoil {
				if set&(1<<i) != 0 {
					f(&e)
				}
			}
			if got, _ := Judge(Expected{Tests: tests}, e); got == Passed {
				t.Errorf("tests %v, spoiled by %b: passed", tests, set)
			}
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		checks  []Check
		allowed []string
		want    Outcome
	}{
		{nil, nil, Unknown},
		{[]Check{{Outcome: Passed}}, nil, Passed},
		{[]Check{{Outcome: Passed}, {Tool: "mypy", Outcome: Unknown}}, nil, Unknown},
		{[]Check{{Outcome: Passed}, {Tool: "mypy", Outcome: Unknown}}, []string{"mypy"}, Passed},
		{[]Check{{Tool: "mypy", Outcome: Unknown}}, []string{"mypy"}, Unknown},
		{[]Check{{Outcome: Unknown}, {Outcome: Failed}}, nil, Failed},
	} {
		if got := Verdict(c.checks, c.allowed); got != c.want {
			t.Errorf("%v: %s, want %s", c.checks, got, c.want)
		}
	}
}

func TestIdentify(t *testing.T) {
	one := []Finding{{Tool: "x", File: "a", Message: "m", Range: Range{Line: 9}}, {Tool: "x", File: "a", Message: "m", Range: Range{Line: 3}}}
	Identify(one)
	moved := []Finding{{Tool: "x", File: "a", Message: "m", Range: Range{Line: 4}}, {Tool: "x", File: "a", Message: "m", Range: Range{Line: 11}}}
	Identify(moved)
	if one[0].Line != 3 || one[0].ID == one[1].ID || one[0].ID != moved[0].ID || one[1].ID != moved[1].ID {
		t.Errorf("%+v %+v", one, moved)
	}
}

// While files of the project change nothing passes, and what people accept of a failed check does not make it pass.
func TestDisturb(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	ran := []Span{{at(1), at(3)}, {at(2), at(6)}, {at(7), at(9)}, {at(1), at(9)}}
	checks := func() []Check {
		return []Check{{Tool: "ruff", Outcome: Passed}, {Tool: "mypy", Outcome: Failed}, {Tool: "pytest", Outcome: Passed, Reason: "1 findings in other files"},
			{Tool: "black", Outcome: Unknown, Reason: "black is not installed"}}
	}
	for _, c := range []struct {
		altered []Altered
		why     string
	}{
		{[]Altered{{"a.py", at(5)}}, "a.py changed while mypy, black ran; "},
		{[]Altered{{"a.py", at(3)}, {"b.py", at(2)}}, "a.py, b.py changed while ruff, mypy, black ran; "},
		{[]Altered{{"a.py", at(7).Add(-ClockTick)}}, "a.py changed while pytest, black ran; "},
		{[]Altered{{"a.py", at(7).Add(-2 * ClockTick)}}, "a.py changed while black ran; "},
		{[]Altered{{"a", time.Time{}}, {"b", time.Time{}}, {"c", at(20)}, {"d", at(20)}}, "a, b, c and 1 more changed while the checks ran; "},
	} {
		got := checks()
		Disturb(got, ran, c.altered)
		for i, outcome := range []Outcome{Unknown, Failed, Unknown, Unknown} {
			if got[i].Outcome != outcome || i < 3 && !strings.HasPrefix(got[i].Reason, c.why) {
				t.Errorf("%v: %s is %s: %s", c.altered, got[i].Tool, got[i].Outcome, got[i].Reason)
			}
		}
		if got[3].Reason != "black is not installed" {
			t.Error(got[3].Reason)
		}
	}
	got := checks()
	if Disturb(got, ran, nil); got[0].Outcome != Passed || got[1].Reason != "" {
		t.Error("without a change:", got)
	}
}
