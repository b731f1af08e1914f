package formats

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"reconcile.dev/reconcile/controllers/checks"
)

var update = flag.Bool("update", false, "rewrite what is expected of the outputs in testdata")

// parts are the formats whose output has parts with an end each, by how a part begins: cut between two, it looks like a whole one.
var parts = map[string]string{"go-test-json": `"Action":"start"`, "libtest": "running "}

// testFormats are the formats of test runs.
var testFormats = []string{"alcotest", "dart-test", "exunit", "go-test-json", "jest-json", "junit", "libtest", "minitest", "nextest", "rspec", "tap", "trx", "unittest", "zig-test"}

// recorded is an output of a real tool, shortened: a section of a file FORMAT.TOOL.txtar in testdata. The comment of the file names the
// version, and the command and the exit code of each section. The section NAME.want is how the output is read.
type recorded struct {
	format, file, name string
	data               []byte
	exit               int
}

func (r recorded) String() string { return r.file + "/" + r.name }

func (r recorded) read(data []byte) (checks.Report, error) {
	return Read(r.format, data, Options{Root: "/p", Module: "example.org/p", Tool: "tool"})
}

func recordings(t testing.TB) (all []recorded) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings", err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSuffix(filepath.Base(file), ".txtar")
		format, _, _ := strings.Cut(base, ".")
		for _, f := range a.Files {
			if strings.HasSuffix(f.Name, ".want") {
				continue
			}
			m := regexp.MustCompile(`(?m)^` + f.Name + `, exit code (\d+): `).FindSubmatch(a.Comment)
			if m == nil {
				t.Fatalf("%s does not say how %s was made", file, f.Name)
			}
			exit, _ := strconv.Atoi(string(m[1]))
			all = append(all, recorded{format, base, f.Name, f.Data, exit})
		}
	}
	return all
}

// TestRecordings reads what real tools printed. What they print about a clean file passes, what they print about a planted fault fails, and
// what they print when there is nothing to read, or when they are called wrongly, does not pass.
func TestRecordings(t *testing.T) {
	wants := map[string]string{}
	for _, r := range recordings(t) {
		got, outcome := describe(r)
		wants[r.String()] = got
		switch want := map[string]checks.Outcome{"clean": checks.Passed, "found": checks.Failed}[r.name]; {
		case want != "" && outcome != want:
			t.Errorf("%s: %s, want %s\n%s", r, outcome, want, got)
		case want == "" && outcome == checks.Passed:
			t.Errorf("%s passed\n%s", r, got)
		}
	}
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSuffix(filepath.Base(file), ".txtar")
		var out []txtar.File
		for _, f := range a.Files {
			name, isWant := strings.CutSuffix(f.Name, ".want")
			if !isWant {
				out = append(out, f, txtar.File{Name: f.Name + ".want", Data: []byte(wants[base+"/"+f.Name])})
			} else if got := wants[base+"/"+name]; got != string(f.Data) && !*update {
				t.Errorf("%s/%s is read as\n%swant\n%s", base, name, got, f.Data)
			}
		}
		if *update {
			a.Files = out
			if err := os.WriteFile(file, txtar.Format(a), 0o666); err != nil {
				t.Fatal(err)
			}
		} else if len(out) != len(a.Files) {
			t.Errorf("%s lacks what is expected; write it with -update", file)
		}
	}
}

