package formats

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

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
				t.Message, t.Stack = x.Message, strings.Join(x.Backtrace, "\n")
				t.Expected, t.Actual = expectations(x.Message)
			}
		}
		r.Tests = append(r.Tests, t)
	}
	return r, nil
}

// textRun is a test run that is printed for people: a line for each test, the output of those that failed, and a sum at the end.
type textRun struct {
	test     *regexp.Regexp // name and outcome, perhaps suite
	outcomes map[string]checks.TestOutcome
	block    *regexp.Regexp // begins the output of a failed test; its group is the name
	endBlock *regexp.Regexp
	begin    *regexp.Regexp // begins a part of the run, and its group is the number of tests; nil: the run has one part, and its sum says the number
	sum      *regexp.Regexp // ends a part
	broken   *regexp.Regexp
	panics   *regexp.Regexp // comes before the message in the output of a failed test
}

var libtest = sync.OnceValue(func() textRun {
	return textRun{
		test:     regexp.MustCompile(`^test (?P<name>\S+(?: - .*?)?)(?: - should panic)? \.\.\. (?P<outcome>ok|FAILED|ignored)`),
		outcomes: map[string]checks.TestOutcome{"ok": checks.TestPassed, "FAILED": checks.TestFailed, "ignored": checks.TestSkipped},
		block:    regexp.MustCompile(`^---- (.+?)(?: stdout| stderr)? ----$`),
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
		block:    regexp.MustCompile(`^(?:FAIL|ERROR): (\w+)`),
		endBlock: regexp.MustCompile(`^={20,}$|^Ran \d+ tests?`),
		sum:      regexp.MustCompile(`^Ran (\d+) tests? in `),
		broken:   regexp.MustCompile(`^ERROR: (?:unittest\.loader\._FailedTest\.)?\w* ?\(unittest\.loader\._FailedTest\.?(\w*)\)`),
	}
})

// pythonPlaces are the lines of a traceback that name a place.
var pythonPlaces = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^File "(.+)", line (\d+)`) })

func readLibtest(data []byte, o Options) (checks.Report, error) { return libtest().read(data, o) }

func readUnittest(data []byte, o Options) (checks.Report, error) { return unittest().read(data, o) }

// read reads a run. It is complete when each part has its sum, and the last line its end.
func (x textRun) read(data []byte, o Options) (checks.Report, error) {
	r := checks.Report{Files: -1}
	index := map[string]int{}
	in := -1 // the test whose output comes
	begun, sums, promised := 0, 0, 0
	above := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(clean(strings.TrimRight(line, "\r\n")), " ")
		if strings.Contains(line, " ... ") && !x.test.MatchString(line) && x.test.MatchString(above+"\n"+line) {
			line = above + "\n" + line // a test with a docstring
		}
		above = line
		switch m := x.test.FindStringSubmatch(line); {
		case m != nil:
			t := checks.Test{Name: m[x.test.SubexpIndex("name")], Outcome: x.outcomes[m[x.test.SubexpIndex("outcome")]]}
			if i := x.test.SubexpIndex("suite"); i > 0 {
				t.Suite = m[i]
			}
			index[t.Name] = len(r.Tests)
			r.Tests = append(r.Tests, t)
			in = -1
			continue
		case x.sum.MatchString(line):
			sums++
			if g := x.sum.FindStringSubmatch(line); len(g) > 1 {
				begun, promised = begun+1, promised+number(g[1])
			}
			in = -1
			continue
		}
		if x.begin != nil && in < 0 {
			if g := x.begin.FindStringSubmatch(line); g != nil {
				begun, promised = begun+1, promised+number(g[1])
				continue
			}
		}
		if b := x.broken.FindStringSubmatch(line); b != nil {
			r.Broken = append(r.Broken, b[1])
		}
		if b := x.block.FindStringSubmatch(line); b != nil {
			in = -1
			if i, ok := index[b[1]]; ok {
				in = i
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
		t.File, t.Line = placeIn("", t.Output, o)
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
	r.Complete = strings.HasSuffix(string(data), "\n") && (begun > 0 && sums == begun || len(r.Broken) > 0) && promised <= len(r.Tests)+len(r.Broken)
	return r, nil
}
