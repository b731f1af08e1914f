package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// event is one line of go test -json; see go doc cmd/test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build events
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// goTest runs go test with the given flags and packages, prints a line for each package as it ends, and what the
// failing tests said. It leaves vetting to the step of that name.
func (c *checker) goTest(ctx context.Context, args []string) result {
	cmd := c.command(ctx, append([]string{"go", "test", "-json", "-vet=off"}, args...))
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return failed(fmt.Sprintf("go test: %v", err))
	}
	r := result{tests: true}
	ran := &events{w: &c.ran}
	r.tally, r.skips, err = readTests(io.TeeReader(stdout, ran), c.out)
	c.counted.add(r.tally)
	if err != nil {
		r.failed++
		fmt.Fprintf(&complaints, "reading the output of go test: %v\n", err)
		_, _ = io.Copy(io.Discard, stdout) // so that it can end
	}
	if err := cmd.Wait(); err != nil && r.failed == 0 {
		r.failed++
		fmt.Fprintf(&complaints, "go test: %v\n", err)
	}
	r.text = complaints.String()
	return r
}

// events passes on the lines of a go test -json stream, but for what tests print.
type events struct {
	w    io.Writer
	line []byte // the beginning of one
}

func (e *events) Write(p []byte) (int, error) {
	text := append(e.line, p...)
	for {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		if !ended {
			e.line = append(e.line[:0], text...)
			return len(p), nil
		}
		if !bytes.Contains(line, []byte(`"Action":"output"`)) {
			if _, err := fmt.Fprintf(e.w, "%s\n", line); err != nil {
				return 0, err
			}
		}
		text = rest
	}
}

// readTests counts the tests of a go test -json stream and prints the relevant output to w. A package that fails
// without a failing test (it does not build, it exits, it panics) counts as one failure. It returns the skipped tests with their reasons, too.
func readTests(stream io.Reader, w io.Writer) (tally, []string, error) {
	t := testReader{w: w, said: map[string]*strings.Builder{}, failures: map[string]int{}}
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			t.line(line)
		}
		if err == io.EOF {
			return t.sum, t.skips, nil
		}
		if err != nil {
			return t.sum, t.skips, err
		}
	}
}

type testReader struct {
	w        io.Writer
	sum      tally
	said     map[string]*strings.Builder // by package and test
	failures map[string]int              // by package
	skips    []string                    // "NAME (REASON)"
}

func (t *testReader) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		t.w.Write(line) // something printed past go test; it may matter
		return
	}
	switch {
	case e.Action == "build-output":
		fmt.Fprint(t.w, e.Output)
	case e.Action == "output":
		t.hear(e)
	case e.Test == "":
		t.packageEnd(e)
	default:
		t.testEnd(e)
	}
}

func (e event) key() string { return e.Package + " " + e.Test }

// hear keeps what a test says, but for the marks of its progress, until it is known whether it matters.
func (t *testReader) hear(e event) {
	if strings.HasPrefix(e.Output, "=== ") {
		return
	}
	b := t.said[e.key()]
	if b == nil {
		b = new(strings.Builder)
		t.said[e.key()] = b
	}
	b.WriteString(e.Output)
}

// reason is the line with which a test was skipped.
func (t *testReader) reason(e event) string {
	if b := t.said[e.key()]; b != nil {
		for line := range strings.Lines(b.String()) {
			if at, why, found := strings.Cut(strings.TrimSpace(line), ": "); found && strings.Contains(at, ".go:") {
				return why
			}
		}
	}
	return "no reason"
}

// tell prints the output under e's key.
func (t *testReader) tell(e event) {
	if b := t.said[e.key()]; b != nil {
		fmt.Fprint(t.w, b)
	}
}

func (t *testReader) testEnd(e event) {
	switch e.Action {
	case "pass":
		t.sum.passed++
	case "skip":
		t.sum.skipped++
		t.skips = append(t.skips, fmt.Sprintf("%s (%s)", e.Test, t.reason(e)))
	case "fail":
		t.sum.failed++
		t.failures[e.Package]++
		t.tell(e)
	default:
		return // run, pause, cont: it goes on
	}
	delete(t.said, e.key())
}

func (t *testReader) packageEnd(e event) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(t.w, "ok    %6.1fs  %s\n", e.Elapsed, e.Package)
	case "fail":
		if t.failures[e.Package] == 0 {
			t.sum.failed++
			t.interrupted(e.Package)
		}
		t.tell(e)
		fmt.Fprintf(t.w, "FAIL  %6.1fs  %s\n", e.Elapsed, e.Package)
	case "skip":
	default:
		return
	}
	delete(t.said, e.key())
}

// interrupted prints what the tests of a package said that began and did not end.
func (t *testReader) interrupted(pkg string) {
	for key, said := range t.said {
		if strings.HasPrefix(key, pkg+" ") && key != pkg+" " {
			fmt.Fprint(t.w, said)
		}
	}
}
