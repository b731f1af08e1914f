package formats

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/checks"
)

// Outputs that a reader could take for a clean and complete report, and must not.
func TestNoReaderGuessesSuccess(t *testing.T) {
	const clean = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"x"}},"results":[]}]}`
	for _, c := range []struct{ what, format, output string }{
		{"two documents of which the second has findings", "eslint", "[]\n" + `[{"filePath":"a.js","messages":[{"line":1,"message":"m","severity":2}]}]`},
		{"a second document that ends early", "eslint", "[]\n" + `[{"filePath":"a.js","mess`},
		{"two documents on a line", "sarif", clean + clean},
		{"no version", "sarif", `{"runs":[]}`},
		{"another version", "sarif", `{"version":"1.0.0","runs":[{"tool":{"name":"x"},"results":[]}]}`},
		{"no run", "sarif", `{"version":"2.1.0","runs":[]}`},
		{"a run that was no scan", "sarif", `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"x"}}}]}`},
		{"a run that failed, with a result that is none", "sarif", `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"x"}},"invocations":[{"executionSuccessful":false}],
			"results":[{"kind":"pass","message":{"text":"m"}}]}]}`},
		{"two documents", "checkstyle", "<checkstyle></checkstyle>\n<checkstyle><file name='a'><error line='1' message='m'/></file></checkstyle>"},
		{"failures that no case shows", "junit", `<testsuite tests="2" failures="1"><testcase name="a"/><testcase name="b"/></testsuite>`},
		{"errors of the root that no case shows", "junit", `<testsuites errors="1"><testsuite><testcase name="a"/></testsuite></testsuites>`},
		{"tests that are not there", "junit", `<testsuite tests="2"></testsuite>`},
		{"a test that fails after its subtests", "tap", "TAP version 14\n# Subtest: a\n    ok 1 - b\n    1..1\nnot ok 1 - a\n1..1\n"},
		{"a test of node that fails after its subtests", "tap", "TAP version 13\n# Subtest: a\n    # Subtest: b\n    ok 1 - b\n    1..1\nnot ok 1 - a\n1..1\n"},
		{"a test without a name that fails", "zig-test", "Build Summary: 3/3 steps succeeded; 1/2 tests passed (1 crashed)\n"},
		{"a subtest with fewer results than planned", "tap", "TAP version 14\n# Subtest: a\n    ok 1 - b\n    1..3\nok 1 - a\n1..1\n"},
	} {
		r, err := Read(c.format, []byte(c.output), Options{Root: "/p"})
		failed := slices.ContainsFunc(r.Tests, func(t checks.Test) bool { return t.Outcome == checks.TestFailed })
		if err == nil && r.Complete && r.Ignored == 0 && len(r.Broken) == 0 && len(r.Findings) == 0 && !failed {
			t.Errorf("%s: %s: read as clean and complete: %+v", c.format, c.what, r)
		}
	}
}

// An error that keeps a tool from checking the rest is more than a finding: what it did not find elsewhere proves nothing.
func TestStopped(t *testing.T) {
	rust := func(code string) string {
		return `{"reason":"compiler-message","message":{"message":"bad","level":"error","code":{"code":"` + code +
			`"},"spans":[{"file_name":"a.rs","line_start":1,"is_primary":true}]}}` + "\n"
	}
	for _, c := range []struct {
		format, output string
		want           bool
	}{
		{"mypy", "a.py:1:1: error: invalid syntax  [syntax]\nFound 1 error in 1 file (errors prevented further checking)\n", true},
		{"mypy", "a.py:1:1: error: bad  [misc]\nFound 1 error in 1 file (checked 2 source files)\n", false},
		{"go-vet", "# a\nvet: ./a.go:3:2: undefined: x\n", true},
		{"go-vet", "# a\na/a.go:3:2: declared and not used: x\n", true},
		{"go-vet", "./a.go:3:2: self-assignment of x to x\n", false},
		{"go-vet", "# a\n# [a]\n./a.go:3:2: self-assignment of x to x\n", false},
		{"staticcheck", `{"code":"compile","location":{"file":"/p/a.go","line":3},"message":"undefined: x"}`, true},
		{"staticcheck", `{"code":"SA4006","location":{"file":"/p/a.go","line":3},"message":"never used"}`, false},
		{"cargo-json", rust("E0308") + `{"reason":"build-finished","success":false}`, true},
		{"cargo-json", rust("clippy::eq_op") + `{"reason":"build-finished","success":false}`, false},
	} {
		if r, err := ReadAll(c.format, [][]byte{[]byte(c.output)}, Options{Root: "/p"}); err != nil || r.Stopped != c.want || !r.Complete || r.Ignored > 0 {
			t.Errorf("%s: %s\n%+v, %v", c.format, c.output, r, err)
		}
	}
}

