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
	if len(in) != 2 || len(elsewhere) != 1 {
		t.Errorf("%v, %v elsewhere", in, elsewhere)
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

// A script or target of the team is what runs only if it is the tool alone, checks, and prints what can be read.
func TestOwnCommand(t *testing.T) {
	for _, c := range []struct{ tool, scripts, makefile, want string }{
		{"eslint", `"lint": "eslint src --max-warnings 0"`, "", "npm run -s lint -- --format json --no-warn-ignored"},
		{"eslint", `"lint": "npx eslint ."`, "", "npm run -s lint -- --format json --no-warn-ignored"},
		{"eslint", `"check": "eslint ."`, "", "npm run -s check -- --format json --no-warn-ignored"},
		{"eslint", `"lint": "eslint . || true"`, "", ""},
		{"eslint", `"lint": "eslint . ; true"`, "", ""},
		{"eslint", `"lint": "eslint . | tee out"`, "", ""},
		{"eslint", `"lint": "eslint . && prettier --check ."`, "", ""},
		{"eslint", `"lint": "eslint --fix ."`, "", ""},
		{"eslint", `"lint": "eslint --cache ."`, "", ""},
		{"eslint", `"lint": "eslint -f unix ."`, "", ""},
		{"eslint", `"lint": "eslint ' src/*.js'"`, "", ""},
		{"eslint", `"lint": "wrapped eslint ."`, "", ""},
		{"eslint", `"lint": "eslint .", "postlint": "true"`, "", ""},
		{"eslint", `"eslint": "eslint ."`, "", ""},
		{"prettier", `"format:check": "prettier --check ."`, "", ""},
		{"tsc", `"typecheck": "tsc --noEmit"`, "", "npm run -s typecheck -- --pretty false"},
		{"tsc", `"typecheck": "tsc --noEmit -p tsconfig.test.json"`, "", "npm run -s typecheck -- --pretty false"},
		{"vitest", `"test": "vitest run"`, "", "npm run -s test -- --reporter=json --outputFile={report}"},
		{"vitest", `"test": "vitest"`, "", ""},
		{"jest", `"test": "jest --json"`, "", ""},
		{"go vet", "", "check:\n\tgo vet ./...\n", "make -s -f Makefile check"},
		{"go vet", "", "check:\n\t@go vet ./...\n\nall: check\n", "make -s -f Makefile check"},
		{"go vet", "", "check:\n\t-go vet ./...\n", ""},
		{"go vet", "", "check:\n\t@-go vet ./...\n", ""},
		{"go vet", "", "check:\n\tgo vet ./... || true\n", ""},
		{"go vet", "", ".IGNORE:\ncheck:\n\tgo vet ./...\n", ""},
		{"go vet", "", "check: gen\n\tgo vet ./...\n", ""},
		{"go vet", "", "check:\n\tgo vet ./...\n\ttrue\n", ""},
		{"go vet", "", "check:\n\tgo vet $(ALL)\n", ""},
		{"staticcheck", "", "lint:\n\tstaticcheck ./...\n", ""},
		{"staticcheck", "", "lint:\n\tstaticcheck -f json ./...\n", ""},
		{"go test", "", "test:\n\tgo test ./...\n", ""},
	} {
		f := Facts{Folders: map[string]*Folder{"": {Texts: map[string]string{"package.json": "{\"scripts\": {" + c.scripts + "}}", "Makefile": c.makefile}}}}
		known, _ := entry(c.tool)
		r := known.Roles[slices.IndexFunc(known.Roles, func(r Role) bool { return r.Where == nil })]
		got, _, _ := (&discovery{facts: f}).ownCommand(known, r, "")
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s with %s%q: %q, want %q", c.tool, c.scripts, c.makefile, got, c.want)
		}
	}
}

// The command of the team runs for the whole folder only.
func TestOwnJobs(t *testing.T) {
	d := tool("vet", "", "vet", "{files}")
	d.Own, d.OwnFound = []string{"make", "lint"}, 2
	jobs := Jobs([]Discovered{d}, nil, nil)
	if got := strings.Join(jobs[0].Command(nil), " "); got != "make lint" || !slices.Equal(jobs[0].Tool.Role.Found, []int{1, 2}) {
		t.Error(got, jobs[0].Tool.Role.Found)
	}
	jobs = Jobs([]Discovered{d}, []string{"a.go"}, nil)
	if got := strings.Join(jobs[0].Command(nil), " "); got != "vet a.go" || jobs[0].Tool.Role.Found != nil {
		t.Error(got, jobs[0].Tool.Role.Found)
	}
}

// Reports are known by the ends of their paths, in any folder.
func TestReportsOfRoles(t *testing.T) {
	r := Role{Reports: []string{"build/test-results/*/TEST-*.xml"}}
	for p, want := range map[string]bool{
		"build/test-results/test/TEST-A.xml": true, "a/b/build/test-results/x/TEST-A.xml": true, "test-results/test/TEST-A.xml": false,
		"build/test-results/TEST-A.xml": false, "build/test-results/test/A.xml": false, "rebuild/test-results/test/TEST-A.xml": false,
	} {
		if r.IsReport(p) != want {
			t.Errorf("%s: %v", p, !want)
		}
	}
}

// A command may name the tool's configuration, below its folder.
func TestConfigInCommand(t *testing.T) {
	j := Job{Tool: Discovered{Folder: "a", Config: "a/config/x.xml", Role: Role{Check: []string{"x", "-c", "{config}", "--in={configFolder}"}}}}
	if got := j.Command(nil); !slices.Equal(got, []string{"x", "-c", "config/x.xml", "--in=config"}) {
		t.Errorf("%q", got)
	}
}

// TestJobsOfScripts: a file without an extension is checked by the tool for its language, by its first line.
func TestJobsOfScripts(t *testing.T) {
	for file, first := range map[string]string{"bin/a": "#!/usr/bin/env -S bash -e\n", "b": "#! /bin/sh\r\n", "c": "#!/usr/bin/python3.11", "d": "#!/usr/bin/env ruby"} {
		if l := ScriptLanguage(file, []byte(first)); !ChecksScripts(l) {
			t.Errorf("%s, %q: %q", file, first, l)
		}
	}
	for file, first := range map[string]string{"a.txt": "#!/bin/sh\n", "b": "#! \n", "c": "#!/usr/bin/env", "d": "#!/usr/bin/env node", "e": "/bin/sh", "Rakefile": "#!/bin/sh"} {
		if l := ScriptLanguage(file, []byte(first)); ChecksScripts(l) {
			t.Errorf("%s, %q: %q", file, first, l)
		}
	}
	d := Discovered{Tool: "a", Language: "bash", Check: []string{"a"}, Scripts: []string{"bin/a"}, Role: Role{Extensions: []string{".sh"}, Check: []string{"a", "{files}"}}}
	if jobs := Jobs([]Discovered{d}, []string{"bin/a", "bin/b"}, nil); len(jobs) != 1 || !slices.Equal(jobs[0].Files, []string{"bin/a"}) {
		t.Errorf("%+v", jobs)
	}
}
