package repotest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const memoryPage = "docs/memory.md"

// memoryRow is a row of the page's table of scenarios: the number, the package, and what the names of its tests begin
// with.
var memoryRow = regexp.MustCompile("(?m)^\\| (T[0-9]+) \\|.*`go test (\\./[a-z/]+) -run (TestT[0-9]+_)`")

// TestMemoryScenariosAreTests: the page lists the twelve scenarios of agentx-spec, memory pipeline 8.3, and each is a test
// in the package that the page names.
func TestMemoryScenariosAreTests(t *testing.T) {
	rows := memoryRow.FindAllStringSubmatch(read(t, memoryPage), -1)
	if len(rows) != 12 {
		t.Fatalf("%s lists %d scenarios, not T1 to T12", memoryPage, len(rows))
	}
	for _, row := range rows {
		scenario, folder, prefix := row[1], row[2], row[3]
		if prefix != "Test"+scenario+"_" {
			t.Errorf("%s: %s is run by %s", memoryPage, scenario, prefix)
		}
		begins := func(name string) bool { return strings.HasPrefix(name, prefix) }
		if !slices.ContainsFunc(testsOf(t, folder), begins) {
			t.Errorf("%s: no test in %s is called %s…", memoryPage, folder, prefix)
		}
	}
}
