package repotest

import (
	"regexp"
	"strings"
	"testing"
)

const commandsPage = "docs/cli.md"

// commandLine is a line of the menu of reconcile --help: two blanks, a name, more blanks, a capital letter.
var commandLine = regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`)

// TestEveryCommandIsShown: the menu on the page is what the program prints (a console block), and what it lists has a
// section, or a row in the table of the verbs.
func TestEveryCommandIsShown(t *testing.T) {
	page := read(t, commandsPage)
	_, rest, _ := strings.Cut(page, "\n$ reconcile --help\n")
	menu, _, found := strings.Cut(rest, "\n```")
	names := commandLine.FindAllStringSubmatch(menu, -1)
	if !found || len(names) < 20 {
		t.Fatalf("%s shows %d commands of reconcile --help", commandsPage, len(names))
	}
	for _, m := range names {
		name := m[1]
		if name == "help" || name == "completion" {
			continue // explained in the introduction
		}
		if !strings.Contains(page, "\n### `"+name+"`\n") && !strings.Contains(page, "\n| `"+name+"` |") {
			t.Errorf("%s has no section for %s, and no row", commandsPage, name)
		}
	}
}
