package formats

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/segmentio/encoding/json"

	"reconcile.dev/reconcile/controllers/checks"
)

// readJest reads the JSON of jest, which vitest writes, too (jestjs.io, "--json").
func readJest(data []byte, o Options) (checks.Report, error) {
	var in struct {
		Total   *int `json:"numTotalTests"`
		Results []struct {
			Name    string `json:"name"`
			Status  string `json:"status"`
			Message string `json:"message"`
			Tests   []struct {
				Ancestors []string `json:"ancestorTitles"`
				FullName  string   `json:"fullName"`
				Title     string   `json:"title"`
				Status    string   `json:"status"`
				Duration  float64  `json:"duration"`
				Failures  []string `json:"failureMessages"`
				Location  *struct {
					Line int `json:"line"`
				} `json:"location"`
			} `json:"assertionResults"`
		} `json:"testResults"`
	}
	if err := oneDocument(data, &in); err != nil {
		return checks.Report{}, err
	}
	if in.Total == nil {
		return checks.Report{}, errors.New("it has no numTotalTests")
	}
	r := checks.Report{Files: len(in.Results), Complete: true}
	for _, file := range in.Results {
		name := o.file(file.Name)
		if file.Status == "failed" && len(file.Tests) == 0 {
			r.Broken = append(r.Broken, name)
			r.Findings = append(r.Findings, checks.Finding{File: name, Severity: checks.High, Rule: "load", Message: file.Message})
		}
		for _, t := range file.Tests {
			test := checks.Test{Name: firstOf(t.FullName, t.Title), Suite: strings.Join(t.Ancestors, " > "), File: name, Seconds: t.Duration / 1000, Outcome: checks.TestSkipped}
			if t.Location != nil {
				test.Line = t.Location.Line
			}
			switch t.Status {
			case "passed":
				test.Outcome = checks.TestPassed
			case "failed":
				text := clean(strings.Join(t.Failures, "\n"))
				test.Outcome, test.Stack, test.Message = checks.TestFailed, text, firstLineOf(text)
				test.Expected, test.Actual = expectations(text)
				if file, line := placeIn(name, text, o); line > 0 {
					test.File, test.Line = file, line
				}
			}
			r.Tests = append(r.Tests, test)
		}
	}
	return r, nil
}

// readRSpec reads the JSON of RSpec (rspec.info, "json formatter").
func readRSpec(data []byte, o Options) (checks.Report, error) {
	var in struct {
		Summary *struct {
			Outside int `json:"errors_outside_of_examples_count"`
		} `json:"summary"`
		Messages []string `json:"messages"`
		Examples []struct {
			Full      string  `json:"full_description"`
			Status    string  `json:"status"`
			File      string  `json:"file_path"`
			Line      int     `json:"line_number"`
			Seconds   float64 `json:"run_time"`
			Pending   string  `json:"pending_message"`
			Exception *struct {
				Message   string   `json:"message"`
				Backtrace []string `json:"backtrace"`
			} `json:"exception"`
		} `json:"examples"`
	}
	if err := oneDocument(data, &in); err != nil {
		return checks.Report{}, err
	}
	if in.Summary == nil {
		return checks.Report{}, errors.New("it has no summary")
	}
	r := checks.Report{Files: -1, Complete: true}
	if in.Summary.Outside > 0 {
		r.Broken = append(r.Broken, firstOf(in.Messages...))
	}
	for _, e := range in.Examples {
		t := checks.Test{Name: e.Full, File: o.file(e.File), Line: e.Line, Seconds: e.Seconds}
		switch {
		case e.Status == "pending":
			t.Outcome, t.Message = checks.TestSkipped, e.Pending
		case e.Status == "passed" && e.Exception == nil:
			t.Outcome = checks.TestPassed
		default: // also one whose outcome is not known
			t.Outcome = checks.TestFailed
			if x := e.Exception; x != nil {
				t.Message, t.Stack = x.Message, strings.Join(ownFrames(x.Backtrace), "\n")
				t.Expected, t.Actual = expectations(x.Message)
			}
		}
		r.Tests = append(r.Tests, t)
	}
	return r, nil
}

