package formats

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"reconcile.dev/reconcile/controllers/checks"
)

// elements calls visit for the elements of an XML document, with the names of those around each. Text before the document, as programs print
// it, is skipped. Entities are refused, and so is deep nesting.
func elements(data []byte, root []string, visit func(path []string, e xml.StartElement, d *xml.Decoder) (consumed bool, err error)) error {
	start := -1
	for _, name := range root {
		if i := bytes.Index(data, []byte("<"+name)); i >= 0 && (start < 0 || i < start) {
			start = i
		}
	}
	if start < 0 {
		if len(bytes.TrimSpace(data)) == 0 {
			return errors.New("it is empty")
		}
		return fmt.Errorf("it has no element <%s>", strings.Join(root, "> or <"))
	}
	if bytes.Contains(data[:start], []byte("<!ENTITY")) {
		return errors.New("it declares entities")
	}
	d := xml.NewDecoder(bytes.NewReader(data[start:]))
	d.Strict = true
	var at []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) || err == nil && len(at) == 0 && isOther(token) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the XML is wrong or ends early: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(at) >= maxDepth {
				return errors.New("its elements are nested too deep")
			}
			consumed, err := visit(at, t, d)
			if err != nil {
				return fmt.Errorf("the XML is wrong or ends early: %w", err)
			}
			if !consumed {
				at = append(at, t.Name.Local)
			}
		case xml.EndElement:
			if at = at[:len(at)-1]; len(at) == 0 {
				return onlyOne(data[start+int(d.InputOffset()):], root)
			}
		case xml.Directive:
			return errors.New("it has a directive inside")
		}
	}
}

// onlyOne refuses a second document, which may say other things than the first.
func onlyOne(rest []byte, root []string) error {
	for _, name := range root {
		if bytes.Contains(rest, []byte("<"+name)) {
			return errors.New("it has more than one document")
		}
	}
	return nil
}

// isOther reports whether a token is neither the start nor the end of an element.
func isOther(t xml.Token) bool {
	switch t.(type) {
	case xml.StartElement, xml.EndElement:
		return false
	}
	return true
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return n
}

// readCheckstyle reads the XML of checkstyle, which many linters write.
func readCheckstyle(data []byte, o Options) (checks.Report, error) {
	r := checks.Report{Files: 0, Complete: true}
	file := ""
	err := elements(data, []string{"checkstyle"}, func(_ []string, e xml.StartElement, _ *xml.Decoder) (bool, error) {
		switch e.Name.Local {
		case "file":
			file = o.file(attribute(e, "name"))
			r.Files++
		case "error":
			rule := attribute(e, "source")
			f := checks.Finding{File: file, Severity: severityOf(attribute(e, "severity")), Message: attribute(e, "message"),
				Rule: rule[strings.LastIndexByte(rule, '.')+1:]}
			f.Line, f.Column = number(attribute(e, "line")), number(attribute(e, "column"))
			r.Findings = append(r.Findings, f)
		}
		return false, nil
	})
	if r.Files == 0 {
		r.Files = -1 // many tools name only files with findings
	}
	return r, err
}

// junitCase is a testcase. Its members are those of the dialects of pytest, surefire, jest, mocha, vitest, bats, phpunit and gtest.
type junitCase struct {
	Name     string      `xml:"name,attr"`
	Class    string      `xml:"classname,attr"`
	File     string      `xml:"file,attr"`
	Line     string      `xml:"line,attr"`
	Time     string      `xml:"time,attr"`
	Status   string      `xml:"status,attr"`
	Result   string      `xml:"result,attr"`
	Failures []junitText `xml:"failure"`
	Errors   []junitText `xml:"error"`
	Skipped  []junitText `xml:"skipped"`
	Out      string      `xml:"system-out"`
	Err      string      `xml:"system-err"`
	Rerun    []junitText `xml:"rerunFailure"`
}