// What a tool could not read is named, also in one of several documents.
func TestMissed(t *testing.T) {
	r, err := ReadAll("bandit", [][]byte{[]byte(`{"results": []}`), []byte(`{"results": [], "errors": [{"filename": "a.py", "reason": "syntax error"}]}`)}, Options{Root: "/p"})
	if err != nil || !slices.Equal(r.Missed, []string{"a.py: syntax error"}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// A test that PHPUnit calls risky fails no run, and is no success.
func TestRisky(t *testing.T) {
	const one = `<testsuites><testsuite name="u" tests="1" errors="1"><testcase name="testNone" classname="T"><error type="PHPUnit\Framework\%s">T::testNone
This test did not perform any assertions</error></testcase></testsuite></testsuites>`
	for kind, want := range map[string]checks.TestOutcome{"RiskyTestError": checks.TestSkipped, "Error\\Warning": checks.TestFailed} {
		r, err := Read("junit", fmt.Appendf(nil, one, kind), Options{})
		if err != nil || !r.Complete || len(r.Tests) != 1 || r.Tests[0].Outcome != want || !strings.Contains(r.Tests[0].Message, "testNone") {
			t.Errorf("%s: %+v, %v", kind, r, err)
		}
	}
}

// A test whose program is missing fails for ctest.
func TestMissingProgram(t *testing.T) {
	const out = `<testsuite name="Linux-c++" tests="1" failures="0" skipped="1"><testcase name="gone" classname="gone" time="0" status="notrun"><skipped message="Unable to find executable"/>` +
		`<system-out>Unable to find executable: nowhere</system-out></testcase></testsuite>`
	r, err := Read("junit", []byte(out), Options{})
	if err != nil || !r.Complete || len(r.Tests) != 1 || r.Tests[0].Outcome != checks.TestFailed || r.Tests[0].Message != "Unable to find executable: nowhere" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A test that is to do fails no run of node.
func TestToDo(t *testing.T) {
	const out = `<testsuites><testcase name="a" classname="test"/><testcase name="b" classname="test" failure="x"><skipped type="todo" message="later"/><failure type="testCodeFailure" message="x">x</failure></testcase></testsuites>`
	r, err := Read("junit", []byte(out), Options{})
	if err != nil || !r.Complete || len(r.Tests) != 2 || r.Tests[1].Outcome != checks.TestSkipped || r.Tests[1].Message != "todo: later" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A backtrace of RSpec has the lines that it shows itself.
func TestOwnFrames(t *testing.T) {
	const gem, own, program = "/x/gems/rspec-core-3.12.0/lib/rspec/core/example.rb:263:in `run'", "/p/spec/a_spec.rb:12:in `block'", "/usr/bin/rspec:4:in `<main>'"
	if got := ownFrames([]string{gem, own, program}); !slices.Equal(got, []string{own}) {
		t.Errorf("%q", got)
	}
	if got := ownFrames([]string{gem, program}); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// Programs that start a tool print lines of their own around its document.
func TestTextAroundADocumentIsSkipped(t *testing.T) {
	const document = `[{"filePath":"/p/a.js","messages":[{"line":1,"message":"m","severity":2}]}]`
	for _, output := range []string{
		"\n> lint\n> eslint -f json\n\n" + document + "\nnpm error code 1\n",
		"[INFO] Scanning\n[ERROR] {no document}\n" + document + "\n[INFO] done\n",
		document + "\n\n{done}\n",
	} {
		r, err := Read("eslint", []byte(output), Options{Root: "/p"})
		if err != nil || len(r.Findings) != 1 || r.Findings[0].File != "a.js" {
			t.Errorf("%q: %+v, %v", output, r, err)
		}
	}
}

// A leaf that node announces as a subtest is a test; a sum of subtests is none.
func TestLeavesOfTAPAreTests(t *testing.T) {
	r, err := Read("tap", []byte("TAP version 13\n# Subtest: a\n    # Subtest: b\n    ok 1 - b\n    # Subtest: c\n    not ok 2 - c\n    1..2\nnot ok 1 - a\n# Subtest: d\nok 2 - d\n1..2\n"), Options{})
	var names []string
	for _, t := range r.Tests {
		names = append(names, t.Suite+"/"+t.Name+" "+string(t.Outcome))
	}
	if err != nil || !r.Complete || !slices.Equal(names, []string{"a/b passed", "a/c failed", "/d passed"}) {
		t.Errorf("%q %+v, %v", names, r, err)
	}
}

// A rule of an extension is not the rule of the driver that has its index.
func TestRulesOfSARIFExtensions(t *testing.T) {
	r, err := Read("sarif", []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"x","rules":[{"id":"own","defaultConfiguration":{"level":"note"}}]}},
		"results":[{"ruleId":"other","ruleIndex":0,"message":{"text":"m"}}]}]}`), Options{})
	if err != nil || len(r.Findings) != 1 || r.Findings[0].Rule != "other" || r.Findings[0].Severity != checks.Medium {
		t.Errorf("%+v, %v", r, err)
	}
}

// Formats of lines without a last one, in which silence proves nothing.
func TestEnds(t *testing.T) {
	var endless []string
	for _, name := range Names() {
		if !Ends(name) {
			endless = append(endless, name)
		}
	}
	want := "dart-machine dune-format flake8 gcc go-vet gofmt javac mix-format msbuild nixfmt prettier rdjsonl rustfmt shellcheck-gcc shfmt staticcheck statix tsc unformatted yamllint"
	if got := strings.Join(endless, " "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// A document has names of files as they are: a space at an end is part of one.
func TestNamesWithSpaces(t *testing.T) {
	r, err := Read("shellcheck", []byte(`{"comments":[{"file":" l.sh ","line":1,"endLine":1,"column":1,"endColumn":2,"level":"info","code":2086,"message":"m"}]}`), Options{Root: "/p"})
	if err != nil || len(r.Findings) != 1 || r.Findings[0].File != " l.sh " {
		t.Errorf("%+v, %v", r, err)
	}
}