// ownFrames are the lines of a backtrace that RSpec shows itself: those outside of gems, Ruby and programs; all where there is none.
func ownFrames(trace []string) []string {
	own := slices.DeleteFunc(slices.Clone(trace), func(line string) bool {
		return strings.Contains(line, "/gems/") || strings.Contains(line, "/bin/") || strings.Contains(line, "/lib/ruby/")
	})
	if len(own) == 0 {
		return trace
	}
	return own
}

// textRun is a test run that is printed for people: a line for each test, the output of those that failed, and a sum at the end. Its patterns have
// groups: name, suite, file, line and outcome.
type textRun struct {
	test     *regexp.Regexp // a test
	outcomes map[string]checks.TestOutcome
	other    checks.TestOutcome // of a test whose outcome is none of these
	suite    *regexp.Regexp     // the suite, and perhaps the file, of the tests below; nil: their lines say it
	block    *regexp.Regexp     // begins the output of a failed test
	fails    bool               // that there is such output is all that says that the test failed
	endBlock *regexp.Regexp
	begin    *regexp.Regexp // begins a part of the run, and its group is the number of tests; nil: the run has one part, and its sum says the number
	sum      *regexp.Regexp // ends a part
	tests    *regexp.Regexp // the numbers of tests in a sum, which are added; nil: that of the first group, if there is one
	failures *regexp.Regexp // the numbers of failures in a sum, which are added; nil: it does not say
	broken   *regexp.Regexp
	panics   *regexp.Regexp // comes before the message in the output of a failed test
}

var libtest = sync.OnceValue(func() textRun {
	return textRun{
		test:     regexp.MustCompile(`^test (?P<name>\S+(?: - .*?)?)(?: - should panic)? \.\.\. (?P<outcome>ok|FAILED|ignored)`),
		outcomes: map[string]checks.TestOutcome{"ok": checks.TestPassed, "FAILED": checks.TestFailed, "ignored": checks.TestSkipped},
		block:    regexp.MustCompile(`^---- (?P<name>.+?)(?: stdout| stderr)? ----$`),
		endBlock: regexp.MustCompile(`^(failures:|test result: )`),
		begin:    regexp.MustCompile(`^running (\d+) tests?$`),
		sum:      regexp.MustCompile(`^test result: .* finished in `),
		broken:   regexp.MustCompile("^error: could not compile `([^`]+)`"),
		panics:   regexp.MustCompile(`^thread '.*' .*panicked at `),
	}
})

var unittest = sync.OnceValue(func() textRun {
	return textRun{
		test:     regexp.MustCompile(`^(?P<name>\w+) \((?P<suite>[\w.<>]+)\)(?:\n.*?)? \.\.\. (?P<outcome>ok|FAIL|ERROR|skipped|expected failure|unexpected success)`),
		outcomes: map[string]checks.TestOutcome{"ok": checks.TestPassed, "FAIL": checks.TestFailed, "ERROR": checks.TestFailed, "skipped": checks.TestSkipped, "expected failure": checks.TestPassed, "unexpected success": checks.TestFailed},
		block:    regexp.MustCompile(`^(?:FAIL|ERROR): (?P<name>\w+)`),
		endBlock: regexp.MustCompile(`^={20,}$|^Ran \d+ tests?`),
		sum:      regexp.MustCompile(`^Ran (\d+) tests? in `),
		broken:   regexp.MustCompile(`^ERROR: (?:unittest\.loader\._FailedTest\.)?\w* ?\(unittest\.loader\._FailedTest\.?(\w*)\)`),
	}
})

// pythonPlaces are the lines of a traceback that name a place.
var pythonPlaces = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^File "(.+)", line (\d+)`) })

// exunit is what mix test --trace prints (hexdocs.pm/ex_unit, "ExUnit.CLIFormatter"): each test twice, before and after it.
var exunit = sync.OnceValue(func() textRun {
	return textRun{
		test:     regexp.MustCompile(`^\* .+ \[L#\d+\]\s*\* (?P<name>.+) \((?:[\d.]+ms|(?P<outcome>skipped|excluded|invalid))\) \[L#(?P<line>\d+)\]$`),
		outcomes: map[string]checks.TestOutcome{"skipped": checks.TestSkipped, "excluded": checks.TestSkipped, "invalid": checks.TestFailed},
		other:    checks.TestPassed,
		suite:    regexp.MustCompile(`^(?P<suite>[\w.]+) \[(?P<file>.+\.exs?)\]$`),
		block:    regexp.MustCompile(`^\d+\) (?P<name>.+) \((?P<suite>[\w.]+)\)$`),
		fails:    true,
		endBlock: regexp.MustCompile(`^Finished in |^\* `),
		sum:      regexp.MustCompile(`^(?:\d+ (?:doctests?|propert(?:y|ies)), )*\d+ tests?, \d+ failures?`),
		tests:    regexp.MustCompile(`(\d+) (?:tests?|doctests?|propert(?:y|ies))\b`),
		failures: regexp.MustCompile(`(\d+) (?:failures?|invalid)\b`),
		broken:   regexp.MustCompile(`^== Compilation error in file (.+) ==$`),
		panics:   regexp.MustCompile(`^\S+\.exs?:\d+$`),
	}
})

