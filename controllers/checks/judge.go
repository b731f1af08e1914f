package checks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// Outcome is what a check says about the code.
type Outcome string

// The outcomes. An unknown one may be good or bad: the check did not run, did not end, or was not understood.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Unknown Outcome = "unknown"
)

// Expected is what a tool's exit codes and output mean.
type Expected struct {
	Clean   []int // exit codes without findings; none: 0
	Found   []int // exit codes with findings; none: 1
	Tests   bool  // the tool runs tests
	Format  string
	FailOn  Severity // a finding that is less severe does not fail the check
	Timeout time.Duration
}

// Ended is how a tool ended.
type Ended struct {
	NotStarted string // why it was not started; "" if it was
	TimedOut   bool
	Signal     string // that ended it
	Exit       int
	Truncated  bool   // its output was larger than what is read
	Unreadable string // why its output is not in the expected format
	LastLine   string // of its output
	Output     string // the end of all that it printed
	Report     Report
}

// Judge decides what the end of a tool says, and why where that is not obvious. A check passes only if it ran, its output
// was understood, and it examined something. The reason of a failed check says what else is wrong than its findings and
// tests, so that these are not all that can be accepted.
func Judge(x Expected, e Ended) (Outcome, string) {
	if why := e.broken(x); why != "" {
		return Unknown, why
	}
	if x.Tests {
		return judgeTests(x, e)
	}
	clean, found := x.Means(e.Exit)
	bad := func(outside bool) bool {
		return slices.ContainsFunc(e.Report.Findings, func(f Finding) bool {
			return f.Severity.AtLeast(cmp.Or(x.FailOn, Low)) && f.Outside() == outside
		})
	}
	switch {
	case bad(false):
		return Failed, e.rest(clean || found)
	case bad(true):
		return Unknown, "what it finds is in files outside of the project" + e.said()
	case e.rest(clean || found) != "":
		return Unknown, e.rest(clean || found)
	case found && len(e.Report.Findings) == 0:
		return Unknown, fmt.Sprintf("exit code %d without a finding in its output%s", e.Exit, e.said())
	case e.Report.Files == 0 && len(e.Report.Findings) == 0:
		return Unknown, "it read no file"
	}
	return Passed, ""
}

// noTestRan begins the reason of a run of tests without a test.
const noTestRan = "no test ran"

func judgeTests(x Expected, e Ended) (Outcome, string) {
	clean, found := x.Means(e.Exit)
	c := Count(e.Report.Tests)
	switch {
	case len(e.Report.Broken) > 0:
		return Failed, "does not build: " + strings.Join(e.Report.Broken, ", ")
	case c.Failed > 0:
		return Failed, e.rest(clean || found)
	case e.doubt() != "":
		return Unknown, e.doubt()
	case c.Run == 0 && c.Skipped > 0:
		return Unknown, fmt.Sprintf("no test ran, %d skipped", c.Skipped)
	case c.Run == 0:
		return Unknown, fmt.Sprintf("%s (exit code %d)%s", noTestRan, e.Exit, e.said())
	case !clean && !found:
		return Unknown, e.strangeExit()
	case found:
		return Unknown, fmt.Sprintf("exit code %d without a failed test%s", e.Exit, e.said())
	}
	return Passed, ""
}

// Means reports whether an exit code means a clean end or findings.
func (x Expected) Means(exit int) (clean, found bool) {
	clean = slices.Contains(x.Clean, exit) || len(x.Clean) == 0 && exit == 0
	found = !clean && (slices.Contains(x.Found, exit) || len(x.Found) == 0 && exit == 1)
	return clean, found
}

// broken says why nothing that the tool printed counts; "" if it may.
func (e Ended) broken(x Expected) string {
	switch {
	case e.NotStarted != "":
		return e.NotStarted
	case e.TimedOut:
		return fmt.Sprintf("it did not end within %s", x.Timeout)
	case e.Signal != "":
		return "it was ended by " + e.Signal + e.said()
	case e.Unreadable != "":
		return fmt.Sprintf("its output is not %s: %s%s", x.Format, e.Unreadable, e.said())
	}
	return ""
}

// rest says why the output does not show all that the tool would say; "" if it does. expected says that its exit code has a meaning.
func (e Ended) rest(expected bool) string {
	if !expected {
		return e.strangeExit()
	}
	return e.doubt()
}

