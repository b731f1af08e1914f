package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"golang.org/x/tools/txtar"

	"reconcile.dev/reconcile/controllers/checks"
)

// checkTools is the environment variable that asks for the tests with the real tools that check code. Its value is a folder in which npm has
// installed some, or empty for those on the PATH only. The step "checks" of the project's checks sets it.
const checkTools = "RECONCILE_CHECK_TOOLS"

// defect is a planted one: a place, what is wrong, and the test that shows it.
type defect struct{ at, what, test string }

// project is a language's fixture, extracted: the folders planted and clean.
type project struct {
	language, dir string
	defects       []defect
}

// defectTools are the tools that each fixture needs.
var defectTools = map[string][]string{
	"go": {"golangci-lint", "staticcheck", "gofmt", "go vet", "go test"}, "python": {"flake8", "pylint", "black", "mypy", "pytest"},
	"typescript": {"eslint", "oxlint", "prettier", "tsc", "vitest"}, "rust": {"clippy", "rustfmt", "cargo check", "cargo test"},
	"java": {"javac"}, "shell": {"shellcheck", "bats"}, "c": {"cppcheck"},
}

// TestDefects inspects and tests projects with planted defects, and their clean twins, by the real tools, and compares what is found with the
// table in docs/checks.md; -update rewrites it.
func TestDefects(t *testing.T) {
	npm, asked := os.LookupEnv(checkTools)
	if !asked {
		t.Skip("not asked for; go run ./cmd/reconcile/internal/tools/check checks")
	}
	t.Setenv("PATH", filepath.Join(npm, "node_modules", ".bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	rows := map[string]string{}
	for _, language := range slices.Sorted(maps.Keys(defectTools)) {
		t.Run(language, func(t *testing.T) {
			p := extractDefects(t, language, npm)
			planted, clean := p.check(t, "planted"), p.check(t, "clean")
			all, ran := map[string]bool{}, 0
			for _, tool := range defectTools[language] {
				t.Run(strings.ReplaceAll(tool, " ", "-"), func(t *testing.T) {
					i := slices.IndexFunc(planted, func(c checks.Check) bool { return c.Tool == tool })
					j := slices.IndexFunc(clean, func(c checks.Check) bool { return c.Tool == tool })
					if i < 0 || j < 0 || strings.Contains(planted[i].Reason, "is not installed") {
						if os.Getenv("CI") != "" {
							t.Fatalf("%s is missing, and with CI=true nothing is left out", tool)
						}
						t.Skipf("%s is not installed", tool)
					}
					if planted[i].Outcome == checks.Unknown || clean[j].Outcome != checks.Passed {
						t.Errorf("planted: %s %s, clean: %s %s", planted[i].Outcome, planted[i].Reason, clean[j].Outcome, clean[j].Reason)
					}
					found := p.found(planted[i])
					maps.Copy(all, found)
					ran++
					alarms := len(clean[j].Findings) + checks.Count(clean[j].Tests).Failed
					rows[language+"\x00"+tool] = fmt.Sprintf("| %s | %s | %d of %d | %d |", language, tool, len(found), len(p.defects), alarms)
				})
			}
			if ran == len(defectTools[language]) {
				rows[language+"\x00~"] = fmt.Sprintf("| %s | together | %d of %d | |", language, len(all), len(p.defects))
			}
		})
	}
	compareTable(t, rows)
}

// compareTable compares the rows of the tools that ran with the table of the page.
func compareTable(t *testing.T, rows map[string]string) {
	const page = "../../docs/checks.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var table []string
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		table = append(table, rows[key])
		if !*update && !strings.Contains(string(text), rows[key]+"\n") {
			t.Errorf("%s lacks the row %s; -update writes it", page, rows[key])
		}
	}
	if *update {
		all := regexp.MustCompile(`(\| language \| tool .*\n\|[-|]+\n)(?:\|.*\n)*`)
		text = all.ReplaceAll(text, []byte("${1}"+strings.Join(table, "\n")+"\n"))
		if err := os.WriteFile(page, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func extractDefects(t *testing.T, language, npm string) *project {
	a, err := txtar.ParseFile(filepath.Join("testdata", "defects", language+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &project{language: language, dir: dir}
	for _, f := range a.Files {
		if f.Name == "defects" {
			for _, m := range regexp.MustCompile(`(?m)^(\S+) (.+?)(?: \[(.+)\])?$`).FindAllStringSubmatch(string(f.Data), -1) {
				p.defects = append(p.defects, defect{m[1], m[2], m[3]})
			}
			continue
		}
		writeFile(t, filepath.Join(dir, f.Name), f.Data)
	}
	for _, twin := range []string{"planted", "clean"} {
		if language == "typescript" && npm != "" {
			if err := os.Symlink(filepath.Join(npm, "node_modules"), filepath.Join(dir, twin, "node_modules")); err != nil {
				t.Fatal(err)
			}
		}
		p.git(t, twin, "init", "-q")
		p.commit(t, twin)
	}
	return p
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, data, 0o666)); err != nil {
		t.Fatal(err)
	}
}

func (p *project) git(t *testing.T, twin string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=ada", "-c", "user.email=ada@example.org"}, args...)...)
	cmd.Dir = filepath.Join(p.dir, twin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (p *project) commit(t *testing.T, twin string) {
	p.git(t, twin, "add", "-A")
	p.git(t, twin, "commit", "-qm", "all")
}

// run runs the program in a twin, and decodes what it prints.
func (p *project) run(t *testing.T, twin string, out any, args ...string) {
	t.Helper()
	cmd := exec.Command(self(t), append(args, "-o", "json")...)
	cmd.Dir = filepath.Join(p.dir, twin)
	cmd.Env = append(os.Environ(), "RECONCILE_ALLOW=checks", "NO_COLOR=1")
	var said strings.Builder
	cmd.Stderr = &said
	printed, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err := json.Unmarshal(printed, out); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, said.String())
	}
}

// check inspects and tests a twin.
func (p *project) check(t *testing.T, twin string) (all []checks.Check) {
	for _, command := range []string{"inspect", "test"} {
		var r struct {
			Checks []checks.Check `json:"checks"`
		}
		p.run(t, twin, &r, command)
		all = append(all, r.Checks...)
	}
	return all
}

// found are the defects that a check found: by a finding in the line, or by the test that shows it.
func (p *project) found(c checks.Check) map[string]bool {
	out := map[string]bool{}
	for _, d := range p.defects {
		byLine := func(f checks.Finding) bool { return d.at == f.File || d.at == fmt.Sprintf("%s:%d", f.File, f.Line) }
		byTest := func(t checks.Test) bool { return t.Name == d.test && t.Outcome == checks.TestFailed }
		if slices.ContainsFunc(c.Findings, byLine) || slices.ContainsFunc(c.Tests, byTest) {
			out[d.at] = true
		}
	}
	return out
}

// TestWrittenSARIF validates what inspect -o sarif writes by the schema of the standard, from the package @microsoft/jest-sarif.
func TestWrittenSARIF(t *testing.T) {
	npm := os.Getenv(checkTools)
	schema := filepath.Join(npm, "node_modules", "@microsoft", "jest-sarif", "lib", "schemas", "sarif-2.1.0-rtm.5.json")
	if _, err := os.Stat(schema); npm == "" || err != nil {
		t.Skip("the schema of SARIF is not installed")
	}
	s, err := jsonschema.Compile(schema)
	if err != nil {
		t.Fatal(err)
	}
	p := extractDefects(t, "python", "")
	cmd := exec.Command(self(t), "inspect", "-o", "sarif")
	cmd.Dir, cmd.Env = filepath.Join(p.dir, "planted"), append(os.Environ(), "RECONCILE_ALLOW=checks")
	out, _ := cmd.Output()
	var doc any
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(doc); err != nil {
		t.Errorf("%#v", err)
	}
}

// TestBlame diagnoses planted failures with real tools: a bug in the code, a wrong test, and a test that passes once in three runs.
func TestBlame(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and runs tests several times")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is not installed")
	}
	const test = "package p\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {\n\tif F() != %d {\n\t\tt.Fatal(F())\n\t}\n}\n"
	// The test passes in each third run, as a file beside the project counts them.
	const flaky = `package p

import (
	"os"
	"testing"
)

func TestF(t *testing.T) {
	runs, _ := os.ReadFile(%q)
	if err := os.WriteFile(%q, append(runs, 'x'), 0o666); err != nil {
		t.Fatal(err)
	}
	if (len(runs)+1)%%3 != 0 {
		t.Fatal("not now")
	}
}
`
	for _, c := range []struct {
		name, code, test string
		want             checks.Blame
	}{
		{"bug", "package p\n\nfunc F() int { return 2 }\n", fmt.Sprintf(test, 1), checks.Implementation},
		{"wrong", "package p\n\nfunc F() int { return 1 }\n", fmt.Sprintf(test, 2), checks.OfTest},
		{"flaky", "package p\n\nfunc F() int { return 1 }\n", "", checks.Flaky},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &project{dir: t.TempDir()}
			dir := filepath.Join(p.dir, "p")
			writeFile(t, filepath.Join(dir, "go.mod"), []byte("module example.org/p\n\ngo 1.24\n"))
			writeFile(t, filepath.Join(dir, "f.go"), []byte("package p\n\nfunc F() int { return 1 }\n"))
			writeFile(t, filepath.Join(dir, "f_test.go"), fmt.Appendf(nil, test, 1))
			p.git(t, "p", "init", "-q")
			p.commit(t, "p")
			if c.test == "" {
				count := filepath.Join(p.dir, "count")
				c.test = fmt.Sprintf(flaky, count, count)
			}
			writeFile(t, filepath.Join(dir, "f.go"), []byte(c.code))
			writeFile(t, filepath.Join(dir, "f_test.go"), []byte(c.test))
			var r struct {
				Diagnoses []checks.Diagnosis `json:"diagnoses"`
			}
			p.run(t, "p", &r, "test", "--diagnose")
			if len(r.Diagnoses) != 1 || r.Diagnoses[0].Blame != c.want {
				t.Errorf("%+v, want %s", r.Diagnoses, c.want)
			}
		})
	}
}
