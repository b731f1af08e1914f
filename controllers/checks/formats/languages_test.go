package formats

import (
	"fmt"
	"testing"
)

// What the tools of further languages print: the findings as FILE:LINE:COLUMN SEVERITY RULE MESSAGE, and whether the output is complete.
func TestReadLanguages(t *testing.T) {
	for _, c := range []struct{ format, output, want string }{
		{"unformatted", "main.tf\nmodules/a/b.tf\n", "main.tf:0:0 low  it is not formatted;modules/a/b.tf:0:0 low  it is not formatted;true 0"},
		{"unformatted", "a.zig:3:5: error: expected ';' after statement\n", "a.zig:3:5 high  expected ';' after statement;true 0"},
		{"ty", "a.py:1:10: error[invalid-assignment] Object is not assignable\nFound 1 diagnostic\n", "a.py:1:10 high invalid-assignment Object is not assignable;true 0"},
		{"ty", "a.py:1:10: error[invalid-assignment] Object is not assignable\n", "a.py:1:10 high invalid-assignment Object is not assignable;false 0"},
		{"ty", "All checks passed!\n", "true 0"},
		{"msbuild", "/w/Program.cs(3,9): warning CS0219: The variable 'x' is assigned [/w/a.csproj]\n", "/w/Program.cs:3:9 medium CS0219 The variable 'x' is assigned;true 0"},
		{"msbuild", "MSBUILD : error MSB1003: Specify a project file.\n", ":0:0 high MSB1003 Specify a project file.;true 0"},
		{"mix-format", "** (Mix) mix format failed due to --check-formatted.\nThe following files are not formatted:\n\n  * lib/a.ex\n", "lib/a.ex:0:0 low  it is not formatted;true 0"},
		{"mix-format", "** (SyntaxError) lib/a.ex:2:3: unexpected token\n", "lib/a.ex:2:3 high SyntaxError unexpected token;true 0"},
		{"dune-format", "File \"bin/main.ml\", line 1, characters 0-0:\n", "bin/main.ml:1:0 low  it is not formatted;true 0"},
		{"dart-machine", "ERROR|COMPILE_TIME_ERROR|UNDEFINED_IDENTIFIER|/w/a.dart|2|3|4|Undefined name 'x'.\n", "/w/a.dart:2:3 high UNDEFINED_IDENTIFIER Undefined name 'x'.;true 0"},
		{"dart-format", "Changed lib/a.dart\nFormatted 2 files (1 changed) in 0.1 seconds.\n", "lib/a.dart:0:0 low  it is not formatted;true 0"},
		{"statix", "flake.nix>46:13:W:3:This assignment is better written with inherit\n", "flake.nix:46:13 medium 3 This assignment is better written with inherit;true 0"},
		{"nixfmt", "a.nix: not formatted\n", "a.nix:0:0 low  it is not formatted;true 0"},
		{"svelte-check", "1 START \"/w\"\n2 ERROR \"App.svelte\" 1:16 \"Cannot find module\"\n3 COMPLETED 5 FILES 1 ERRORS 0 WARNINGS 1 FILES_WITH_PROBLEMS\n",
			"App.svelte:1:16 high  Cannot find module;true 0"},
	} {
		r, err := Read(c.format, []byte(c.output), Options{})
		got := ""
		for _, f := range r.Findings {
			got += fmt.Sprintf("%s:%d:%d %s %s %s;", f.File, f.Line, f.Column, f.Severity, f.Rule, f.Message)
		}
		if got += fmt.Sprint(r.Complete, r.Ignored); err != nil || got != c.want {
			t.Errorf("%s %q:\ngot  %s %v\nwant %s", c.format, c.output, got, err, c.want)
		}
	}
}