// junitText is why a case failed or was skipped.
type junitText struct {
	Message string `xml:"message,attr,omitempty"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// readJUnit reads the XML of JUnit in its dialects. A suite with an error and no test is broken. It is complete when its cases show the tests
// and the failures that its suites count.
func readJUnit(data []byte, o Options) (checks.Report, error) {
	r := checks.Report{Files: -1, Complete: true}
	type suite struct {
		name, file string
		depth      int
	}
	var suites []suite
	tests, bad, shown := false, false, false // the suites count some, and the cases show failures
	err := elements(data, []string{"testsuites", "testsuite"}, func(path []string, e xml.StartElement, d *xml.Decoder) (bool, error) {
		for len(suites) > 0 && suites[len(suites)-1].depth >= len(path) {
			suites = suites[:len(suites)-1]
		}
		inner := suite{}
		if n := len(suites); n > 0 {
			inner = suites[n-1]
		}
		if e.Name.Local == "testsuites" || e.Name.Local == "testsuite" {
			tests = tests || number(attribute(e, "tests")) > 0
			bad = bad || number(attribute(e, "failures")) > 0 || number(attribute(e, "errors")) > 0
		}
		switch e.Name.Local {
		case "testsuite":
			s := suite{attribute(e, "name"), attribute(e, "file"), len(path)}
			if s.file == "" {
				s.file = inner.file
			}
			suites = append(suites, s)
		case "testcase":
			var c junitCase
			if err := d.DecodeElement(&c, &e); err != nil {
				return false, err
			}
			shown = shown || len(c.Failures)+len(c.Errors) > 0
			t := c.test(inner.name, inner.file, o)
			if inner.name == "pytest" && c.Line != "" { // which counts lines from 0
				t.Line = number(c.Line) + 1
			}
			r.Tests = append(r.Tests, t)
			return true, nil
		case "error", "failure": // of a suite
			var t junitText
			if err := d.DecodeElement(&t, &e); err != nil {
				return false, err
			}
			r.Broken = append(r.Broken, strings.TrimSpace(inner.name+" "+firstOf(t.Message, t.Text)))
			return true, nil
		}
		return false, nil
	})
	failed := shown || len(r.Broken) > 0 || slices.ContainsFunc(r.Tests, func(t checks.Test) bool { return t.Outcome == checks.TestFailed })
	r.Complete = (len(r.Tests) > 0 || !tests) && (failed || !bad)
	return r, err
}

func (c *junitCase) test(suite, file string, o Options) checks.Test {
	t := checks.Test{Name: c.Name, Suite: firstOf(c.Class, suite), Outcome: checks.TestPassed, Line: number(c.Line)}
	t.File = o.file(firstOf(c.File, file))
	if s, err := strconv.ParseFloat(strings.ReplaceAll(c.Time, ",", ""), 64); err == nil && s >= 0 {
		t.Seconds = s
	}
	switch bad := append(c.Failures, c.Errors...); {
	case len(c.Skipped) > 0 && c.Skipped[0].Type == "todo": // of node, which lets it fail
		t.Outcome, t.Message = checks.TestSkipped, strings.TrimSuffix("todo: "+c.Skipped[0].Message, ": true")
	case len(bad) == 1 && bad[0].Type == `PHPUnit\Framework\RiskyTestError`: // it may have asserted nothing, and fails no run of PHPUnit
		t.Outcome, t.Message = checks.TestSkipped, strings.TrimSpace(bad[0].Text)
	case len(bad) > 0:
		f := bad[0]
		t.Outcome, t.Message, t.Stack = checks.TestFailed, firstOf(f.Message, firstLineOf(f.Text), f.Type), strings.TrimSpace(f.Text)
		t.Expected, t.Actual = expectations(t.Message + "\n" + t.Stack)
		t.Output = strings.TrimSpace(c.Out + "\n" + c.Err)
		if t.Line == 0 {
			t.File, t.Line = placeIn(t.File, t.Stack, o)
			if m := batsPlace().FindStringSubmatch(t.Stack); m != nil {
				t.File, t.Line = o.file(m[1]), number(m[2])
			}
		}
	case len(c.Skipped) > 0 && c.Skipped[0].Message == "Unable to find executable": // of ctest, for which it failed
		t.Outcome, t.Message = checks.TestFailed, firstOf(c.Out, c.Skipped[0].Message)
	case len(c.Skipped) > 0:
		t.Outcome, t.Message = checks.TestSkipped, firstOf(c.Skipped[0].Message, strings.TrimSpace(c.Skipped[0].Text))
	case strings.EqualFold(c.Status, "notrun") || strings.EqualFold(c.Status, "disabled") || strings.EqualFold(c.Result, "suppressed"):
		t.Outcome = checks.TestSkipped
	case strings.EqualFold(c.Status, "failed"):
		t.Outcome = checks.TestFailed
	}
	return t
}

func firstOf(all ...string) string {
	for _, s := range all {
		if s = strings.TrimSpace(s); s != "" {
			return s
		}
	}
	return ""
}

func firstLineOf(s string) string {
	s = strings.TrimSpace(s)
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// readTRX reads the results of dotnet test --logger trx (learn.microsoft.com, "dotnet test", and the schema of Visual Studio, TeamTest 2010). It is
// complete when its sum counts as many tests as there are.
func readTRX(data []byte, o Options) (checks.Report, error) {
	type result struct {
		ID       string `xml:"testId,attr"`
		Name     string `xml:"testName,attr"`
		Outcome  string `xml:"outcome,attr"`
		Duration string `xml:"duration,attr"` // hours:minutes:seconds
		Out      string `xml:"Output>StdOut"`
		Message  string `xml:"Output>ErrorInfo>Message"`
		Stack    string `xml:"Output>ErrorInfo>StackTrace"`
	}
	r := checks.Report{Files: -1}
	classes, ids, counted := map[string]string{}, []string(nil), -1
	id := ""
	err := elements(data, []string{"TestRun"}, func(_ []string, e xml.StartElement, d *xml.Decoder) (bool, error) {
		switch e.Name.Local {
		case "UnitTestResult":
			var x result
			if err := d.DecodeElement(&x, &e); err != nil {
				return false, err
			}
			t := checks.Test{Name: x.Name, Outcome: checks.TestFailed}
			var h, m int
			var s float64
			if n, _ := fmt.Sscanf(strings.ReplaceAll(x.Duration, ":", " "), "%d %d %g", &h, &m, &s); n == 3 {
				t.Seconds = float64(h*3600+m*60) + s
			}
			switch x.Outcome {
			case "Passed", "PassedButRunAborted", "Warning":
				t.Outcome = checks.TestPassed
			case "NotExecuted", "Inconclusive", "NotRunnable", "Pending":
				t.Outcome, t.Message = checks.TestSkipped, strings.TrimSpace(x.Message)
			default:
				t.Message, t.Stack, t.Output = firstLineOf(x.Message), strings.TrimSpace(x.Stack), strings.TrimSpace(x.Out)
				t.Expected, t.Actual = expectations(x.Message)
				if at := dotnetPlace().FindStringSubmatch(x.Stack); at != nil {
					t.File, t.Line = o.file(at[1]), number(at[2])
				}
			}
			r.Tests, ids = append(r.Tests, t), append(ids, x.ID)
			return true, nil
		case "UnitTest":
			id = attribute(e, "id")
		case "TestMethod":
			classes[id] = attribute(e, "className")
		case "Counters":
			counted = number(attribute(e, "total"))
		case "RunInfo":
			var text string
			outcome := attribute(e, "outcome")
			if err := d.DecodeElement(&struct {
				Text *string `xml:"Text"`
			}{&text}, &e); err != nil {
				return false, err
			}
			if outcome == "Error" || outcome == "Failed" { // a host of tests that crashed
				r.Broken = append(r.Broken, strings.TrimSpace(text))
			}
			return true, nil
		}
		return false, nil
	})
	for i := range r.Tests {
		t := &r.Tests[i]
		t.Suite = classes[ids[i]]
		t.Name = strings.TrimPrefix(t.Name, t.Suite+".")
	}
	r.Complete = counted == len(r.Tests)
	return r, err
}

// dotnetPlace is a place in a stack of .NET.
var dotnetPlace = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m) in (.+):line (\d+)$`) })
