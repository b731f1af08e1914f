package repotest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const conditionsPage = "docs/conditions.md"

// words returns the values of a package's string constants whose names begin with one of the prefixes, sorted.
func words(t *testing.T, folder string, prefixes ...string) []string {
	t.Helper()
	var found []string
	for _, s := range sources(t) {
		if s.folder() != folder {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, value := range spec.Values {
				lit, isLiteral := value.(*ast.BasicLit)
				if !isLiteral || lit.Kind != token.STRING || i >= len(spec.Names) {
					continue
				}
				name := spec.Names[i].Name
				if slices.ContainsFunc(prefixes, func(p string) bool { return len(name) > len(p) && strings.HasPrefix(name, p) }) {
					if word, err := strconv.Unquote(lit.Value); err == nil {
						found = append(found, word)
					}
				}
			}
			return true
		})
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// section returns the part of a page below the heading, up to the next one of its level.
func section(page, heading string) string {
	_, rest, _ := strings.Cut(page, "\n## "+heading+"\n")
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

var inQuotes = regexp.MustCompile("`([A-Z][A-Za-z]+)`")

// firstCells returns the words in back quotes in the first column of a section's tables.
func firstCells(body string) []string {
	var found []string
	for line := range strings.Lines(body) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range inQuotes.FindAllStringSubmatch(cells[1], -1) {
			found = append(found, m[1])
		}
	}
	slices.Sort(found)
	return found
}

// TestReasonsAreExplained: the page has a row for each reason that a status can give, and for no other word.
func TestReasonsAreExplained(t *testing.T) {
	want := words(t, "controllers/settle", "Reason")
	if len(want) < 30 {
		t.Fatalf("only %d reasons found: %q", len(want), want)
	}
	got := firstCells(section(read(t, conditionsPage), "Reasons"))
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%s does not explain the reason %s", conditionsPage, w)
		}
	}
	for i, w := range got {
		if !slices.Contains(want, w) {
			t.Errorf("%s explains %s, which is no reason", conditionsPage, w)
		}
		if i > 0 && got[i-1] == w {
			t.Errorf("%s explains %s twice", conditionsPage, w)
		}
	}
}

// TestPhasesAreExplained does the same for the words of sessions, DAGs and actions, and for the states of nodes.
func TestPhasesAreExplained(t *testing.T) {
	page := read(t, conditionsPage)
	for _, c := range []struct {
		heading  string
		prefixes []string
	}{
		{"Phases", []string{"Session", "DAG", "Action"}},
		{"States of nodes", []string{"Node"}},
	} {
		want := words(t, "schemas", c.prefixes...)
		if len(want) < 5 {
			t.Fatalf("only %q found for %s", want, c.heading)
		}
		body := section(page, c.heading)
		for _, w := range want {
			if !strings.Contains(body, "`"+w+"`") {
				t.Errorf("%s does not explain %s under %q", conditionsPage, w, c.heading)
			}
		}
	}
}

func TestFirstCells(t *testing.T) {
	got := firstCells("| Reason | Of |\n|---|---|\n| `B`, `Aa` | `Cc` |\ntext `Dd`\n| `Ee` | x |\n")
	if want := []string{"Aa", "Ee"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
