package formats

import (
	"errors"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"reconcile.dev/reconcile/controllers/checks"
)

// zigPatterns are of lines that "zig build test --summary all" prints (seen with zig 0.16.0).
type zigPatterns struct{ failed, compiler, sum, skipped *regexp.Regexp }

var zigLines = sync.OnceValue(func() zigPatterns {
	return zigPatterns{
		failed:   regexp.MustCompile(`^error: '(.+?)' ((?:failed|leaked|logged|terminated|timed out).*)$`),
		compiler: regexp.MustCompile(`^([^\s:].*?\.zig):(\d+):(\d+): error: (.*)$`),
		sum:      regexp.MustCompile(`^Build Summary: \d+/\d+ steps succeeded(?:.*?\b(\d+)/(\d+) tests passed(.*))?`),
		skipped:  regexp.MustCompile(`(\d+) skipped`),
	}
})

// readZig reads what zig build test prints: each failed test with its output, errors of the compiler, and a sum. Tests that passed have no names there.
func readZig(data []byte, o Options) (checks.Report, error) {
	r := checks.Report{Files: -1}
	x := zigLines()
	in := -1 // the test whose output comes
	for line := range strings.Lines(string(data)) {
		whole, indented := strings.HasSuffix(line, "\n"), strings.HasPrefix(line, " ")
		line = clean(strings.TrimRight(line, "\r\n"))
		if m := x.failed.FindStringSubmatch(line); m != nil {
			in = len(r.Tests)
			r.Tests = append(r.Tests, checks.Test{Name: m[1], Outcome: checks.TestFailed, Message: m[2]})
			continue
		}
		if in >= 0 && indented {
			if t := &r.Tests[in]; len(t.Output) < maxText {
				t.Output += line + "\n"
			}
			continue
		}
		in = -1
		if m := x.compiler.FindStringSubmatch(line); m != nil {
			f := checks.Finding{File: o.file(m[1]), Severity: checks.High, Rule: "compile", Message: m[4]}
			f.Line, f.Column = number(m[2]), number(m[3])
			r.Findings, r.Broken = append(r.Findings, f), append(r.Broken, f.File)
		} else if m := x.sum.FindStringSubmatch(line); m != nil && whole && !r.Complete {
			r.Complete = true
			skipped := 0
			if s := x.skipped.FindStringSubmatch(m[3]); s != nil {
				skipped = number(s[1])
			}
			r.Tests = append(r.Tests, zigRest(len(r.Tests), number(m[1]), skipped, number(m[2]))...)
		}
	}
	if !r.Complete && len(r.Broken) == 0 {
		return checks.Report{}, errors.New("it has no sum of a build")
	}
	for i := range r.Tests {
		zigFailure(&r.Tests[i], o)
	}
	return r, nil
}

// zigRest are the tests of a sum without those that are named, since they failed. One that leaks memory is among the passed ones of the sum.
func zigRest(named, passed, skipped, all int) (out []checks.Test) {
	failed := all - passed - skipped
	add := func(outcome checks.TestOutcome, n int) {
		for i := range min(n, maxTests) {
			out = append(out, checks.Test{Name: string(outcome) + " " + strconv.Itoa(i+1), Outcome: outcome})
		}
	}
	add(checks.TestFailed, failed-named)
	add(checks.TestPassed, passed-max(named-failed, 0))
	add(checks.TestSkipped, skipped)
	return out
}

// zigFailure takes from the output of a failed test its message, and its place in the project.
func zigFailure(t *checks.Test, o Options) {
	if first, _, _ := strings.Cut(t.Output, "\n"); t.Message == "failed:" {
		t.Message = firstOf(first, "failed")
	}
	t.Expected, t.Actual = expectations(t.Message)
	for _, m := range placePattern().FindAllStringSubmatch(t.Output, -1) {
		if at := o.file(m[1]); !path.IsAbs(at) && !strings.Contains(at, "node_modules/") {
			t.File, t.Line = at, number(m[2])
			return
		}
	}
}
