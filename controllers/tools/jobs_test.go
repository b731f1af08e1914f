package tools

import (
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/checks"
)

func tool(name, folder string, check ...string) Discovered {
	return Discovered{Tool: name, Category: checks.Linter, Language: "go", Folder: folder, Check: check,
		Role: Role{Check: check, Extensions: []string{".go"}}}
}

func TestJobs(t *testing.T) {
	byFile, byPackage := tool("files", "", "files", "{files}"), tool("packages", "", "packages", "--", "{packages}")
	byPackage.Category = checks.TypeChecker
	whole, inner := tool("whole", "", "whole", "--out={report}"), tool("inner", "a/b", "inner", "{files}")
	whole.Category = checks.Formatter
	found := []Discovered{byFile, byPackage, whole, inner}
	lines := func(files []string) (out []string) {
		for _, j := range Jobs(found, files, nil) {
			out = append(out, strings.Join(j.Command(map[string]string{"report": "/tmp/r"}), " "))
		}
		return out
	}
	for _, c := range []struct {
		files []string
		want  []string
	}{
		{nil, []string{"files .", "packages -- ./...", "whole --out=/tmp/r", "inner ."}},
		{[]string{"x.go", "a/y.go", "a/z.go", "-odd.go", "a.py"}, []string{"files x.go a/y.go a/z.go ./-odd.go", "packages -- ./. ./a", "whole --out=/tmp/r"}},
		{[]string{"a/b/c/in.go"}, []string{"packages -- ./a/b/c", "whole --out=/tmp/r", "inner c/in.go"}},
		{[]string{"a.py"}, nil},
		{[]string{}, nil},
	} {
		if got := lines(c.files); !slices.Equal(got, c.want) {
			t.Errorf("%v:\n%q, want\n%q", c.files, got, c.want)
		}
	}
}

func TestScope(t *testing.T) {
	j := Jobs([]Discovered{tool("whole", "", "whole")}, []string{"a.go"}, nil)[0]
	in, elsewhere := j.Scope([]checks.Finding{{File: "a.go"}, {File: "b.go"}, {}})
	if len(in) != 2 || elsewhere != 1 {
		t.Errorf("%v, %d elsewhere", in, elsewhere)
	}
}

func TestOne(t *testing.T) {
	d := Discovered{Folder: "sub", Role: Role{One: []string{"pytest", "{file}::{test}"}}}
	if argv, ok := d.One(checks.Test{Name: "test_a", File: "sub/test_x.py"}); !ok || argv[1] != "test_x.py::test_a" {
		t.Errorf("%q, %v", argv, ok)
	}
	if _, ok := d.One(checks.Test{Name: "test_a"}); ok {
		t.Error("a test without a file can run alone")
	}
}
