package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// inspectedBy are the tools by which the project inspects itself: those of every Go installation.
var inspectedBy = []string{"gofmt", "go vet"}

// testedByOwn are the packages that the project tests by its own command, too: some with many tests that take little time.
var testedByOwn = []string{"schemas/cron", "schemas/expand", "controllers/checks", "controllers/tools", "state/lock", "state/worktree"}

// checked is what "reconcile inspect" and "reconcile test" print with -o json.
type checked struct {
	Outcome string
	Checks  []struct{ Tool, Folder, Outcome, Reason string }
	Counts  struct{ Passed, Failed, Skipped int }
}

// own runs a command of the program as it is here, and decodes what it prints.
func (c *checker) own(ctx context.Context, args ...string) (r checked, text string, err error) {
	cmd := c.command(ctx, append([]string{"go", "run", scriptsPackage}, args...))
	cmd.Env = append(slices.Clone(cmd.Env), "RECONCILE_ALLOW=checks")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, failed := cmd.Output() // a failed check is an exit code, too
	if err = json.Unmarshal(out, &r); err != nil {
		err = fmt.Errorf("reconcile %s: %w: %v", strings.Join(args, " "), err, failed)
	}
	return r, complaints.String() + string(out), err
}

// inspectItself compares the verdict of "reconcile inspect" on this project with those of the tools themselves.
func inspectItself(ctx context.Context, c *checker) result {
	args := []string{"inspect", "-o", "json"}
	for _, t := range inspectedBy {
		args = append(args, "--tool", t)
	}
	r, text, err := c.own(ctx, args...)
	if err != nil {
		return failed(err.Error() + "\n" + text)
	}
	found := map[string]bool{}
	for _, check := range r.Checks {
		found[check.Tool] = true
	}
	for _, t := range inspectedBy {
		if !found[t] {
			return failed(fmt.Sprintf("%s was not discovered\n%s", t, text))
		}
	}
	want := "passed"
	if checkFormat(ctx, c).failed > 0 || c.command(ctx, []string{"go", "vet", "./..."}).Run() != nil {
		want = "failed"
	}
	if r.Outcome != want || want != "passed" {
		return failed(fmt.Sprintf("reconcile inspect says %s, and gofmt and go vet say %s\n%s", r.Outcome, want, text))
	}
	return passed()
}

// testItself compares what "reconcile test" reports of some packages with what go test does.
func testItself(ctx context.Context, c *checker) result {
	r, text, err := c.own(ctx, append([]string{"test", "-o", "json"}, testedByOwn...)...)
	if err != nil {
		return failed(err.Error() + "\n" + text)
	}
	args := []string{"go", "test", "-json"}
	for _, p := range testedByOwn {
		args = append(args, "./"+p+"/...")
	}
	out, runErr := c.command(ctx, args).Output()
	want, _, err := readTests(bytes.NewReader(out), io.Discard)
	if err != nil {
		return failed(err.Error())
	}
	got := tally{r.Counts.Passed, r.Counts.Failed, r.Counts.Skipped}
	if got != want || (r.Outcome == "passed") != (runErr == nil) || want.failed > 0 || want.passed == 0 {
		return failed(fmt.Sprintf("reconcile test: %s, %+v; go test: %v, %+v\n%s", r.Outcome, got, runErr, want, text))
	}
	return passed()
}
