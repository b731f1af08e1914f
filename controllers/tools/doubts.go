package tools

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/manifests"
	"reconcile.dev/reconcile/controllers/preview"
	"reconcile.dev/reconcile/schemas"
)

// Who wants to pass can change the code, or what looks at it. The latter is not forbidden: a person decides about it.

// declared finds the declaration of a test in a line, and its name.
var declared = regexp.MustCompile(`^\s*(?:func ((?:Test|Fuzz|Example|test)\w*)\(|(?:async )?def (test\w*)|(?:async )?fn (test\w*)\(|` +
	`(?:it|test|specify)(?:\.\w+)*[ (]\s*['"\x60]([^'"\x60]*)|@test ['"]([^'"]*)|` +
	`(?:public |protected |private )*(?:async )?(?:(?:void|Task) (\w+)|function (test\w*))\()`)

// skipped finds what keeps a test from running, or from failing, in a line.
var skipped = regexp.MustCompile(`\bt\.(Skip|SkipNow|Skipf)\(|@?\bpytest\.(mark\.)?(skip|skipif|xfail)\b|\bunittest\.(skip|expectedFailure)|\bself\.skipTest\(|` +
	`\b(it|test|describe|context|suite)\.(skip|todo|only|fails)\b|^\s*(xit|xtest|xdescribe|fit|fdescribe)\(|@(Disabled|Ignore)\b|#\[ignore|^\s*(skip|pending)( ['"]|$)`)

// silenced finds what keeps a linter or a type checker from a finding, in a line.
var silenced = regexp.MustCompile(`//\s*nolint|#\s*nosec|#\s*noqa|(ruff|flake8):\s*noqa|type:\s*ignore|(pylint|shellcheck|rubocop:)[:\s]\s*disable|(eslint|oxlint|stylelint)-disable|` +
	`@ts-(ignore|nocheck|expect-error)|biome-ignore|phpstan-ignore|pyright:\s*ignore|#!?\[allow\(|@SuppressWarnings|\bNOLINT|rubocop:disable`)

// Doubts says why a change may pass because the checks see less: tests that are gone or skipped, findings that are silenced, and configurations of
// tools that differ; none where it does nothing of that. files are those of a diff. It looks at names and lines, without a parser.
func Doubts(files []preview.File) (out []string) {
	gone, there := map[string]string{}, map[string]bool{}
	for i := range files {
		f := &files[i]
		before := f.Path
		if f.From != "" {
			before = f.From
		}
		for _, p := range slices.Compact([]string{before, f.Path}) {
			if configures(p) {
				out = append(out, fmt.Sprintf("changes %s, which says what is checked", p))
			}
		}
		wasTest, isTest := isTestFile(before), isTestFile(f.Path)
		if wasTest && !isTest {
			out = append(out, fmt.Sprintf("makes %s, which has tests, another file", before))
		}
		skips, silences := 0, 0
		for sign, line := range changedLines(f.Diff) {
			name := ""
			if m := declared.FindStringSubmatch(line); m != nil {
				name = strings.Join(m[1:], "")
			}
			switch {
			case sign == '-' && wasTest && name != "":
				gone[name] = before
			case sign == '+' && isTest && name != "":
				there[name] = true
			}
			if sign == '+' && isTest && skipped.MatchString(line) {
				skips++
			}
			if sign == '+' && silenced.MatchString(line) {
				silences++
			}
		}
		if skips > 0 {
			out = append(out, fmt.Sprintf("skips %s in %s", schemas.Count(skips, "test"), f.Path))
		}
		if silences > 0 {
			out = append(out, fmt.Sprintf("silences %s in %s", schemas.Count(silences, "finding"), f.Path))
		}
	}
	maps.DeleteFunc(gone, func(name, _ string) bool { return there[name] })
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		out = append(out, fmt.Sprintf("removes the test %s of %s", name, gone[name]))
	}
	return out
}

// changedLines yields the lines of a diff that are added ('+') and removed ('-').
func changedLines(diff string) func(func(byte, string) bool) {
	return func(yield func(byte, string) bool) {
		inHunk := false
		for line := range strings.Lines(diff) {
			switch {
			case strings.HasPrefix(line, "@@ "):
				inHunk = true
			case inHunk && (line[0] == '+' || line[0] == '-') && !yield(line[0], strings.TrimSuffix(line[1:], "\n")):
				return
			}
		}
	}
}

// isTestFile reports whether a file has tests by its name, for any tool.
func isTestFile(file string) bool {
	return slices.ContainsFunc(Catalog(), func(t Tool) bool {
		return slices.ContainsFunc(t.Roles, func(r Role) bool { return r.IsTest(file) })
	})
}

// builds are files that say mostly how the code is built, and that a tool for it is used.
var builds = []string{"*.sln", "*.slnx", "*.csproj", "mix.exs", "Package.swift", "build.zig", "*.cmake", "*.gradle", "*.gradle.kts"}

// configures reports whether a file says what some tool checks. Manifests, which say so in one of their sections, are none.
func configures(file string) bool {
	name := path.Base(file)
	is := func(pattern string) bool { return matches(pattern, name) }
	if manifests.Known(file) || slices.ContainsFunc(builds, is) {
		return false
	}
	return slices.ContainsFunc(Catalog(), func(t Tool) bool {
		return slices.ContainsFunc(t.Configs, func(c string) bool {
			return matches(c, name) || strings.Contains(c, "/") && matches(path.Base(c), name)
		})
	})
}
