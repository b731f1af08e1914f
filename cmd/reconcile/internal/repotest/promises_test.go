package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const promisesPage = "docs/reliability.md"

var (
	// testCommand is a go test in back quotes, with one folder.
	testCommand = regexp.MustCompile("`go test (\\./[a-z/]+)([^`]*)`")
	testName    = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z][A-Za-z]*`)
)

// testsOf returns the names of the tests and fuzz targets in a folder, of all systems.
func testsOf(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}

// TestPromisesNameTests: every command that the page gives runs something. A name may be the beginning of several.
func TestPromisesNameTests(t *testing.T) {
	commands := testCommand.FindAllStringSubmatch(read(t, promisesPage), -1)
	if len(commands) < 15 {
		t.Fatalf("%s names only %d test commands", promisesPage, len(commands))
	}
	for _, m := range commands {
		folder, there := m[1], testsOf(t, m[1])
		if len(there) == 0 {
			t.Errorf("%s: %s has no tests", promisesPage, folder)
		}
		for _, name := range testName.FindAllString(m[2], -1) {
			begins := func(f string) bool { return strings.HasPrefix(f, name) }
			if !slices.ContainsFunc(there, begins) {
				t.Errorf("%s: %s has no %s", promisesPage, folder, name)
			}
		}
	}
}

// TestStoriesNameTests: every story and sentence of the page names tests that there are.
func TestStoriesNameTests(t *testing.T) {
	text := read(t, promisesPage)
	_, stories, _ := strings.Cut(text, "\n### Pipelines, story by story\n")
	_, agents, _ := strings.Cut(text, "\n### Agents, sentence by sentence\n")
	stories, _, _ = strings.Cut(stories, "\n## ")
	agents, _, _ = strings.Cut(agents, "\n### ")
	var there []string
	folders := map[string]bool{}
	for _, file := range tracked(t) {
		if folder := path.Dir(file); strings.HasSuffix(file, "_test.go") && !folders[folder] {
			folders[folder] = true
			there = append(there, testsOf(t, folder)...)
		}
	}
	if pipelines, rows := 35, namedTests(t, stories, there); rows <= pipelines {
		t.Errorf("%d stories, want the %d of pipelines and those of checks, scheduling and workflows", rows, pipelines)
	}
	if rows := namedTests(t, agents, there); rows < 30 {
		t.Errorf("only %d sentences about agents", rows)
	}
}

// namedTests checks that the rows of tables name tests that there are, and counts them.
func namedTests(t *testing.T, tables string, there []string) (rows int) {
	t.Helper()
	for row := range strings.Lines(tables) {
		cells := strings.Split(row, " | ")
		if len(cells) != 2 || strings.HasPrefix(cells[1], "Shown by") {
			continue
		}
		rows++
		names := span.FindAllStringSubmatch(cells[1], -1)
		if len(names) == 0 && !strings.HasPrefix(cells[1], "—") {
			t.Errorf("%s names no test", row)
		}
		for _, m := range names {
			test, file, inFile := strings.Cut(m[1], "/")
			folder, ok := map[string]string{"TestScripts": "cmd/reconcile/testdata/script", "TestScenarios": "controllers/testdata"}[test]
			if inFile != ok || !slices.Contains(there, test) || inFile && !present(t, folder+"/"+file+".txtar") {
				t.Errorf("%s: there is no %s", promisesPage, m[1])
			}
		}
	}
	return rows
}