// describe is a report in lines, and what it means.
func describe(r recorded) (string, checks.Outcome) {
	var b strings.Builder
	report, err := r.read(r.data)
	x := checks.Expected{Tests: slices.Contains(testFormats, r.format), Format: r.format, FailOn: checks.Info}
	for code := 1; code < 256; code++ {
		x.Found = append(x.Found, code)
	}
	e := checks.Ended{Exit: r.exit, Report: report}
	if err != nil {
		e.Unreadable = err.Error()
	}
	outcome, why := checks.Judge(x, e)
	if report.Coverage != nil { // coverage is no check of its own
		outcome, why = checks.Passed, ""
	}
	fmt.Fprintf(&b, "%s %s\n", outcome, why)
	if err == nil {
		fmt.Fprintf(&b, "complete %v, ignored %d, files %d\n", report.Complete, report.Ignored, report.Files)
	}
	optional := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %s: %q\n", name, text[:min(len(text), 300)])
		}
	}
	for _, f := range report.Findings {
		fmt.Fprintf(&b, "%s:%d:%d-%d:%d %s %s: %q\n", f.File, f.Line, f.Column, f.EndLine, f.EndColumn, f.Severity, f.Rule, f.Message)
		optional("suggestion", f.Suggestion)
		optional("url", f.URL)
		for _, e := range f.Fixes {
			fmt.Fprintf(&b, "  fix: %d:%d-%d:%d %q\n", e.Line, e.Column, e.EndLine, e.EndColumn, e.Text)
		}
	}
	for _, t := range report.Tests {
		fmt.Fprintf(&b, "%s %s / %s %s:%d\n", t.Outcome, t.Suite, t.Name, t.File, t.Line)
		optional("message", t.Message)
		optional("expected", t.Expected)
		optional("actual", t.Actual)
	}
	for _, broken := range report.Broken {
		optional("broken", broken)
	}
	if c := report.Coverage; c != nil {
		fmt.Fprintf(&b, "%.1f%%\n", c.Percent)
		for _, f := range c.Files {
			fmt.Fprintf(&b, "%s %.1f%% %v\n", f.File, f.Percent, f.Uncovered)
		}
	}
	return b.String(), outcome
}

// TestCutOff cuts each recording at every tenth byte, and after each line. What is left is never read as a whole report with less in it, unless its format has no end.
func TestCutOff(t *testing.T) {
	for _, r := range recordings(t) {
		whole := len(strings.TrimSpace(string(r.data)))
		full, err := r.read(r.data)
		for n := range whole {
			if n%10 != 0 && r.data[n-1] != '\n' {
				continue
			}
			cut, cutErr := r.read(r.data[:n])
			next, _, _ := strings.Cut(strings.TrimSpace(string(r.data[n:])), "\n")
			if part := parts[r.format]; part != "" && strings.Contains(next, part) {
				continue
			}
			if !Ends(r.format) || cutErr != nil || !cut.Complete || cut.Ignored > 0 {
				continue
			}
			if err != nil || bad(cut) < bad(full) || len(cut.Tests) < len(full.Tests) {
				t.Errorf("%s is complete after %d of %d bytes: …%q", r, n, whole, r.data[max(n-60, 0):n])
				break
			}
		}
	}
}

// bad is the number of things in a report that keep a check from passing.
func bad(r checks.Report) int { return len(r.Findings) + checks.Count(r.Tests).Failed + len(r.Broken) }

// FuzzRead reads anything in any format: nothing panics, and every finding has a place that exists.
func FuzzRead(f *testing.F) {
	names := Names()
	for _, r := range recordings(f) {
		f.Add(uint8(slices.Index(names, r.format)), r.data[:min(len(r.data), 4000)])
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		r, err := Read(names[int(which)%len(names)], data, Options{Root: "/p", Folder: "f", Module: "example.org/p"})
		if err != nil && (r.Complete || len(r.Findings)+len(r.Tests) > 0) {
			t.Errorf("an error with a report: %v", err)
		}
		for _, f := range r.Findings {
			if f.Line < 0 || f.EndLine != 0 && f.EndLine < f.Line || strings.HasPrefix(f.File, "../") {
				t.Errorf("%+v", f)
			}
		}
	})
}

