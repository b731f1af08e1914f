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

// own runs a command of the program as it is here with an input, and decodes its output.
func (c *checker) own(ctx context.Context, in io.Reader, args ...string) (r checked, text string, err error) {
	cmd := c.command(ctx, append([]string{"go", "run", scriptsPackage}, args...))
	cmd.Env = append(slices.Clone(cmd.Env), "RECONCILE_ALLOW=checks")
	cmd.Stdin = in
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
	r, text, err := c.own(ctx, nil, args...)
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

// testItself compares what "reconcile test" reports with what go test does: of some packages that it runs, and of all tests that the steps before
// have run, by their events.
func testItself(ctx context.Context, c *checker) result {
	args := []string{"go", "test", "-json"}
	for _, p := range testedByOwn {
		args = append(args, "./"+p+"/...")
	}
	out, runErr := c.command(ctx, args).Output()
	want, _, err := readTests(bytes.NewReader(out), io.Discard)
	if err != nil {
		return failed(err.Error())
	}
	if want.failed > 0 || want.passed == 0 || runErr != nil {
		return failed(fmt.Sprintf("go test: %v, %+v", runErr, want))
	}
	said := c.agrees(ctx, want, nil, append([]string{"test", "-o", "json"}, testedByOwn...)...)
	if said == "" && c.ran.Len() > 0 {
		said = c.agrees(ctx, c.counted, &c.ran, "test", "-o", "json", "--read", "go-test-json=-")
	}
	if said != "" {
		return failed(said)
	}
	return passed()
}

// agrees says where what the program reports differs from a tally of go test; "" if it does not.
func (c *checker) agrees(ctx context.Context, want tally, in io.Reader, args ...string) string {
	r, text, err := c.own(ctx, in, args...)
	if err != nil {
		return err.Error() + "\n" + text
	}
	got := tally{r.Counts.Passed, r.Counts.Failed, r.Counts.Skipped}
	outcome := "passed"
	if want.failed > 0 {
		outcome, want.failed, got.failed = "failed", 0, 0 // go test counts a package that does not build, too
	}
	if got != want || r.Outcome != outcome {
		return fmt.Sprintf("reconcile %s: %s, %+v; go test: %s, %+v\n%s", strings.Join(args, " "), r.Outcome, got, outcome, want, text)
	}
	return ""
}