// doubt says why silence in the output proves nothing; "" if it does.
func (e Ended) doubt() string {
	switch {
	case e.Truncated:
		return "its output is larger than what is read"
	case !e.Report.Complete:
		return "its output ends early" + e.said()
	case e.Report.Stopped:
		return "an error kept it from checking the rest" + e.said()
	case len(e.Report.Missed) > 0:
		return "it could not read " + schemas.Shorten(e.Report.Missed, 3)
	case len(e.Report.Silent) > 0:
		return "it says of none of the tests that they ran, in " + schemas.Shorten(e.Report.Silent, 3)
	case e.Report.Ignored > 0:
		return fmt.Sprintf("%s of its output could not be understood%s", schemas.Count(e.Report.Ignored, "part"), e.said())
	}
	return ""
}

func (e Ended) strangeExit() string {
	return fmt.Sprintf("exit code %d, which means neither clean nor findings%s", e.Exit, e.said())
}

func (e Ended) said() string {
	if e.LastLine == "" {
		return ""
	}
	return ": " + e.LastLine
}

// Counts are the tests of a run by how they ended.
type Counts struct {
	Run     int     `json:"run"` // passed or failed
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Skipped int     `json:"skipped"`
	Seconds float64 `json:"seconds"`
}

// Count counts tests.
func Count(tests []Test) (c Counts) {
	for _, t := range tests {
		switch t.Outcome {
		case TestPassed:
			c.Passed++
		case TestFailed:
			c.Failed++
		case TestSkipped:
			c.Skipped++
		}
		c.Seconds += t.Seconds
	}
	c.Run = c.Passed + c.Failed
	return c
}

// Plus adds counts.
func (c Counts) Plus(o Counts) Counts {
	return Counts{c.Run + o.Run, c.Passed + o.Passed, c.Failed + o.Failed, c.Skipped + o.Skipped, c.Seconds + o.Seconds}
}

// Check is a check that ran, or should have.
type Check struct {
	Tool     string   `json:"tool"`
	Category Category `json:"category"`
	Language string   `json:"language,omitempty"`
	Folder   string   `json:"folder"` // below the root; "" is the root
	Command  []string `json:"command,omitempty"`
	Version  string   `json:"version,omitempty"`
	Files    int      `json:"files,omitempty"` // number of files that were named; 0: the whole folder
	Outcome  Outcome  `json:"outcome"`
	Reason   string   `json:"reason,omitempty"`
	// NotInstalled says that this is why the outcome is unknown.
	NotInstalled bool      `json:"notInstalled,omitempty"`
	Findings     []Finding `json:"findings,omitempty"`
	Tests        []Test    `json:"tests,omitempty"`
	Coverage     *Coverage `json:"coverage,omitempty"`
	Seconds      float64   `json:"seconds"`
	Sandbox      string    `json:"sandbox,omitempty"` // the level that confined it
	Proved       bool      `json:"proved,omitempty"`  // the tool found the fault of its positive control
	Output       string    `json:"output,omitempty"`  // the end of what it printed, if the outcome is not clear from the rest
}

// Verdict sums up checks: failed if one failed, else unknown if one is, else passed. Without a check it is unknown. allowed lists the tools
// that may be unknown.
func Verdict(all []Check, allowed []string) Outcome {
	passed := false
	worst := Passed
	for _, c := range all {
		switch {
		case c.Outcome == Failed:
			return Failed
		case c.Outcome == Passed:
			passed = true
		case !slices.Contains(allowed, c.Tool):
			worst = Unknown
		}
	}
	if !passed {
		return Unknown
	}
	return worst
}

// Span is a time in which a check ran.
type Span struct{ From, To time.Time }

// Altered is a file of the project that changed while checks ran.
type Altered struct {
	File string
	At   time.Time // zero where nobody knows, as of a file that was removed
}

// ClockTick is how much earlier than the clock of programs the times of files may be.
const ClockTick = 20 * time.Millisecond

// Disturb decides again about checks during which files of the project changed: none of them passes, since it may be about other files than those
// that are there, or were there before. ran are the times of the checks.
func Disturb(all []Check, ran []Span, altered []Altered) {
	if len(altered) == 0 {
		return
	}
	files := make([]string, len(altered))
	var during []string
	for i, a := range altered {
		files[i] = a.File
		for k, c := range all {
			if s := ran[k]; !a.At.Add(ClockTick).Before(s.From) && !a.At.After(s.To) && !slices.Contains(during, c.Tool) {
				during = append(during, c.Tool)
			}
		}
	}
	why := schemas.Shorten(files, 3) + " changed while the checks ran"
	if len(during) > 0 {
		why = fmt.Sprintf("%s changed while %s ran", schemas.Shorten(files, 3), strings.Join(during, ", "))
	}
	why += "; a check has to leave the files of the project as they are"
	for i := range all {
		switch c := &all[i]; c.Outcome {
		case Passed:
			c.Outcome, c.Reason = Unknown, why
		case Failed:
			c.Reason = strings.TrimPrefix(c.Reason+"; "+why, "; ")
		}
	}
}
