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
		if got := TouchedPaths([]string{glob}); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q", glob, got, want)
		}
	}
	if got := TouchedPaths(nil); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
