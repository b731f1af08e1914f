package tools

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// What keeps checks from seeing code without a word about that in a test: programs in place of those that are installed, places where no test runs,
// results that are expected, and code that knows when it is tested.

// runByChecks reports whether a file of a project is a program that checks run in place of one that is installed, or a part of one.
func runByChecks(file string) bool {
	dir, name := path.Split(file)
	parts := strings.Split(strings.TrimSuffix(dir, "/"), "/")
	for _, installed := range []string{"node_modules", ".venv", "venv", ".mvn", ".husky", ".githooks"} {
		if slices.Contains(parts, installed) {
			return true
		}
	}
	switch name {
	case "gradlew", "gradlew.bat", "mvnw", "mvnw.cmd", "sitecustomize.py", "usercustomize.py":
		return true
	}
	if strings.HasSuffix("/"+dir, "/gradle/wrapper/") {
		return true
	}
	program := strings.TrimSuffix(name, path.Ext(name))
	is := func(language string) bool {
		return slices.ContainsFunc(Catalog(), func(t Tool) bool {
			return path.Base(t.Program) == program && (language == "" || slices.Contains(t.Languages, language))
		})
	}
	if last := parts[len(parts)-1]; (last == "bin" || last == "tools" || last == "scripts") && is("") {
		return true
	}
	return path.Ext(name) == ".py" && is("python") || name == "__init__.py" && slices.ContainsFunc(Catalog(), func(t Tool) bool {
		return t.Program == parts[len(parts)-1] && slices.Contains(t.Languages, "python")
	})
}

// runsTests reports whether the tests of a file run where it is: tools leave some folders out.
func runsTests(file string) bool {
	if !IsTestFile(file) {
		return false
	}
	for part := range strings.SplitSeq(path.Dir(file), "/") {
		switch {
		case part == "testdata" || part == "node_modules":
			return false
		case path.Ext(file) == ".go" && (part == "vendor" || part != "." && part[0] == '.' || part != "" && part[0] == '_'):
			return false
		case path.Ext(file) == ".py" && (part == "build" || part == "dist" || part == "venv" || part != "." && part[0] == '.'):
			return false
		}
	}
	return path.Ext(file) != ".go" || path.Base(file)[0] != '_' && path.Base(file)[0] != '.'
}

// somewhere finds the name of a Go file with tests that runs on some systems only.
var somewhere = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`_(?:aix|android|darwin|dragonfly|freebsd|illumos|ios|js|linux|netbsd|openbsd|plan9|solaris|wasip1|windows|386|amd64|arm|arm64|loong64|mips\w*|ppc64\w*|riscv64|s390x|wasm)_test\.go$`)
})

// isSnapshot reports whether a file has what tests expect, as a run of theirs has written it.
func isSnapshot(file string) bool {
	return slices.Contains(strings.Split(path.Dir(file), "/"), "__snapshots__") ||
		slices.ContainsFunc([]string{"*.snap", "*.ambr", "*.golden", "*.approved.*", "*.verified.*"}, func(p string) bool { return matches(p, path.Base(file)) })
}

// dataFolders are folders with files that tests read.
var dataFolders = []string{"testdata", "test_data", "test-data", "fixtures", "__fixtures__", "golden", "goldens", "cassettes"}

// isTestData reports whether a file is one that tests read, such as an input or an expected output, by its folder: one for that, or, of files in no
// language that is checked, one of tests.
func isTestData(file string) bool {
	return slices.ContainsFunc(strings.Split(path.Dir(file), "/"), func(part string) bool {
		return slices.Contains(dataFolders, part) || LanguageOf(file) == "" && slices.Contains([]string{"test", "tests", "spec", "__tests__"}, part)
	})
}

// aware finds what makes code behave differently when it is tested, in a line.
var aware = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\btesting\.Testing\(\)|\bflag\.Lookup\("test\.|\bJEST_WORKER_ID\b|\bprocess\.env\.VITEST\b|\bPYTEST_CURRENT_TEST\b|["'](?:pytest|unittest)["'] in sys\.modules`)
})

// rustTest finds the mark of a test of Rust, which may be in any file and have any name.
var rustTest = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*#\[(?:\w+::)*(?:r?s?test)\b`) })
