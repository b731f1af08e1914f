package tools

import (
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/checks"
)

// TestRemovals: what judges more than single files runs for files that are gone, and what does not says so.
func TestRemovals(t *testing.T) {
	byPackage, byFile, formatter := tool("vet", "", "vet", "{packages}"), tool("lint", "", "lint", "{files}"), tool("fmt", "", "fmt")
	types, list := tool("types", "", "types", "{files}"), tool("list", "", "list", "{files}")
	formatter.Category, types.Category, list.Category, list.Role.List = checks.Formatter, checks.TypeChecker, checks.TypeChecker, true
	for _, x := range []*Discovered{&types, &list} {
		x.Role.Category = checks.TypeChecker
	}
	formatter.Role.Category = checks.Formatter
	all := []string{"a/a.go", "b/b.go", "c/c.go", "c/c.py", "new.go"}
	for _, c := range []struct {
		name     string
		found    []Discovered
		changed  []string
		removed  []string
		want     []string
		unjudged []string
	}{
		{"a package and its users", []Discovered{byPackage}, []string{}, []string{"a/gone.go"}, []string{"vet ./a ./b"}, nil},
		{"what changed, too", []Discovered{byPackage}, []string{"new.go"}, []string{"a/gone.go"}, []string{"vet ./. ./a ./b"}, nil},
		{"a package that is gone", []Discovered{byPackage}, []string{"new.go"}, []string{"x/gone.go"}, []string{"vet ./..."}, nil},
		{"the whole folder", []Discovered{types}, []string{"new.go"}, []string{"a/gone.go"}, []string{"types ."}, nil},
		{"all files, where it takes files", []Discovered{list}, []string{}, []string{"a/gone.go"}, []string{"list a/a.go b/b.go c/c.go new.go"}, nil},
		{"only tools for files", []Discovered{byFile, formatter}, []string{"new.go"}, []string{"a/gone.go"}, []string{"lint new.go", "fmt"}, []string{"a/gone.go"}},
		{"another language", []Discovered{byPackage, byFile}, []string{}, []string{"gone.md"}, nil, nil},
	} {
		jobs, unjudged := Removals(Jobs(c.found, c.changed, all), c.found, c.removed, all, map[string]string{"a": "its package changed", "b": "it imports a"})
		var got []string
		for _, j := range jobs {
			got = append(got, strings.Join(j.Command(nil), " "))
			if in, _ := j.Scope([]checks.Finding{{File: "b/b.go"}}); len(j.Removed) > 0 && len(in) > 0 {
				t.Errorf("%s: %s counts what is old", c.name, j.Tool.Tool)
			}
		}
		if !slices.Equal(got, c.want) || !slices.Equal(unjudged, c.unjudged) {
			t.Errorf("%s: %q, unjudged %q, want %q, %q", c.name, got, unjudged, c.want, c.unjudged)
		}
	}
}