// minitest is what Minitest prints with --verbose (docs.seattlerb.org/minitest).
var minitest = sync.OnceValue(func() textRun {
	return textRun{
		test:     regexp.MustCompile(`^(?P<suite>[\w:]+)#(?P<name>.+) = [\d.]+ s = (?P<outcome>[.SFE])$`),
		outcomes: map[string]checks.TestOutcome{".": checks.TestPassed, "S": checks.TestSkipped, "F": checks.TestFailed, "E": checks.TestFailed},
		block:    regexp.MustCompile(`^(?P<suite>[\w:]+)#(?P<name>.+?)(?: \[(?P<file>.+):(?P<line>\d+)\])?:$`),
		endBlock: regexp.MustCompile(`^\d+\) (?:Skipped|Failure|Error):$`),
		sum:      regexp.MustCompile(`^\d+ runs, \d+ assertions, \d+ failures, \d+ errors, \d+ skips`),
		tests:    regexp.MustCompile(`(\d+) runs`),
		failures: regexp.MustCompile(`(\d+) (?:failures|errors)`),
	}
})

// nextest is what cargo nextest prints with --status-level all (nexte.st, "Reporting test results"): failed tests are repeated below the sum.
var nextest = sync.OnceValue(func() textRun {
	return textRun{
		test:     regexp.MustCompile(`^(?:TRY \d+ )?(?P<outcome>PASS|FAIL|SKIP|LEAK|SLOW-PASS|SIG[A-Z]+|ABORT|TIMEOUT|FLAKY) \[.*?\] (?:\( *\d+/\d+\) )?(?P<suite>\S+) (?P<name>\S+)$`),
		outcomes: map[string]checks.TestOutcome{"PASS": checks.TestPassed, "LEAK": checks.TestPassed, "SLOW-PASS": checks.TestPassed, "SKIP": checks.TestSkipped},
		other:    checks.TestFailed,
		block:    regexp.MustCompile(`^-+ STD(?:OUT|ERR): +(?P<suite>\S+) (?P<name>\S+?) -+$`),
		endBlock: regexp.MustCompile(`^(?:PASS|FAIL|SKIP|Summary) \[`),
		sum:      regexp.MustCompile(`^Summary \[.*\] (\d+)(?:/\d+)? tests? run: `),
		failures: regexp.MustCompile(`(\d+) (?:failed|timed out|exec failed)`),
		broken:   regexp.MustCompile("^error: could not compile `([^`]+)`"),
		panics:   regexp.MustCompile(`^thread '.*' .*panicked at `),
	}
})

// lazy reads with patterns that are compiled for the first reading.
func lazy(patterns func() textRun) reader {
	return func(data []byte, o Options) (checks.Report, error) { return patterns().read(data, o) }
}

