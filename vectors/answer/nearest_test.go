package answer

import (
	"fmt"
	"slices"
	"testing"
)

func TestNearestIDs(t *testing.T) {
	t.Parallel()
	ids := []string{
		"clarification/CLR-9-001", "dag/checks", "dag/checks:test", "docs/git.md", "docs/git.md#", "docs/git.md#sharing-a-branch", "import:net/http",
		"schemas/tree.go", "state/", "state/tree.go", "state/tree.go:Tree", "state/tree.go:Tree.Entries", "state/tree.go:Tree.Entry",
	}
	for word, want := range map[string][]string{
		"state/tree.go:Tree.Entri":  {"state/tree.go:Tree.Entries", "state/tree.go:Tree.Entry"},
		"state/tree.go:Tree.Enrty":  {"state/tree.go:Tree.Entry"},
		"./State/Tree.go:Tree.Ent":  {"state/tree.go:Tree.Entry", "state/tree.go:Tree.Entries"},
		"Tree.Entry":                {"state/tree.go:Tree.Entry"},
		"stat/tree.go":              {"state/tree.go", "schemas/tree.go"},
		"dag/chekcs":                {"dag/checks"},
		"docs/git.md#share-branch":  {"docs/git.md#sharing-a-branch"},
		"docs/git.md#sharng-branch": {"docs/git.md#sharing-a-branch"},
		"docs/gti.md#":              nil,
		"docs/git":                  {"docs/git.md", "docs/git.md#sharing-a-branch"},
		"sate":                      {"state/"},
		"net/http":                  {"import:net/http"},
		"something/else:Entirely":   nil,
	} {
		got := NearestIDs(word, slices.Values(ids), 3)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
	if got := NearestIDs("state/", slices.Values(ids), 2); !slices.Equal(got, []string{"state/", "state/tree.go"}) {
		t.Errorf("%q, want the two shortest that it begins", got)
	}
}

func BenchmarkNearestIDs(b *testing.B) {
	ids := make([]string, 100_000)
	for i := range ids {
		ids[i] = fmt.Sprintf("pkg/folder%d/file%d.go:Type%d.Method%d", i%200, i%2000, i%9000, i)
	}
	for b.Loop() {
		NearestIDs("pkg/folder7/file99.go:Tyep5.Mehtod5", slices.Values(ids), 3)
	}
}
