package tools

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// This file knows further ways in which a change makes tests look at less: definitions that hide others, stand-ins for what is tested, copies of libraries, and
// scripts by which checks run.

// testClass finds a class of tests in Python or Ruby, whose methods may have the names of others.
var testClass = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*(?:class|describe|context)\b\s*(.*)`) })

// hidden are the tests of a file in Python or Ruby that another one of the same name, further down, replaces.
func hidden(file string, text []byte) (names []string) {
	if ext := path.Ext(file); ext != ".py" && ext != ".rb" {
		return nil
	}
	seen, class, depth := map[string]bool{}, "", 0
	for line := range strings.Lines(string(text)) {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		if m := testClass().FindStringSubmatch(line); m != nil {
			class, depth = m[1], indent
		} else if trimmed := strings.TrimSpace(line); trimmed != "" && indent == 0 && depth == 0 && trimmed[0] != '#' && trimmed[0] != '@' && trimmed[0] != ')' {
			class = ""
		}
		name, _ := declaredTest(line)
		if name == "" || !strings.HasPrefix(name, "test") {
			continue
		}
		if key := class + "\x00" + name; seen[key] {
			names = append(names, name)
		} else {
			seen[key] = true
		}
	}
	return names
}

// standIn finds what puts a stand-in in the place of code of the project, in a line of a test.
var standIn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:jest|vi)\.(?:mock|doMock|unstable_mockModule|setMock)\(\s*['"\x60][.@~]|\b(?:mock\.)?patch(?:\.object)?\(|\bmonkeypatch\.setattr\(|\ballow_any_instance_of\(|\bproxyquire\(`)
})

// isSetup reports whether a file prepares all tests of a folder, by its name.
func isSetup(file string) bool {
	return slices.ContainsFunc([]string{"conftest.py", "spec_helper.rb", "rails_helper.rb", "test_helper.rb", "test_helper.bash", "setupTests.*", "setup-tests.*", "jest.setup.*", "vitest.setup.*", "test-setup.*"},
		func(p string) bool { return matches(p, path.Base(file)) })
}

// isCopy reports whether a file is a part of a copy of a library that builds and tests use in place of what is installed.
func isCopy(file string) bool {
	return slices.ContainsFunc(strings.Split(path.Dir(file), "/"), func(part string) bool { return part == "vendor" || part == "third_party" || part == "__mocks__" })
}

// runsMore finds what adds tests to a build, in a line of a build file.
var runsMore = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:add_test|enable_testing|gtest_discover_tests|catch_discover_tests)\s*\(|^\s*<module>|^\s*include\s*\(?\s*['"]:|^\s*test\('`)
})

// runners names, for each file that checks run by its path, the part of a build file or package.json that does so; files are the ones that changed.
func runners(files []string, read func(file string, after bool) ([]byte, error)) map[string]string {
	out := map[string]string{}
	known := map[string]map[string]string{}
	for _, f := range files {
		if !slices.Contains([]string{"", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".py", ".rb"}, path.Ext(f)) {
			continue
		}
		for at := path.Dir(f); ; at = path.Dir(at) {
			for _, name := range []string{"package.json", "Makefile", "justfile"} {
				build := path.Join(at, name)
				parts, is := known[build]
				if !is {
					if text, err := read(build, false); err == nil {
						parts = checkedParts(build, text)
					}
					known[build] = parts
				}
				for part, command := range parts {
					if isWord(command, relative(strings.TrimPrefix(at, "."), f)) && (out[f] == "" || part < out[f]) {
						out[f] = part + " of " + build
					}
				}
			}
			if at == "." || at == "/" {
				break
			}
		}
	}
	return out
}

// isWord reports whether a command has a path as one of its words.
func isWord(command, file string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`;&|()=@", r) }), func(w string) bool {
		return path.Clean(w) == file
	})
}