// read reads a run. It is complete when each part has its sum, and the last line its end.
func (x textRun) read(data []byte, o Options) (checks.Report, error) {
	r := checks.Report{Files: -1}
	index := map[string]int{} // by suite and name, and by name
	in := -1                  // the test whose output comes
	begun, sums, promised, failures := 0, 0, 0, 0
	above := ""
	var suite checks.Test
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(clean(strings.TrimRight(line, "\r\n")), " ")
		if strings.Contains(line, " ... ") && !x.test.MatchString(line) && x.test.MatchString(above+"\n"+line) {
			line = above + "\n" + line // a test with a docstring
		}
		above = line
		switch m := x.test.FindStringSubmatch(line); {
		case m != nil:
			t := suite
			t.Outcome = x.other
			if o, known := x.outcomes[group(x.test, m, "outcome")]; known {
				t.Outcome = o
			}
			t.Name, t.Suite, t.Line = group(x.test, m, "name"), firstOf(group(x.test, m, "suite"), suite.Suite), number(group(x.test, m, "line"))
			in = -1
			if i, again := index[t.Suite+"\x00"+t.Name]; again && x.failures != nil && r.Tests[i].Outcome == t.Outcome && sums > 0 {
				continue // it is told once more
			}
			index[t.Suite+"\x00"+t.Name], index[t.Name] = len(r.Tests), len(r.Tests)
			r.Tests = append(r.Tests, t)
			continue
		case x.sum.MatchString(line):
			sums++
			if x.tests != nil {
				begun, promised = begun+1, promised+added(x.tests, line)
			} else if g := x.sum.FindStringSubmatch(line); len(g) > 1 {
				begun, promised = begun+1, promised+number(g[1])
			}
			if x.failures != nil {
				failures += added(x.failures, line)
			}
			in = -1
			continue
		}
		if x.suite != nil {
			if m := x.suite.FindStringSubmatch(line); m != nil {
				suite = checks.Test{Suite: group(x.suite, m, "suite"), File: o.file(group(x.suite, m, "file"))}
				in = -1
				continue
			}
		}
		if x.begin != nil && in < 0 {
			if g := x.begin.FindStringSubmatch(line); g != nil {
				begun, promised = begun+1, promised+number(g[1])
				continue
			}
		}
		if x.broken != nil {
			if b := x.broken.FindStringSubmatch(line); b != nil {
				r.Broken = append(r.Broken, b[1])
			}
		}
		if b := x.block.FindStringSubmatch(line); b != nil {
			key := group(x.block, b, "name")
			if s := group(x.block, b, "suite"); s != "" {
				key = s + "\x00" + key
			}
			i, ok := index[key]
			if in = -1; ok {
				in = i
				if x.fails {
					r.Tests[i].Outcome = checks.TestFailed
				}
				if file := group(x.block, b, "file"); file != "" {
					r.Tests[i].File, r.Tests[i].Line = o.file(file), number(group(x.block, b, "line"))
				}
			}
			continue
		}
		if x.endBlock.MatchString(line) {
			in = -1
			continue
		}
		if in >= 0 && len(r.Tests[in].Output) < maxText {
			r.Tests[in].Output += line + "\n"
		}
	}
	for i := range r.Tests {
		t := &r.Tests[i]
		if t.Outcome != checks.TestFailed {
			t.Output = ""
			continue
		}
		t.Output = strings.Trim(t.Output, "-\n ")
		t.Expected, t.Actual = expectations(t.Output)
		if t.Line == 0 {
			t.File, t.Line = placeIn(t.File, t.Output, o)
		}
		lines := strings.Split(t.Output, "\n")
		t.Message = lines[0]
		for i, line := range lines[:len(lines)-1] {
			if x.panics != nil && x.panics.MatchString(line) {
				t.Message = lines[i+1]
			}
		}
		if slices.ContainsFunc(lines, func(s string) bool { return strings.HasPrefix(s, "Traceback") }) {
			t.Message = lines[len(lines)-1]
			if at := pythonPlaces().FindAllStringSubmatch(t.Output, -1); len(at) > 0 {
				last := at[len(at)-1]
				t.File, t.Line = o.file(last[1]), number(last[2])
			}
		}
	}
	if begun+sums == 0 && len(r.Tests) == 0 && len(r.Broken) == 0 {
		return r, errors.New("it has neither a test nor a sum")
	}
	r.Complete = strings.HasSuffix(string(data), "\n") && (begun > 0 && sums == begun || len(r.Broken) > 0) && promised <= len(r.Tests)+len(r.Broken) &&
		(x.failures == nil || failures <= checks.Count(r.Tests).Failed+len(r.Broken))
	return r, nil
}

