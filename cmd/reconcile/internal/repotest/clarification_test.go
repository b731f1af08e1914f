package repotest

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
)

const clarificationPage = "docs/clarification.md"

// scenarios are the 17 critical test scenarios of agentx-spec 8.3, by their names there.
var scenarios = []string{
	"Lock acquire/release", "Stale lock cleanup", "Concurrent writers", "Lock timeout", "Scope validation",
	"Round limit enforcement", "Stale detection", "Stuck detection", "Deadlock detection", "TOML parsing",
	"EventBus events", "Chat rendering", "CLI rendering", "Full flow (happy path)", "Full flow (escalation)",
	"Local Mode parity", "GitHub Mode sync",
}

// scenarioRow is a row of the table of scenarios: a name, then commands that run a test each.
var (
	scenarioRow  = regexp.MustCompile(`(?m)^\| ([A-Z][^|]*) \|(.*go test .*)\|$`)
	scenarioTest = regexp.MustCompile(`go test (\./[a-z/]+) -run '?(\w+)(?:/(\w+))?`)
	scenarioName = regexp.MustCompile(`^TestScenario_`)
)

// TestScenariosAreTested: every scenario of the specification is on the page with tests that exist, and every test that
// is called after a scenario is on the page.
func TestScenariosAreTested(t *testing.T) {
	body := section(read(t, clarificationPage), "How it is tested")
	var rows, named []string
	for _, m := range scenarioRow.FindAllStringSubmatch(body, -1) {
		rows = append(rows, m[1])
		tests := scenarioTest.FindAllStringSubmatch(m[2], -1)
		if len(tests) == 0 {
			t.Errorf("%s names no test for %q", clarificationPage, m[1])
		}
		for _, c := range tests {
			folder, name, script := c[1], c[2], c[3]
			named = append(named, folder+" "+name)
			if !slices.Contains(testsOf(t, folder), name) {
				t.Errorf("%s: %s has no test %s", clarificationPage, folder, name)
			}
			if file := path.Join(folder, "testdata/script", script+".txtar"); script != "" && !present(t, path.Clean(file)) {
				t.Errorf("%s: there is no %s", clarificationPage, file)
			}
		}
	}
	if !slices.Equal(rows, scenarios) {
		t.Errorf("%s has the scenarios\n%q, the specification\n%q", clarificationPage, rows, scenarios)
	}
	for _, test := range scenarioTests(t) {
		if !slices.Contains(named, test) {
			t.Errorf("%s does not name the test of a scenario: %s", clarificationPage, test)
		}
	}
}

// scenarioTests lists the tests that are called after a scenario, each as "./folder Name".
func scenarioTests(t *testing.T) []string {
	t.Helper()
	var folders, found []string
	for _, p := range tracked(t) {
		if strings.HasSuffix(p, "_test.go") && !slices.Contains(folders, path.Dir(p)) {
			folders = append(folders, path.Dir(p))
		}
	}
	for _, folder := range folders {
		for _, name := range testsOf(t, filepath.FromSlash(folder)) {
			if scenarioName.MatchString(name) {
				found = append(found, "./"+folder+" "+name)
			}
		}
	}
	return found
}

var edge = regexp.MustCompile(`(?m)^    (\[\*\]|[a-z]+) --> (\[\*\]|[a-z]+)( :|$)`)

// TestPictureOfStates: the picture has the edges that the code goes along, and no others.
func TestPictureOfStates(t *testing.T) {
	states := []string{"", schemas.ClarificationPending, schemas.ClarificationAnswered, schemas.ClarificationResolved,
		schemas.ClarificationStale, schemas.ClarificationEscalated, schemas.ClarificationAbandoned}
	drawn := map[[2]string]bool{}
	for _, m := range edge.FindAllStringSubmatch(section(read(t, clarificationPage), "States"), -1) {
		if m[2] != "[*]" {
			drawn[[2]string{strings.Trim(m[1], "[*]"), m[2]}] = true
		}
	}
	if len(drawn) < 5 {
		t.Fatalf("%s draws only %d edges", clarificationPage, len(drawn))
	}
	for _, from := range states {
		for _, to := range states {
			if legal := clarify.Legal(from, to); legal != drawn[[2]string{from, to}] {
				t.Errorf("%s: from %q to %q is drawn: %t, legal: %t", clarificationPage, from, to, !legal, legal)
			}
		}
	}
}