// What test frameworks print that cannot be installed here, as their documentation shows it: nexte.st "Reporting test results", dart-lang/test
// "json_reporter.md", and the schema of TeamTest 2010. Cut off anywhere it is no whole run.
func TestReadFrameworks(t *testing.T) {
	const trx = `<?xml version="1.0" encoding="utf-8"?>
<TestRun id="1" xmlns="http://microsoft.com/schemas/VisualStudio/TeamTest/2010">
  <Results>
    <UnitTestResult testId="a" testName="N.SumTests.Adds" outcome="Failed" duration="00:00:01.5000000"><Output><ErrorInfo>
      <Message>Assert.Equal() Failure
Expected: 4
Actual:   3</Message><StackTrace>   at N.SumTests.Adds() in /p/SumTests.cs:line 9</StackTrace></ErrorInfo></Output></UnitTestResult>
    <UnitTestResult testId="b" testName="N.SumTests.Later" outcome="NotExecuted" />
    <UnitTestResult testId="c" testName="N.SumTests.Of(n: 1)" outcome="Passed" />
  </Results>
  <TestDefinitions>
    <UnitTest name="x" id="a"><TestMethod className="N.SumTests" name="Adds" /></UnitTest>
    <UnitTest name="x" id="b"><TestMethod className="N.SumTests" name="Later" /></UnitTest>
    <UnitTest name="x" id="c"><TestMethod className="N.SumTests" name="Of" /></UnitTest>
  </TestDefinitions>
  <ResultSummary outcome="Failed"><Counters total="3" executed="2" passed="1" failed="1" /></ResultSummary>
</TestRun>
`
	const dart = `{"protocolVersion":"0.1.1","runnerVersion":"1.25.0","pid":1,"type":"start","time":0}
{"suite":{"id":0,"platform":"vm","path":"test/sum_test.dart"},"type":"suite","time":0}
{"test":{"id":1,"name":"loading test/sum_test.dart","suiteID":0,"groupIDs":[],"metadata":{"skip":false,"skipReason":null},"line":null,"column":null,"url":null},"type":"testStart","time":1}
{"testID":1,"result":"success","skipped":false,"hidden":true,"type":"testDone","time":900}
{"test":{"id":3,"name":"adds","suiteID":0,"groupIDs":[2],"metadata":{"skip":false,"skipReason":null},"line":5,"column":3,"url":"file:///p/test/sum_test.dart"},"type":"testStart","time":901}
{"testID":3,"error":"Expected: <4>\n  Actual: <3>\n","stackTrace":"test/sum_test.dart 6:5","isFailure":true,"type":"error","time":930}
{"testID":3,"result":"failure","skipped":false,"hidden":false,"type":"testDone","time":931}
{"test":{"id":4,"name":"later","suiteID":0,"groupIDs":[2],"metadata":{"skip":true,"skipReason":"no time"},"line":9,"column":3,"url":"file:///p/test/sum_test.dart"},"type":"testStart","time":932}
{"testID":4,"result":"success","skipped":true,"hidden":false,"type":"testDone","time":933}
{"test":{"id":5,"name":"good","suiteID":0,"groupIDs":[2],"metadata":{"skip":false,"skipReason":null},"line":12,"column":3,"url":"file:///p/test/sum_test.dart"},"type":"testStart","time":934}
{"testID":5,"result":"success","skipped":false,"hidden":false,"type":"testDone","time":935}
{"success":false,"type":"done","time":940}
`
	const nextest = `    Finished test [unoptimized + debuginfo] target(s) in 0.02s
    Starting 3 tests across 1 binary
        PASS [   0.004s] sum tests::good
        SKIP [         ] sum tests::later
        FAIL [   0.005s] sum tests::adds

--- STDOUT:              sum tests::adds ---

running 1 test
test tests::adds ... FAILED

--- STDERR:              sum tests::adds ---
thread 'tests::adds' panicked at src/lib.rs:9:5:
assertion ` + "`left == right`" + ` failed
  left: 3
 right: 4

------------
     Summary [   0.006s] 2 tests run: 1 passed, 1 failed, 1 skipped
        FAIL [   0.005s] sum tests::adds
error: test run failed
`
	for _, c := range []struct{ format, output, want string }{
		{"trx", trx, "failed N.SumTests/Adds SumTests.cs:9 4 3;skipped N.SumTests/Later :0  ;passed N.SumTests/Of(n: 1) :0  ;"},
		{"dart-test", dart, "failed /adds test/sum_test.dart:5 <4> <3>;skipped /later test/sum_test.dart:9  ;passed /good test/sum_test.dart:12  ;"},
		{"nextest", nextest, "passed sum/tests::good :0  ;skipped sum/tests::later :0  ;failed sum/tests::adds src/lib.rs:9 4 3;"},
	} {
		r, err := Read(c.format, []byte(c.output), Options{Root: "/p"})
		got := ""
		for _, t := range r.Tests {
			got += fmt.Sprintf("%s %s/%s %s:%d %s %s;", t.Outcome, t.Suite, t.Name, t.File, t.Line, t.Expected, t.Actual)
		}
		if err != nil || !r.Complete || r.Ignored > 0 || got != c.want {
			t.Errorf("%s: complete %v, %d ignored, %v:\ngot  %s\nwant %s", c.format, r.Complete, r.Ignored, err, got, c.want)
		}
		for n := range len(c.output) {
			if r, err := Read(c.format, []byte(c.output[:n]), Options{Root: "/p"}); err == nil && r.Complete && len(r.Tests) < 3 {
				t.Errorf("%s is complete after %d bytes, with %d tests", c.format, n, len(r.Tests))
				break
			}
		}
	}
}

// A run of several suites is as good as the worst of its reports, and none without a report.
func TestReadAll(t *testing.T) {
	good, torn := []byte(`<testsuite tests="1"><testcase name="a"/></testsuite>`), []byte(`<testsuite tests="2" failures="1"><testcase name="b"/></testsuite>`)
	for _, c := range []struct {
		documents [][]byte
		want      string
	}{
		{[][]byte{good, good}, "2 true <nil>"}, {[][]byte{good, torn}, "2 false <nil>"}, {nil, "0 false it wrote no report"},
		{[][]byte{good, {}}, "0 false it is empty"},
	} {
		r, err := ReadAll("junit", c.documents, Options{})
		if got := fmt.Sprint(len(r.Tests), " ", r.Complete, " ", err); got != c.want {
			t.Errorf("%q: %s, want %s", c.documents, got, c.want)
		}
	}
}