// alcotest is what OCaml's Alcotest prints (github.com/mirage/alcotest).
var alcotest = sync.OnceValue(func() textRun {
	return textRun{
		test:     regexp.MustCompile(`^(?:> )?\[(?P<outcome>OK|FAIL|SKIP)\] {2,}(?P<suite>\S.*?) {2,}\d+ {3}(?P<name>.+?)\.?$`),
		outcomes: map[string]checks.TestOutcome{"OK": checks.TestPassed, "SKIP": checks.TestSkipped},
		other:    checks.TestFailed,
		block:    regexp.MustCompile(`^│ \[FAIL\] {2,}(?P<suite>\S.*?) {2,}\d+ {3}(?P<name>.+?)\.? +│$`),
		endBlock: regexp.MustCompile(`^(?:Logs saved to|Full test results in) `),
		sum:      regexp.MustCompile(`^(?:Test Successful|\d+ failures?!) in .*\. (\d+) tests? run\.`),
		failures: regexp.MustCompile(`^(\d+) failures?!`),
		panics:   regexp.MustCompile(`^ASSERT `),
	}
})

// group is the match of the named group; "" without one.
func group(re *regexp.Regexp, match []string, name string) string {
	if i := re.SubexpIndex(name); i >= 0 {
		return match[i]
	}
	return ""
}

// added adds the numbers that the first group of a pattern finds in a line.
func added(re *regexp.Regexp, line string) (n int) {
	for _, m := range re.FindAllStringSubmatch(line, -1) {
		n += number(m[1])
	}
	return n
}

// readDartTest reads the events of dart test --reporter json (github.com/dart-lang/test, "json_reporter.md"). It is complete with the event done.
func readDartTest(data []byte, o Options) (checks.Report, error) {
	type event struct {
		Type  string `json:"type"`
		Suite struct {
			ID   int    `json:"id"`
			Path string `json:"path"`
		} `json:"suite"`
		Test struct {
			ID       int    `json:"id"`
			Name     string `json:"name"`
			Suite    int    `json:"suiteID"`
			Line     int    `json:"line"`
			RootLine int    `json:"root_line"`
			Metadata struct {
				Reason string `json:"skipReason"`
			} `json:"metadata"`
		} `json:"test"`
		TestID  int    `json:"testID"`
		Result  string `json:"result"`
		Hidden  bool   `json:"hidden"`
		Skipped bool   `json:"skipped"`
		Time    int    `json:"time"` // in milliseconds since the start
		Error   string `json:"error"`
		Stack   string `json:"stackTrace"`
		Message string `json:"message"`
		Success *bool  `json:"success"`
	}
	r := checks.Report{Files: -1}
	suites, tests, began, events := map[int]string{}, map[int]checks.Test{}, map[int]int{}, 0
	failed := false
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var e event
		if json.Unmarshal(line, &e) != nil || e.Type == "" {
			if line[0] == '{' {
				r.Ignored++
			}
			continue // what the program prints before its tests
		}
		events++
		t := tests[e.TestID]
		switch e.Type {
		case "suite":
			suites[e.Suite.ID] = o.file(e.Suite.Path)
		case "testStart":
			tests[e.Test.ID], began[e.Test.ID] = checks.Test{Name: e.Test.Name, File: suites[e.Test.Suite], Message: e.Test.Metadata.Reason,
				Line: max(e.Test.RootLine, 0)}, e.Time
			if e.Test.RootLine == 0 {
				t = tests[e.Test.ID]
				t.Line = max(e.Test.Line, 0)
				tests[e.Test.ID] = t
			}
		case "error":
			t.Message, t.Stack = firstOf(t.Message, e.Error), firstOf(t.Stack, e.Stack)
			t.Expected, t.Actual = expectations(t.Message)
			tests[e.TestID] = t
		case "print":
			t.Output += e.Message + "\n"
			tests[e.TestID] = t
		case "testDone":
			t.Seconds = float64(max(e.Time-began[e.TestID], 0)) / 1000
			delete(tests, e.TestID)
			switch {
			case e.Result != "success" && strings.HasPrefix(t.Name, "loading "):
				r.Broken = append(r.Broken, firstOf(t.File, strings.TrimPrefix(t.Name, "loading ")))
				continue
			case e.Hidden && e.Result == "success":
				continue // it loads a file
			case e.Skipped:
				t.Outcome, t.Output = checks.TestSkipped, ""
			case e.Result == "success":
				t.Outcome, t.Output = checks.TestPassed, ""
			default:
				t.Outcome, failed = checks.TestFailed, true
			}
			r.Tests = append(r.Tests, t)
		case "done":
			r.Complete = len(tests) == 0 && e.Success != nil && (*e.Success || failed || len(r.Broken) > 0)
		}
	}
	if events == 0 {
		return checks.Report{}, errors.New("it has no event of dart test")
	}
	return r, nil
}