// TestWrittenIsRead writes findings as SARIF and tests as JUnit XML, and reads the same.
func TestWrittenIsRead(t *testing.T) {
	var findings []checks.Finding
	var tests []checks.Test
	for _, r := range recordings(t) {
		report, err := r.read(r.data)
		if err != nil {
			continue
		}
		findings, tests = append(findings, report.Findings...), append(tests, report.Tests...)
	}
	tricky := checks.Finding{File: "a b/ü#%?:c.go", Range: checks.Range{Line: 3, Column: 2}, Severity: checks.Critical, Message: "say \"<&\"\n\ttwice", Rule: "r/1 <&>",
		URL: "https://example.org/r?a=1&b=2", Tool: "tool", Fixes: []checks.Edit{{Range: checks.Range{Line: 3, Column: 2, EndLine: 3, EndColumn: 4}, Text: "<\n>"}}, Suggestion: "do"}
	for _, s := range checks.Severities() {
		f := tricky
		f.Severity = s
		findings = append(findings, f)
	}
	checks.Identify(findings)
	var all []Annotation
	for _, f := range findings {
		all = append(all, Annotation{Finding: f})
	}
	var b strings.Builder
	if err := WriteSARIF(&b, "", "tool", "1", all); err != nil {
		t.Fatal(err)
	}
	report, err := Read("sarif", []byte(b.String()), Options{Root: "/p", Tool: "tool"})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range findings {
		f.ID = ""
		if f.Rule == "" {
			f.Rule = f.Tool // SARIF names a rule
		}
		if f.URL == "" {
			f.URL = report.Findings[i].URL // it has one of a rule for all its results
		}
		if f.File == "" {
			f.Range, f.Fixes = checks.Range{}, nil
		}
		if len(f.Fixes) == 0 {
			f.Suggestion = "" // it is the description of a fix
		}
		if got := report.Findings[i]; !reflect.DeepEqual(got, f) {
			t.Errorf("written %+v\nread    %+v", f, got)
		}
	}
	if len(report.Findings) != len(findings) {
		t.Errorf("%d findings, want %d", len(report.Findings), len(findings))
	}

	b.Reset()
	if err := WriteJUnit(&b, []checks.Check{{Tool: "tool", Outcome: checks.Failed, Tests: tests}}); err != nil {
		t.Fatal(err)
	}
	report, err = Read("junit", []byte(b.String()), Options{Root: "/p"})
	if err != nil || len(report.Tests) != len(tests) {
		t.Fatal(err, len(report.Tests), len(tests))
	}
	for i, want := range tests {
		got := report.Tests[i]
		if want.Suite == "" {
			want.Suite = "tool"
		}
		if got.Name != want.Name || got.Suite != want.Suite || got.Outcome != want.Outcome || want.File != "" && got.File != want.File || want.Line != 0 && got.Line != want.Line ||
			math.Abs(got.Seconds-want.Seconds) > 0.001 || want.Message != "" && strings.Fields(got.Message)[0] != strings.Fields(want.Message)[0] {
			t.Errorf("written %+v\nread    %+v", want, got)
		}
	}
}

// BenchmarkRead reads 100,000 lines or records of each recording, repeated in the way that its format allows.
func BenchmarkRead(b *testing.B) {
	for _, r := range recordings(b) {
		if r.name != "found" || bytes.ContainsAny(r.data[:1], "{[<") && r.format != "go-test-json" && r.format != "cargo-json" && r.format != "staticcheck" {
			continue
		}
		lines := bytes.Count(r.data, []byte("\n"))
		data := bytes.Repeat(r.data, min(100_000/lines+1, 64<<20/len(r.data))) // no more is read
		b.Run(r.file, func(b *testing.B) {
			for b.Loop() {
				if _, err := r.read(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	document := func(name, format, before, item, after string) {
		data := []byte(before + strings.TrimSuffix(strings.Repeat(item+",", 100_000), ",") + after)
		if before == "<" {
			data = []byte("<testsuite>" + strings.Repeat(item, 100_000) + "</testsuite>")
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Read(format, data, Options{Root: "/p"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	document("sarif", "sarif", `{"version":"2.1.0","runs":[{"results":[`, `{"ruleId":"r","message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"},"region":{"startLine":3}}}]}`, `]}]}`)
	document("eslint", "eslint", `[`, `{"filePath":"/p/a.js","messages":[{"ruleId":"r","severity":2,"message":"m","line":1,"column":7}]}`, `]`)
	document("junit", "junit", "<", `<testcase name="a" classname="b"><failure message="m">E   assert 1 == 2</failure></testcase>`, "")
}

// TestForeign reads what is in no format at all, in each.
func TestForeign(t *testing.T) {
	for _, name := range Names() {
		for _, text := range []string{"<html><body>502 Bad Gateway</body></html>\n", "sh: 1: tool: not found\n", `{"error": "no licence"}` + "\n", "Password: ", "null", "3", "{}"} {
			if r, err := Read(name, []byte(text), Options{Root: "/p"}); err == nil && r.Complete && r.Ignored == 0 && bad(r) == 0 {
				t.Errorf("%s: %q is read as a clean report", name, text)
			}
		}
	}
}
