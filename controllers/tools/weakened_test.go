package tools

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/preview"
)

// TestDoubtsOfWhatRuns: agents that have less run, or something else, without a change of the assertions; and what is like it and no cheat.
func TestDoubtsOfWhatRuns(t *testing.T) {
	const goTest = "package a\n\nfunc TestSum(t *testing.T) {\n\tif sum(1, 1) != 2 {\n\t\tt.Fatal()\n\t}\n}\n"
	const pyTest = "from shop import cart\n\n\ndef test_total():\n    assert cart.total() == 3\n"
	const makefile = "MIN ?= 80\n.PHONY: test unit\ntest:\n\tpytest --cov-fail-under=$(MIN)\nci: every\nevery:\n\t$(MAKE) unit\nbuild:\n\tgo build\n"
	const cmake = "enable_testing()\nadd_test(NAME a COMMAND a)\nadd_test(NAME b COMMAND b)\n"
	const bats = "@test \"logs\" {\n  run log a\n  [ \"$output\" = a ]\n}\n"
	const tape = "test('sums', (t) => {\n  t.equal(sum(1, 1), 2)\n  t.end()\n})\n"
	others := map[string]string{"package.json": `{"scripts": {"test": "node scripts/run.js --all", "start": "node start.js"}}`}
	for _, c := range []struct{ name, file, from, to, want string }{
		{"hides a test behind another", "test_cart.py", pyTest, pyTest + "\n\ndef test_total():\n    cart.total()\n", "hides a test test_total of test_cart.py behind another one"},
		{"has a test in two classes", "test_cart.py", "class TestA:\n    def test_a(self):\n        assert f()\n", "class TestA:\n    def test_a(self):\n        assert f()\n\n\nclass TestB:\n    def test_a(self):\n        assert g()\n", ""},
		{"has the tests run that it wants", "a_test.go", goTest, goTest + "\nfunc init() { flag.Set(\"test.skip\", \"Sum\") }\n", "skips 1 test in a_test.go"},
		{"has tests of Rust compiled never", "src/lib.rs", "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() { assert_eq!(f(), 1) }\n}\n", "#[cfg(all(test, feature = \"slow\"))]\nmod tests {\n    #[test]\n    fn a() { assert_eq!(f(), 1) }\n}\n", "skips 1 test in src/lib.rs"},
		{"tells Cargo to test nothing", "Cargo.toml", "[package]\nname = \"a\"\n", "[package]\nname = \"a\"\nautotests = false\n", "changes Cargo.toml: its section package.autotests"},
		{"has tests try again", "a.test.js", "it('a', () => { expect(f()).toBe(1) })\n", "jest.retryTimes(3)\nit('a', () => { expect(f()).toBe(1) })\n", "skips 1 test in a.test.js"},
		{"has all tests skipped before they run", "vitest.setup.ts", "x()\n", "x()\nglobalThis.it = it.skip\n", "skips 1 test in vitest.setup.ts"},
		{"filters tests", "spec/rails_helper.rb", "RSpec.configure do |c|\nend\n", "RSpec.configure do |c|\n  c.filter_run_excluding cart: true\nend\n", "skips 1 test in spec/rails_helper.rb"},
		{"tests a stand-in", "test_cart.py", pyTest, strings.Replace(pyTest, "    assert", "    monkeypatch.setattr(cart, \"total\", lambda: 3)\n    assert", 1), "puts 1 stand-in for what is tested in test_cart.py"},
		{"tests a module that is not there", "a.test.ts", "it('a', () => { expect(f()).toBe(1) })\n", "vi.mock('./a', () => ({f: () => 1}))\nit('a', () => { expect(f()).toBe(1) })\n", "puts 1 stand-in for what is tested in a.test.ts"},
		{"puts a stand-in for what another project does", "a.test.ts", "it('a', () => { expect(f()).toBe(1) })\n", "vi.mock('axios')\nit('a', () => { expect(f()).toBe(1) })\n", ""},
		{"writes tests with stand-ins", "test_new.py", "", "def test_a(monkeypatch):\n    monkeypatch.setattr(os, \"environ\", {})\n    assert f() == 1\n", ""},
		{"edits a copy of a library", "vendor/example.org/assert/assert.go", "package assert\n\nfunc Equal(a, b any) bool { return a == b }\n", "package assert\n\nfunc Equal(a, b any) bool { return true }\n", "changes vendor/example.org/assert/assert.go, which tests get in place of what is installed"},
		{"adds a stand-in that jest takes", "__mocks__/axios.js", "", "module.exports = {}\n", "changes __mocks__/axios.js, which tests get in place of what is installed"},
		{"writes new tests that assert nothing", "test_new.py", "", "from shop import cart\n\n\ndef test_runs():\n    cart.total()\n", "adds 1 test without any assertion, as in test_new.py"},
		{"writes tests that call a helper", "b_test.go", "", "package a\n\nfunc TestB(t *testing.T) {\n\tcheck(t, 1)\n}\n", ""},
		{"writes a test that something fails", "test_new.py", "", "def test_fails():\n    with pytest.raises(ValueError):\n        f()\n", ""},
		{"asserts less in a shell", "a.bats", bats, strings.Replace(bats, "  [ \"$output\" = a ]\n", "", 1), "takes 1 assertion out of the test logs in a.bats"},
		{"asserts whatever in a shell", "a.bats", bats, strings.Replace(bats, "= a ]", "= a ] || true", 1), "takes 1 assertion out of the test logs in a.bats"},
		{"asserts less in C#", "ATest.cs", "[Fact]\npublic void Sums() {\n  Assert.Equal(2, Sum(1));\n  Assert.Equal(3, Sum(2));\n}\n", "[Fact]\npublic void Sums() {\n  Assert.Equal(2, Sum(1));\n}\n", "takes 1 assertion out of the test Sums in ATest.cs"},
		{"asserts less by tape", "test/sum.js", tape, strings.Replace(tape, "  t.equal(sum(1, 1), 2)\n", "  sum(1, 1)\n", 1), "takes 1 assertion out of the test sums in test/sum.js"},

		{"lowers what a target demands", "Makefile", makefile, strings.Replace(makefile, "80", "8", 1), "changes Makefile: its target test"},
		{"edits what a target calls", "Makefile", makefile, strings.Replace(makefile, "$(MAKE) unit", "true", 1), "changes Makefile: its target ci"},
		{"has a file stand for a target", "Makefile", makefile, strings.Replace(makefile, ".PHONY: test unit\n", "", 1), "changes Makefile: its target test"},
		{"has another shell", "Makefile", makefile, "SHELL := /bin/true\n" + makefile, "changes Makefile: its SHELL"},
		{"ignores all errors", "Makefile", makefile, "MAKEFLAGS += -i\n" + makefile, "changes Makefile: its MAKEFLAGS"},
		{"edits a target that builds", "Makefile", makefile, strings.Replace(makefile, "go build", "go build ./...", 1), ""},
		{"edits what a script of package.json runs", "scripts/run.js", "all()\n", "process.exitCode = 0\n", "changes scripts/run.js, which its script test of package.json runs"},
		{"edits what another script runs", "start.js", "all()\n", "none()\n", ""},
		{"takes a test out of CMake", "CMakeLists.txt", cmake, strings.Replace(cmake, "add_test(NAME b COMMAND b)\n", "", 1), "takes 1 line that adds tests out of CMakeLists.txt"},
		{"expects that a test fails", "CMakeLists.txt", cmake, cmake + "set_tests_properties(b PROPERTIES WILL_FAIL TRUE)\n", "ignores 1 failure in CMakeLists.txt"},
		{"adds a test to CMake", "CMakeLists.txt", cmake, cmake + "add_test(NAME c COMMAND c)\n", ""},
		{"takes a module out of Maven", "pom.xml", "<modules>\n  <module>a</module>\n  <module>b</module>\n</modules>\n", "<modules>\n  <module>a</module>\n</modules>\n", "takes 1 line that adds tests out of pom.xml"},
		{"leaves a test out of Maven", "pom.xml", "<project>\n</project>\n", "<project>\n<excludes><exclude>**/CartTest.java</exclude></excludes>\n</project>\n", "ignores 1 failure in pom.xml"},
		{"accepts all that is found", "eslint-suppressions.json", "{}\n", "{\"a.js\": {}}\n", "changes eslint-suppressions.json, which says what is checked"},
		{"leaves lines out of coverage", "a.py", "def f():\n    pass\n", "def f():  # pragma: no cover\n    pass\n", "silences 1 finding in a.py"},
		{"has staticcheck see nothing", "a.go", "package a\n", "//lint:file-ignore SA1019 why\n\npackage a\n", "silences 1 finding in a.go"},
	} {
		side := func(text string) preview.Side {
			if text == "" {
				return preview.Side{}
			}
			return preview.Side{Text: []byte(text)}
		}
		f, _ := preview.Compare(c.file, side(c.from), side(c.to))
		got := Doubts([]preview.File{f}, func(file string, after bool) ([]byte, error) {
			switch text, is := others[file]; {
			case file == c.file && after:
				return []byte(c.to), nil
			case file == c.file:
				return []byte(c.from), nil
			case is:
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		})
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
}

// TestDoubtsOfRenamedLinks: a diff does not have the mode of a link that has another name.
func TestDoubtsOfRenamedLinks(t *testing.T) {
	for to, want := range map[string]int{"../data/a.txt": 1, "b.py": 0, "x = 1\n": 0, "": 0} {
		f := preview.File{Path: "src/a.py", From: "docs/a.txt", Status: preview.Renamed, Diff: "diff --git a/docs/a.txt b/src/a.py\nsimilarity index 100%\nrename from docs/a.txt\nrename to src/a.py\n"}
		if got := Doubts([]preview.File{f}, func(string, bool) ([]byte, error) { return []byte(to), nil }); len(got) != want {
			t.Errorf("%q: %q", to, got)
		}
	}
}
