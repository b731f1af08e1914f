// Package checks has what checks of source code report: findings, tests and coverage; and decides what a check's end means. A check that did not
// run, or whose output no one understands, is unknown and never passed.
package checks

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Severity says how bad a finding is.
type Severity string

// The severities, the worst first.
const (
	Critical Severity = "critical"
	High     Severity = "high"
	Medium   Severity = "medium"
	Low      Severity = "low"
	Info     Severity = "info"
)

// Severities returns all severities, the worst first.
func Severities() []Severity { return []Severity{Critical, High, Medium, Low, Info} }

// AtLeast reports whether s is as bad as other, or worse. An unknown severity counts as medium.
func (s Severity) AtLeast(other Severity) bool { return s.rank() <= other.rank() }

func (s Severity) rank() int {
	if i := slices.Index(Severities(), s); i >= 0 {
		return i
	}
	return slices.Index(Severities(), Medium)
}

// Category says what a check is about.
type Category string

// The categories of tools. A deep analysis looks for races, leaks and security holes, takes its time, and runs where it is
// asked for. A language server is not a check.
const (
	Linter        Category = "linter"
	Formatter     Category = "formatter"
	TypeChecker   Category = "type_checker"
	TestFramework Category = "test_framework"
	Deep          Category = "deep"
	LSP           Category = "lsp"
)

// Categories returns all categories.
func Categories() []Category {
	return []Category{Linter, Formatter, TypeChecker, TestFramework, Deep, LSP}
}

// Range is a part of a file. Lines and columns count from 1; 0 is unknown. The end is exclusive; without one, Line alone is meant.
type Range struct {
	Line      int `json:"line,omitempty"`
	Column    int `json:"column,omitempty"`
	EndLine   int `json:"endLine,omitempty"`
	EndColumn int `json:"endColumn,omitempty"`
}

// Finding is what a tool says about a place.
type Finding struct {
	ID   string `json:"id"`   // the same in each run as long as tool, rule, file and message are the same
	File string `json:"file"` // with slashes, below the root of the inspection; "" for none
	Range
	Category   Category `json:"category"`
	Severity   Severity `json:"severity"`
	Message    string   `json:"message"`
	Suggestion string   `json:"suggestion,omitempty"` // in words
	Fixes      []Edit   `json:"fixes,omitempty"`      // of File, as one change
	Tool       string   `json:"tool"`
	Rule       string   `json:"rule,omitempty"`
	URL        string   `json:"url,omitempty"` // explains the rule
}

// Outside reports whether the finding is in a file that is not of the project, as in a library of the machine.
func (f Finding) Outside() bool {
	return path.IsAbs(f.File) || len(f.File) > 1 && f.File[1] == ':' || strings.HasPrefix(f.File, "../")
}

// Partition divides checks in two by a question about files: the first has the findings and failed tests in files for which it is true, the
// second all others. Both have all the checks; n is the number of findings and failed tests in the first.
func Partition(all []Check, in func(file string) bool) (first, second []Check, n int) {
	for _, c := range all {
		a, b := c, c
		a.Findings, b.Findings, a.Tests, b.Tests, a.Output = nil, nil, nil, nil, ""
		for _, f := range c.Findings {
			if in(f.File) {
				a.Findings = append(a.Findings, f)
			} else {
				b.Findings = append(b.Findings, f)
			}
		}
		for _, t := range c.Tests {
			if t.Outcome == TestFailed && in(t.File) {
				a.Tests = append(a.Tests, t)
			} else {
				b.Tests = append(b.Tests, t)
			}
		}
		n += len(a.Findings) + len(a.Tests)
		first, second = append(first, a), append(second, b)
	}
	return first, second, n
}

// Edit replaces a part of a file by a text.
type Edit struct {
	Range
	Text string `json:"text"`
}

// Identify sets the IDs of findings: a digest of tool, rule, file and message, and of the number of equal findings above in the same file.
// Findings are sorted by file, line, column, tool and rule.
func Identify(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Tool, b.Tool), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Message, b.Message))
	})
	equal := map[string]int{}
	for i := range findings {
		f := &findings[i]
		key := strings.Join([]string{f.Tool, f.Rule, f.File, f.Message}, "\x00")
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", key, equal[key]))
		equal[key]++
		f.ID = hex.EncodeToString(sum[:6])
	}
}

// TestOutcome says how a test ended.
type TestOutcome string

// The outcomes of tests.
const (
	TestPassed  TestOutcome = "passed"
	TestFailed  TestOutcome = "failed"
	TestSkipped TestOutcome = "skipped"
)

// Test is one test of a run.
type Test struct {
	Name     string      `json:"name"`
	Suite    string      `json:"suite,omitempty"` // package, class or file, as the framework names it
	File     string      `json:"file,omitempty"`  // with slashes, below the root
	Line     int         `json:"line,omitempty"`
	Outcome  TestOutcome `json:"outcome"`
	Seconds  float64     `json:"seconds"`
	Message  string      `json:"message,omitempty"` // of a failure, or why it was skipped
	Expected string      `json:"expected,omitempty"`
	Actual   string      `json:"actual,omitempty"`
	Stack    string      `json:"stack,omitempty"`
	Output   string      `json:"output,omitempty"` // of a failure, shortened
	Blame    Blame       `json:"blame,omitempty"`  // what a failure is a sign of, where that was found out, and why
	Why      string      `json:"why,omitempty"`
}

// Blame says what a failed test is a sign of.
type Blame string

// What failed tests are signs of.
const (
	Flaky          Blame = "flaky"          // it passes and fails on the same files
	Dependent      Blame = "dependent"      // it passes alone, so it depends on other tests or on what runs beside it
	Known          Blame = "known"          // it fails in the commit before the change, too
	Implementation Blame = "implementation" // the change of the code broke it
	OfTest         Blame = "test"           // the change of the test broke it
	NoDifference   Blame = "no-difference"  // it is new, and the change of the code makes no difference to it
	Unclear        Blame = "unclear"
)

// OfTests returns failed tests as findings, with their messages.
func OfTests(tests []Test) (out []Finding) {
	for _, t := range tests {
		if t.Outcome == TestFailed {
			out = append(out, Finding{File: t.File, Range: Range{Line: t.Line}, Severity: High, Rule: t.Name, Message: cmp.Or(t.Message, t.Name+" fails"),
				Suggestion: cmp.Or(t.Output, t.Stack)})
		}
	}
	return out
}

// Coverage says which lines tests ran.
type Coverage struct {
	Percent float64        `json:"percent"` // of statements or lines, as the tool counts them
	Files   []FileCoverage `json:"files"`
}

// FileCoverage says which lines of a file tests ran.
type FileCoverage struct {
	File      string      `json:"file"`
	Percent   float64     `json:"percent"`
	Uncovered []LineRange `json:"uncovered,omitempty"`
}

// LineRange are the lines First to Last.
type LineRange struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// Report is what a reader understood of a tool's output.
type Report struct {
	Findings []Finding // without IDs
	Tests    []Test
	Coverage *Coverage
	Broken   []string // what could not be built or loaded, so that its tests did not run
	Complete bool     // the output has the end that its format promises, or its format promises none
	Stopped  bool     // an error kept the tool from checking the rest
	Ignored  int      // number of records or lines that were not understood, though the format has no such
	Missed   []string // what the tool says it could not read
	Silent   []string // files that passed as a whole, and have tests of which the tool says nothing
	Files    int      // number of files that the tool says it read; -1 if it does not say
}
