package tools

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/controllers/manifests"
	"reconcile.dev/reconcile/controllers/preview"
	"reconcile.dev/reconcile/schemas"
)

// An agent can make checks pass by a change of the code, or of the checks. The latter is not forbidden: a person decides about it.

// declared finds the declaration of a test in a line, and its name.
var declared = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:func ((?:Test|Fuzz|Example|test)\w*)\(|(?:async )?def (test\w*)|(?:async )?fn (test\w*)\(|` +
		`(?:it|test|specify)(?:\.\w+)*[ (]\s*['"\x60]([^'"\x60]*)|@test ['"]([^'"]*)|` +
		`(?:public |protected |private )*(?:async )?(?:(?:void|Task) (\w+)|function (test\w*))\(|` +
		`TEST(?:_[FP])?\((\w+, *\w+)\)|(?:@Test )?fun (test\w*|\x60[^\x60]+\x60)\()`)
})

// skipped finds what keeps a test from running, or from failing, in a line.
var skipped = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bt\.(Skip|SkipNow|Skipf)\(|@?\bpytest\.(mark\.)?(skip|skipif|xfail)\b|\bunittest\.(skip|expectedFailure)|\bself\.skipTest\(|` +
		`\b(it|test|describe|context|suite)\.(skip|todo|only|fails)\b|^\s*(xit|xtest|xdescribe|fit|fdescribe)\(|@(Disabled|Ignore)\b|#\[ignore|^\s*(skip|pending)( ['"]|$)|` +
		`\b(?:collect_ignore|pytest_plugins\b)|\bpytest_(collection_modifyitems|ignore_collect)\b|^\s*if \(?(false|False|0)\)?\s*[:{]|` +
		`^//\s*(go:build|\+build)\b|^func TestMain\(|#\[should_panic|\b__test__\s*=|\bimportorskip\(|` +
		`\bflag\.Set\("test\.|"-test\.(?:run|skip)\b|#!\[cfg\(|#\[cfg\((?:all|any|not)\(.*\btest\b|\b(?:globalThis|global)\.(?:it|test|describe|expect)\b\s*=[^=]|\bfilter_run(?:_\w+)?\b|` +
		`\bretryTimes\(|\bthis\.retries\(|\bmark\.flaky\b|@(?:RetryingTest|RepeatedIfExceptionsTest)\b|` +
		`\bos\.Exit\(0\)|\b(process\.exit|sys\.exit|os\._exit|System\.exit|process::exit)\(0?\)|\bpytest_(runtest_\w+|sessionfinish|pyfunc_call|report_teststatus)\b|` +
		`^\s*(if|unless)\b.*\b(os\.(Getenv|LookupEnv|getenv|environ)|process\.env|System\.getenv|env::var|ENV\[)`)
})

// silenced finds what keeps a linter or a type checker from a finding, in a line.
var silenced = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`//\s*nolint|#\s*nosec|#\s*noqa|(ruff|flake8):\s*noqa|type:\s*ignore|(pylint|shellcheck|rubocop:)[:\s]\s*disable|(eslint|oxlint|stylelint)-disable|` +
		`@ts-(ignore|nocheck|expect-error)|biome-ignore|phpstan-ignore|^// Code generated .* DO NOT EDIT\.$|pyright:\s*ignore|#!?\[allow\(|@SuppressWarnings|\bNOLINT|rubocop:(?:disable|todo)|` +
		`//\s*(?:lint:(?:file-)?ignore|revive:disable)\b|#\s*(?:pylint:\s*skip-file|mypy:\s*(?:ignore-errors|disable-error-code)|pyright:\s*basic|pragma:\s*no cover|fmt:\s*(?:off|skip))\b|` +
		`(?:istanbul|c8|v8) ignore\b|prettier-ignore|#!?\[rustfmt::skip|clang-format off|cppcheck-suppress|\bNOSONAR\b|:nocov:|@(?:psalm-suppress|codeCoverageIgnore)|phpcs:(?:ignore|disable)|` +
		`#pragma (?:GCC diagnostic ignored|warning disable)|\bSuppressMessage\b|@Suppress\(|swiftlint:disable|credo:disable|yamllint disable|tflint-ignore|hadolint ignore|@no_type_check`)
})

