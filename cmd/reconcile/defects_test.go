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
	"sync"
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
	"java": {"javac"}, "shell": {"shellcheck", "bats"}, "c": {"cppcheck", "clang-tidy"},
}

// releases are the numbers of a version's parts that make a release, for tools whose corrections of it find the same.
var releases = map[string]int{"go vet": 2, "go test": 2, "javac": 1}

// defectTable is the table of what the tools find: its page, and its rows by language and tool.
type defectTable struct {
	page string

	mu   sync.Mutex
	rows map[string]string
}

// defectRow matches a row: language, tool, version, found, planted, false alarms.
var defectRow = regexp.MustCompile(`(?m)^\| (\S+) \| ([^|]+?)(?: (\d\S*))? \| (\d+) of (\d+) \| (\d*) ?\|\n`)

func readDefectTable(t *testing.T) *defectTable {
	d := &defectTable{page: "../../docs/checks.md", rows: map[string]string{}}
	text, err := os.ReadFile(d.page)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range defectRow.FindAllStringSubmatch(string(text), -1) {
		d.rows[row[1]+" "+row[2]] = row[0]
	}
	return d
}

// compare compares a row with that of the page, or replaces it with -update. A row of another version says nothing about this one.
func (d *defectTable) compare(t *testing.T, language, tool, version, row string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := language + " " + tool
	if *update {
		d.rows[key] = row
		return
	}
	if old := defectRow.FindStringSubmatch(d.rows[key]); old != nil && old[3] != version {
		t.Skipf("the table has %s %s, and this is %s", tool, old[3], version)
	}
	if d.rows[key] != row {
		t.Errorf("%s has %q, want %q; -update writes it", d.page, d.rows[key], row)
	}
}

// write writes the rows to the page, those of a language together.
func (d *defectTable) write(t *testing.T) {
	text, err := os.ReadFile(d.page)
	if err != nil {
		t.Fatal(err)
	}
	var table string
	for _, language := range slices.Sorted(maps.Keys(defectTools)) {
		for _, tool := range append(slices.Sorted(slices.Values(defectTools[language])), "together") {
			table += d.rows[language+" "+tool]
		}
	}
	all := regexp.MustCompile(`(\| language \| tool .*\n\|[-|]+\n)(?:\|.*\n)*`)
	if err := os.WriteFile(d.page, all.ReplaceAll(text, []byte("${1}"+table)), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestDefects inspects and tests projects with planted defects, and their clean twins, by the real tools, and compares what is found with the
// table in docs/checks.md; -update rewrites it. A row whose tool is missing, or has another version, is skipped by its name.
func TestDefects(t *testing.T) {
	npm, asked := os.LookupEnv(checkTools)
	if !asked {
		t.Skip("not asked for; go run ./cmd/reconcile/internal/tools/check checks")
	}
	table := readDefectTable(t)
	t.Run("in", func(t *testing.T) {
		for language := range defectTools {
			t.Run(language, func(t *testing.T) {
				t.Parallel()
				extractDefects(t, language, npm).compare(t, table)
			})
		}
	})
	if *update {
		table.write(t)
	}
}

// compare checks both twins, and compares the row of each tool and of all together with the table.
func (p *project) compare(t *testing.T, table *defectTable) {
	planted, clean := p.check(t, "planted"), p.check(t, "clean")
	all, ran := map[string]bool{}, 0
	for _, tool := range defectTools[p.language] {
		t.Run(strings.ReplaceAll(tool, " ", "-"), func(t *testing.T) {
			of := func(c checks.Check) bool { return c.Tool == tool }
			i, j := slices.IndexFunc(planted, of), slices.IndexFunc(clean, of)
			if i < 0 || j < 0 || strings.Contains(planted[i].Reason, "is not installed") {
				t.Skipf("%s is not installed", tool)
			}
			defer func() {
				if t.Failed() {
					t.Logf("planted: %s\nclean: %s", told(planted[i]), told(clean[j]))
				}
			}()
			if planted[i].Version == "" && tool != "gofmt" {
				t.Skipf("%s did not say its version", tool)
			}
			if planted[i].Outcome == checks.Unknown || clean[j].Outcome == checks.Unknown {
				t.Error("a check is unknown")
			}
			version := planted[i].Version
			if n := releases[tool]; n > 0 {
				version = strings.Join(strings.SplitN(version, ".", n+1)[:n], ".")
			}
			found := p.found(planted[i])
			alarms := len(clean[j].Findings) + checks.Count(clean[j].Tests).Failed
			name := strings.TrimSpace(tool + " " + version)
			table.compare(t, p.language, tool, version, fmt.Sprintf("| %s | %s | %d of %d | %d |\n", p.language, name, len(found), len(p.defects), alarms))
			maps.Copy(all, found)
			ran++
		})
	}
	if ran == len(defectTools[p.language]) {
		table.compare(t, p.language, "together", "", fmt.Sprintf("| %s | together | %d of %d | |\n", p.language, len(all), len(p.defects)))
	}
}

// told says how a check ended, and what it found.
func told(c checks.Check) string {
	text := fmt.Sprintf("%s %s in %.1f s, %s: %s\n%s", c.Tool, c.Version, c.Seconds, c.Outcome, c.Reason, c.Output)
	for _, f := range c.Findings {
		text += "\n" + f.Text()
	}
	for _, test := range c.Tests {
		text += fmt.Sprintf("\n%s %s: %s", test.Name, test.Outcome, test.Message)
	}
	return text
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
	t.Parallel()
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
