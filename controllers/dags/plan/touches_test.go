package plan

import (
	"slices"
	"testing"
)

func TestTouchedPaths(t *testing.T) {
	for glob, want := range map[string]string{
		"src/api/**": "src/api", "src/*.go": "src", "src/a.go": "src/a.go", "*.md": "", "**": "", "docs/": "docs", "a/b?/c": "a",
		"a/{b,c}/d": "a",
	} {
		if got := touchedPaths([]string{glob}); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q", glob, got, want)
		}
	}
	if got := touchedPaths(nil); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