// linkMode is the mode of a symbolic link.
const linkMode = "120000"

// isLink reports whether a file is a new symbolic link, one that leads elsewhere than before, or one that has another name, of which a diff does not
// always have the mode. text is that of the file.
func isLink(f *preview.File, text []byte) bool {
	if f.NewMode != "" {
		return f.NewMode == linkMode
	}
	head, _, hunks := strings.Cut(f.Diff, "\n@@")
	if f.Status == preview.Renamed && !hunks {
		return len(text) > 0 && len(text) < 4096 && !strings.ContainsAny(string(text), " \t\n\x00")
	}
	return f.Status != preview.Removed && strings.Contains(head+"\n", " "+linkMode+"\n")
}

// escapesChecks reports whether a link has the name of a file that is checked, and leads to one that is not checked in its language: checks
// look at files, and not at links to them.
func escapesChecks(link, to string) bool {
	language, to := LanguageOf(link), strings.ReplaceAll(to, `\`, "/")
	if language == "" {
		return false
	}
	at := path.Join(path.Dir(link), to)
	return path.IsAbs(to) || at == ".." || strings.HasPrefix(at, "../") || LanguageOf(at) != language
}

// Doubts says why a change may pass because the checks see less: tests that are gone or skipped, or assert less; findings that are silenced; and what says
// which checks there are, in files of their own, in sections of manifests, and in commands of builds and CI; dependencies that are replaced in lock files and manifests. none where it does nothing of that.
// files are those of a diff; read returns the text of one before or after the change. It looks at names and lines, without a parser.
func Doubts(files []preview.File, read func(file string, after bool) ([]byte, error)) (out []string) {
	gone, there := map[string]string{}, map[string]bool{}
	var asserts asserting
	rust := 0 // tests of Rust that are gone
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	ranBy := runners(names, read)
	for i := range files {
		f := &files[i]
		before := f.Path
		if f.From != "" {
			before = f.From
		}
		for _, p := range slices.Compact([]string{before, f.Path}) {
			switch {
			case configures(p):
				out = append(out, fmt.Sprintf("changes %s, which says what is checked", p))
			case runByChecks(p):
				out = append(out, fmt.Sprintf("changes %s, which checks run", p))
			case isCopy(p):
				out = append(out, fmt.Sprintf("changes %s, which tests get in place of what is installed", p))
			case f.Status != preview.Added && ranBy[p] != "":
				out = append(out, fmt.Sprintf("changes %s, which %s runs", p, ranBy[p]))
			}
		}
		if slices.Contains(binaryLocks, path.Base(before)) && f.Status != preview.Added {
			out = append(out, fmt.Sprintf("changes %s, which nobody can read", before))
		}
		if f.Status != preview.Removed && (f.NewMode != "" || f.Status == preview.Renamed || strings.Contains(f.Diff, " "+linkMode+"\n")) {
			if to, err := read(f.Path, true); isLink(f, to) && (err != nil || escapesChecks(f.Path, string(to))) {
				out = append(out, fmt.Sprintf("makes %s a link to what is not checked as such", f.Path))
			}
		}
		wasTest, isTest := runsTests(before), runsTests(f.Path)
		switch {
		case f.Status == preview.Added:
		case isSnapshot(before):
			out = append(out, fmt.Sprintf("changes %s, which tests expect", before))
		case isTestData(before) && !wasTest:
			out = append(out, fmt.Sprintf("changes %s, which tests read", before))
		}
		switch {
		case wasTest && IsTestFile(f.Path) && !isTest:
			out = append(out, fmt.Sprintf("moves %s, which has tests, to where none run", before))
		case wasTest && !isTest:
			out = append(out, fmt.Sprintf("makes %s, which has tests, another file", before))
		case wasTest && somewhere().MatchString(f.Path) && !somewhere().MatchString(before):
			out = append(out, fmt.Sprintf("has the tests of %s run on some systems only", before))
		}
		built := manifests.Known(f.Path) || sectionsOf(path.Base(f.Path)) != nil || isBuild(f.Path)
		locks := lockReader(f.Path) != nil
		if wasTest || locks || built && !manifests.IsLock(f.Path) {
			was, is, err := sides(f, before, read)
			switch {
			case err != nil:
				out = append(out, fmt.Sprintf("changes %s, which nobody could read", f.Path))
			case wasTest && isTest:
				asserts.add(before, f.Path, was, is)
				for _, name := range minus(hidden(f.Path, is), hidden(before, was)) {
					out = append(out, fmt.Sprintf("hides a test %s of %s behind another one", name, f.Path))
				}
			default:
				out = append(out, replaced(f.Path, was, is)...)
				for _, part := range differs(f.Path, was, is) {
					out = append(out, fmt.Sprintf("changes %s: %s", f.Path, part))
				}
			}
		} else if isTest {
			if is, err := read(f.Path, true); err == nil {
				asserts.add(f.Path, f.Path, nil, is) // what it asserts may come from another file
			}
		}
		skips, silences, disarms, knows, replaces := 0, 0, 0, 0, 0
		named, marked := len(gone), 0
		left, unrun := map[string]int{}, map[string]int{} // commands of CI, and what adds tests to a build
		for sign, line := range changedLines(f.Diff) {
			name, _ := declaredTest(line)
			switch {
			case sign == '-' && wasTest && name != "":
				gone[name] = before
			case sign == '+' && isTest && name != "" && (f.Status != preview.Added || !somewhere().MatchString(f.Path)):
				there[name] = true
			}
			if path.Ext(f.Path) == ".rs" && name == "" && rustTest().MatchString(line) {
				marked += map[byte]int{'-': 1, '+': -1}[sign]
			}
			if sign == '+' && !isTest && aware().MatchString(line) {
				knows++
			}
			if sign == '+' && (isTest || isSetup(f.Path)) && skipped().MatchString(line) {
				skips++
			}
			if sign == '+' && (isTest && f.Status != preview.Added || isSetup(f.Path)) && standIn().MatchString(line) {
				replaces++
			}
			if built && runsMore().MatchString(line) {
				unrun[strings.TrimSpace(line)] += map[byte]int{'-': 1, '+': -1}[sign]
			}
			if sign == '+' && silenced().MatchString(line) {
				silences++
			}
			if sign == '+' && (built || isCI(f.Path)) && disarmed().MatchString(line) {
				disarms++
			}
			if trimmed := strings.TrimSpace(line); isCI(before) && command().MatchString(trimmed) && !strings.HasPrefix(trimmed, "#") {
				left[trimmed] += map[byte]int{'-': 1, '+': -1}[sign]
			}
		}
		if f.Status == preview.Removed && wasTest && len(gone) == named && path.Ext(before) != ".rs" { // which has them in all files
			out = append(out, fmt.Sprintf("removes %s, which has tests", before))
		}
		rust += marked
		maps.DeleteFunc(left, func(_ string, n int) bool { return n <= 0 })
		maps.DeleteFunc(unrun, func(_ string, n int) bool { return n <= 0 })
		for _, c := range []struct {
			n                int
			verb, what, from string
		}{{skips, "skips", "test", "in"}, {knows, "notices", "test run", "in"}, {silences, "silences", "finding", "in"}, {disarms, "ignores", "failure", "in"}, {len(left), "changes", "command", "of CI in"},
			{replaces, "puts", "stand-in", "for what is tested in"}, {len(unrun), "takes", "line", "that adds tests out of"}} {
			if c.n > 0 {
				out = append(out, fmt.Sprintf("%s %s %s %s", c.verb, schemas.Count(c.n, c.what), c.from, f.Path))
			}
		}
	}
	asserts.gone = maps.Clone(gone)
	maps.DeleteFunc(gone, func(name, _ string) bool { return there[name] })
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		out = append(out, fmt.Sprintf("removes the test %s of %s", name, gone[name]))
	}
	for name := range gone {
		if path.Ext(gone[name]) == ".rs" {
			rust--
		}
	}
	if rust > 0 {
		out = append(out, "has "+schemas.Count(rust, "test")+" of Rust less")
	}
	return append(out, asserts.doubts()...)
}

// sides reads a file before and after its change; a side that it does not have is nil.
func sides(f *preview.File, from string, read func(string, bool) ([]byte, error)) (before, after []byte, err error) {
	if f.Status != preview.Added {
		if before, err = read(from, false); err != nil {
			return nil, nil, err
		}
	}
	if f.Status != preview.Removed {
		after, err = read(f.Path, true)
	}
	return before, after, err
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

// IsTestFile reports whether a file has tests by its name, for any tool.
func IsTestFile(file string) bool {
	return slices.ContainsFunc(Catalog(), func(t Tool) bool {
		return slices.ContainsFunc(t.Roles, func(r Role) bool { return r.IsTest(file) })
	})
}

// IsAddedTest reports whether a new file has tests that run where it is, and what it has besides is used by tests only, by its name.
func IsAddedTest(file string) bool {
	return runsTests(file) && !runByChecks(file) && !configures(file) && !isBuild(file) && (path.Ext(file) != ".rs" || slices.Contains(strings.Split(path.Dir(file), "/"), "tests"))
}

// TestsIn are the names of the tests that a text declares, in its order.
func TestsIn(text []byte) (names []string) {
	for line := range strings.Lines(string(text)) {
		if name, ok := declaredTest(line); ok {
			names = append(names, name)
		}
	}
	return names
}

// builds are files that say mostly how the code is built, and that a tool for it is used.
var builds = []string{"CMakeLists.txt", "meson.build", "*.mk", "*.sln", "*.slnx", "*.csproj", "mix.exs", "Package.swift", "build.zig", "*.cmake", "*.gradle", "*.gradle.kts"}

// isBuild reports whether a file has the commands with which a project is built, or their settings.
func isBuild(file string) bool {
	name := path.Base(file)
	return slices.ContainsFunc([]string{"Makefile", "GNUmakefile", "makefile", "justfile", "Justfile"}, func(n string) bool { return n == name }) ||
		slices.ContainsFunc(builds, func(p string) bool { return matches(p, name) })
}

// settings are further files that configure checks.
var settings = []string{"tox.ini", "noxfile.py", ".coveragerc", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".overcommit.yml", "codecov.yml", ".codecov.yml", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml",
	"go.work", "go.env", "gradle.properties", "*.runsettings", "Directory.Build.props", "Directory.Build.targets", ".eslintignore", ".prettierignore", ".stylelintignore", ".nycrc*", ".c8rc*",
	"vitest.workspace.*", ".rubocop_todo.yml", "eslint-suppressions.json", "*-baseline.*"}

// configures reports whether a file says what some tool checks. Manifests, which do so in one of their sections, do not count.
func configures(file string) bool {
	name := path.Base(file)
	is := func(pattern string) bool { return matches(pattern, name) }
	if manifests.Known(file) || slices.ContainsFunc(builds, is) {
		return false
	}
	return slices.ContainsFunc(settings, is) || path.Base(path.Dir(file)) == ".cargo" && strings.HasPrefix(name, "config") || slices.ContainsFunc(Catalog(), func(t Tool) bool {
		return slices.ContainsFunc(t.Configs, func(c string) bool {
			return matches(c, name) || strings.Contains(c, "/") && matches(path.Base(c), name)
		})
	})
}
