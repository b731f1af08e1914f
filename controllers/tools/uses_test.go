package tools

import (
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/checks"
)

// TestUses: type checkers look at what uses files that changed, and what else judges more than single files at what used removed ones. What does not says so.
func TestUses(t *testing.T) {
	byPackage, byFile, formatter := tool("vet", "", "vet", "{packages}"), tool("lint", "", "lint", "{files}"), tool("fmt", "", "fmt")
	types, list := tool("types", "", "types", "{files}"), tool("list", "", "list", "{files}")
	formatter.Category, list.Role.List = checks.Formatter, true
	vet, folder := byPackage, tool("folder", "", "folder")
	for _, x := range []*Discovered{&types, &list, &vet, &folder} {
		x.Category = checks.TypeChecker
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
		{"a package that changed", []Discovered{byPackage, vet}, []string{"a/a.go"}, nil, []string{"vet ./a", "vet ./a ./b"}, nil},
		{"a file that changed", []Discovered{types, list, byFile}, []string{"a/a.go"}, nil, []string{"types a/a.go b/b.go new.go", "list a/a.go b/b.go c/c.go new.go", "lint a/a.go"}, nil},
		{"the folder of a file that changed", []Discovered{folder}, []string{"a/a.go"}, nil, []string{"folder"}, nil},
		{"another language", []Discovered{byPackage, byFile}, []string{}, []string{"gone.md"}, nil, nil},
	} {
		jobs, unjudged := Uses(Jobs(c.found, c.changed, all), c.found, Change{c.changed, c.removed, all, map[string]string{"a": "its package changed", "b": "it imports a"},
			func(of, among []string) []string {
				mention := map[string]string{"b/b.go": "a/a.go", "new.go": "b/b.go"}
				return slices.DeleteFunc(among, func(f string) bool { return !slices.Contains(of, mention[f]) })
			}})
		var got []string
		for _, j := range jobs {
			got = append(got, strings.Join(j.Command(nil), " "))
			if in, _ := j.Scope([]checks.Finding{{File: "b/b.go"}}); j.Uses && len(in) > 0 {
				t.Errorf("%s: %s counts what is old", c.name, j.Tool.Tool)
			}
			if joins := j.Tool.Role.joins() && (len(c.removed) > 0 || j.Tool.Category == checks.TypeChecker); j.Uses != joins {
				t.Errorf("%s: %s counts what is new elsewhere: %v, want %v", c.name, j.Tool.Tool, j.Uses, joins)
			}
		}
		if !slices.Equal(got, c.want) || !slices.Equal(unjudged, c.unjudged) {
			t.Errorf("%s: %q, unjudged %q, want %q, %q", c.name, got, unjudged, c.want, c.unjudged)
		}
	}
}
