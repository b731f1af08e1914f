package tools

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/preview"
)

// TestDoubts: agents that cheat. What is like it and no cheat raises no doubt.
func TestDoubts(t *testing.T) {
	texts := map[bool]map[string]string{}
	file := func(p, was, now string) preview.File {
		for after, text := range map[bool]string{false: was, true: now} {
			if texts[after] == nil {
				texts[after] = map[string]string{}
			}
			texts[after][p] = text
		}
		side := func(text string) preview.Side {
			if text == "" {
				return preview.Side{}
			}
			return preview.Side{Text: []byte(text)}
		}
		f, _ := preview.Compare(p, side(was), side(now))
		return f
	}
	const goTest = "package a\n\nfunc TestSum(t *testing.T) {\n\tif sum(1, 1) != 2 {\n\t\tt.Fatal()\n\t}\n}\n"
	const twice = "package a\n\nfunc TestSum(t *testing.T) {\n\tassert.Equal(t, 2, sum(1, 1))\n\tassert.Equal(t, 3, sum(1, 2))\n}\n"
	const table = "package a\n\nfunc TestSum(t *testing.T) {\n\tfor in, want := range map[int]int{\n\t\t{1, 2},\n\t\t{3, 4},\n\t} {\n\t\tif sum(in) != want {\n\t\t\tt.Fatal()\n\t\t}\n\t}\n}\n"
	type kase struct {
		name  string
		files func() []preview.File
		want  []string
	}
	one := func(p, was, now string) func() []preview.File {
		return func() []preview.File { return []preview.File{file(p, was, now)} }
	}
	edit := func(p, text, from, to string) func() []preview.File {
		if !strings.Contains(text, from) {
			t.Fatalf("%q has no %q", text, from)
		}
		return one(p, text, strings.ReplaceAll(text, from, to))
	}
	cheats := []kase{
		{"deletes the failing test", func() []preview.File { return []preview.File{file("a/sum_test.go", goTest, "")} }, []string{"removes the test TestSum of a/sum_test.go"}},
		{"leaves a test out of the build", edit("a_test.go", goTest, "package a\n", "//go:build never\n\npackage a\n"), []string{"skips 1 test in a_test.go"}},
		{"ends before the tests", one("m_test.go", "", "package a\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(0)\n}\n"), []string{"skips 2 tests in m_test.go"}},
		{"puts another test in its place", func() []preview.File {
			return []preview.File{file("test_a.py", "def test_sum():\n    assert 0\n", "def test_true():\n    pass\n")}
		}, []string{"removes the test test_sum of test_a.py", "adds 1 test without any assertion, as in test_a.py"}},
		{"deletes a test of a suite", func() []preview.File {
			return []preview.File{file("a.test.ts", "it('sums', () => {})\nit('rest', () => {})\n", "it('rest', () => {})\n")}
		}, []string{"removes the test sums of a.test.ts"}},
		{"takes the failing case out", edit("a_test.go", table, "\t\t{3, 4},\n", ""), []string{"takes 1 row out of tables in a_test.go"}},
		{"takes a case of pytest out", one("test_a.py", "CASES = [\n    (1, 2),\n    pytest.param(3, 4),\n]\n", "CASES = [\n    (1, 2),\n]\n"), []string{"takes 1 row out of tables in test_a.py"}},
		{"replaces a case", edit("a_test.go", table, "{3, 4}", "{5, 6}"), nil},
		{"moves a case", func() []preview.File {
			return []preview.File{file("a_test.go", table, strings.ReplaceAll(table, "\t\t{3, 4},\n", "")), file("b_test.go", goTest, goTest+"var more = [][]int{\n\t{3, 4},\n}\n")}
		}, nil},
		{"waits longer", one("a.test.ts", "it('sums', () => { expect(sum()).toBe(2) })\njest.setTimeout(1000)\n", "it('sums', () => { expect(sum()).toBe(2) })\njest.setTimeout(60000)\n"), []string{"raises 1 time limit in a.test.ts"}},
		{"moves a test", func() []preview.File {
			return []preview.File{file("a_test.go", goTest, ""), file("b_test.go", "", goTest)}
		}, nil},
		{"hides a test", func() []preview.File { return []preview.File{file("a_test.go", goTest, ""), file("b.txt", "", goTest)} }, []string{"removes the test TestSum of a_test.go"}},
		{"renames a file with tests", func() []preview.File {
			return []preview.File{{Path: "tests.txt", From: "test_a.py", Status: preview.Renamed}}
		}, []string{"makes test_a.py, which has tests, another file"}},
		{"skips a test", func() []preview.File {
			return []preview.File{file("a_test.go", "package a\n", "package a\n\tt.Skip(\"slow\")\n")}
		}, []string{"skips 1 test in a_test.go"}},
		{"skips by a mark", func() []preview.File { return []preview.File{file("test_a.py", "x\n", "@pytest.mark.skip\nx\n")} }, []string{"skips 1 test in test_a.py"}},
		{"only runs another", func() []preview.File { return []preview.File{file("a.spec.ts", "x\n", "x\n  it.only('b', f)\n")} }, []string{"skips 1 test in a.spec.ts"}},
		{"silences a finding", func() []preview.File { return []preview.File{file("a.py", "import os\n", "import os  # noqa\n")} }, []string{"silences 1 finding in a.py"}},
		{"takes a silence out", func() []preview.File { return []preview.File{file("a.py", "import os  # noqa\n", "import os\n")} }, nil},
		{"changes what is checked", func() []preview.File { return []preview.File{file("web/.eslintrc.json", "{}\n", "{\"root\": true}\n")} }, []string{"changes web/.eslintrc.json, which says what is checked"}},
		{"adds an exception", func() []preview.File { return []preview.File{file(".flake8", "", "[flake8]\nignore = F401\n")} }, []string{"changes .flake8, which says what is checked"}},
		{"adds a dependency", func() []preview.File {
			return []preview.File{file("go.mod", "module a\n", "module a\nrequire b v1.0.0\n"), file("package.json", "{}\n", "{\"a\": 1}\n")}
		}, nil},
		{"writes code and tests", func() []preview.File {
			return []preview.File{file("a.go", "package a\n", "package a\nfunc test(t int) {}\n"), file("a_test.go", "package a\n", goTest)}
		}, nil},

		{"takes an assertion out", edit("a_test.go", twice, "\tassert.Equal(t, 3, sum(1, 2))\n", ""), []string{"takes 1 assertion out of the test TestSum in a_test.go"}},
		{"comments it out", edit("a_test.go", twice, "\tassert.Equal(t, 3", "\t// assert.Equal(t, 3"), []string{"takes 1 assertion out of the test TestSum in a_test.go"}},
		{"logs in place of a failure", edit("a_test.go", goTest, "t.Fatal()", "t.Log()"), []string{"takes 1 assertion out of the test TestSum in a_test.go"}},
		{"asserts a constant", edit("test_a.py", "def test_a():\n    assert f(1) == 2\n", "f(1) == 2", "True"), []string{"takes 1 assertion out of the test test_a in test_a.py"}},
		{"compares a value with itself", edit("test_a.py", "def test_a():\n    assert f(1) == 2\n", "f(1) == 2", "f(1) == f(1)"), []string{"takes 1 assertion out of the test test_a in test_a.py"}},
		{"expects a constant", edit("a.test.ts", "it('sums', () => {\n  expect(sum(1)).toBe(2)\n})\n", "expect(sum(1)).toBe(2)", "expect(true).toBe(true)"), []string{"takes 1 assertion out of the test sums in a.test.ts"}},
		{"asserts true in Rust", edit("tests/a.rs", "#[test]\nfn test_a() {\n    assert_eq!(f(), 2);\n}\n", "assert_eq!(f(), 2)", "assert!(true)"), []string{"takes 1 assertion out of the test test_a in tests/a.rs"}},
		{"empties a helper", edit("a_test.go", goTest+"\nfunc check(t *testing.T) {\n\tt.Fatal(1)\n}\n", "\tt.Fatal(1)\n", ""), []string{"takes 1 assertion out of what tests share in a_test.go"}},
		{"leaves a test early", edit("a_test.go", goTest, "\tif sum", "\tif false {\n\tif sum"), []string{"skips 1 test in a_test.go"}},
		{"keeps tests from being collected", one("conftest.py", "", "collect_ignore = ['test_a.py']\n"), []string{"skips 1 test in conftest.py"}},
		{"loads hooks from elsewhere", one("conftest.py", "", "pytest_plugins = ['quiet']\n"), []string{"skips 1 test in conftest.py"}},
		{"edits a script", edit("package.json", `{"scripts": {"test": "jest", "start": "node ."}}`, "jest", "jest --testPathIgnorePatterns a"), []string{"changes package.json: its script test"}},
		{"adds a script that checks", edit("package.json", `{"scripts": {"start": "node ."}}`, `"start"`, `"lint": "eslint one.js", "start"`), []string{"changes package.json: its script lint"}},
		{"edits a section", edit("package.json", `{"jest": {"bail": true}}`, "true", "false"), []string{"changes package.json: its section jest"}},
		{"takes a section out", edit("pyproject.toml", "[project]\nname = \"a\"\n[tool.mypy]\nstrict = true\n", "[tool.mypy]\nstrict = true\n", ""), []string{"changes pyproject.toml: its section tool.mypy"}},
		{"leaves files out of coverage", edit("pyproject.toml", "[tool.coverage.run]\nbranch = true\n", "branch", "omit = [\"a\"]\nbranch"), []string{"changes pyproject.toml: its section tool.coverage"}},
		{"allows what clippy finds", edit("Cargo.toml", "[package]\nname = \"a\"\n", "name", "version = \"1\"\n[lints.clippy]\nall"), []string{"changes Cargo.toml: its section lints"}},
		{"ignores a rule", edit("setup.cfg", "[metadata]\nname = a\n[flake8]\nmax = 1\n", "max", "ignore = F\nmax"), []string{"changes setup.cfg: its section flake8"}},
		{"edits tox", edit("tox.ini", "[testenv]\n", "testenv", "testenv:a"), []string{"changes tox.ini, which says what is checked"}},
		{"edits a target", edit("Makefile", "all: a\ntest:\n\tgo test ./...\n", "./...", "./a"), []string{"changes Makefile: its target test"}},
		{"breaks a manifest", edit("package.json", `{"jest": {}}`, "{}}", ""), []string{"changes package.json: all of it, since it has a version that is not valid", "changes package.json: its section jest"}},
		{"edits a command of CI", edit(".github/workflows/ci.yml", "jobs:\n  a:\n    - run: go test ./...\n", "./...", "./a"), []string{"changes 1 command of CI in .github/workflows/ci.yml"}},
		{"ignores a failure in CI", edit(".github/workflows/ci.yml", "jobs:\n  a:\n    - run: x\n", "run: x", "run: x || true"), []string{"ignores 1 failure in .github/workflows/ci.yml"}},
		{"skips the tests of Maven", edit("pom.xml", "<project>\n</project>\n", "<project>", "<project><properties><skipTests>true</skipTests></properties>"), []string{"ignores 1 failure in pom.xml"}},

		{"adds an assertion", edit("a_test.go", twice, "func TestSum(t *testing.T) {\n", "func TestSum(t *testing.T) {\n\tassert.Nil(t, x)\n"), nil},
		{"expects something else", edit("a_test.go", twice, "t, 3,", "t, 4,"), []string{"expects 1 other value in a_test.go"}},
		{"expects something else in Go", edit("a_test.go", goTest, "!= 2", "!= 3"), []string{"expects 1 other value in a_test.go"}},
		{"says it in other words", edit("a_test.go", strings.Replace(goTest, "Fatal()", "Fatal(\"no\")", 1), "\"no\"", "\"not two\""), nil},
		{"moves an assertion into a helper", edit("a_test.go", twice, "\tassert.Equal(t, 3, sum(1, 2))\n}\n", "\tmore(t)\n}\n\nfunc more(t *testing.T) {\n\tassert.Equal(t, 3, sum(1, 2))\n}\n"), nil},
		{"edits another script", edit("package.json", `{"scripts": {"test": "jest", "start": "node ."}}`, "node .", "node a"), nil},
		{"makes a new package", one("web/package.json", "", `{"scripts": {"test": "vitest run"}}`), nil},
		{"adds a dependency of Python", edit("pyproject.toml", "[project]\ndependencies = []\n[tool.ruff]\nline-length = 100\n", "[]", "[\"b\"]"), nil},
		{"edits another target", edit("Makefile", "build:\n\tgo build\ntest:\n\tgo test ./...\n", "go build", "go build ./..."), nil},
		{"brings an action up to date", edit(".github/workflows/ci.yml", "jobs:\n  a:\n    - uses: actions/checkout@v4\n    - run: go test\n", "@v4", "@v5"), nil},
	}
	cheats = append(cheats, []kase{
		{"commits a linter of its own", one("web/node_modules/.bin/eslint", "", "#!/bin/sh\n"), []string{"changes web/node_modules/.bin/eslint, which checks run"}},
		{"commits a program that its linter calls", one("node_modules/eslint/lib/api.js", "a\n", "b\n"), []string{"changes node_modules/eslint/lib/api.js, which checks run"}},
		{"commits a framework of its own", one("bin/pytest", "", "#!/bin/sh\n"), []string{"changes bin/pytest, which checks run"}},
		{"hides a framework by a module", one("pytest.py", "", "x\n"), []string{"changes pytest.py, which checks run"}},
		{"hides a linter by a package", one("flake8/__init__.py", "", "x\n"), []string{"changes flake8/__init__.py, which checks run"}},
		{"edits a wrapper", edit("gradlew", "exec java\n", "exec java", "exit 0"), []string{"changes gradlew, which checks run"}},
		{"downloads another build tool", edit(".mvn/wrapper/maven-wrapper.properties", "a=b\n", "b", "c"), []string{"changes .mvn/wrapper/maven-wrapper.properties, which checks run"}},
		{"changes what git runs at a commit", edit(".husky/pre-commit", "npm test\n", "npm test", "true"), []string{"changes .husky/pre-commit, which checks run"}},
		{"configures what git runs at a commit", edit("lefthook.yml", "pre-commit: {}\n", "{}", ""), []string{"changes lefthook.yml, which says what is checked"}},
		{"configures npm", one(".npmrc", "", "ignore-scripts=true\nscript-shell=/bin/true\n"), []string{"changes .npmrc, which says what is checked"}},
		{"has a workspace without the module", one("go.work", "", "go 1.26\n\nuse ./b\n"), []string{"changes go.work, which says what is checked"}},
		{"runs tests by a program of its own", one(".cargo/config.toml", "", "[target.x86_64-unknown-linux-gnu]\nrunner = \"true\"\n"), []string{"changes .cargo/config.toml, which says what is checked"}},
		{"ignores a folder", edit("go.mod", "module a\n\ngo 1.26\n", "go 1.26\n", "go 1.26\n\nignore ./b\n"), []string{"changes go.mod: its ignore of ./b"}},
		{"replaces a library", edit("go.mod", "module a\n\ngo 1.26\n", "go 1.26\n", "go 1.26\n\nreplace example.org/assert => ./assert\n"), []string{"changes go.mod: its replacement of example.org/assert"}},
		{"moves a test to where none run", func() []preview.File {
			return []preview.File{file("a/sum_test.go", goTest, ""), file("a/testdata/sum_test.go", "", goTest)}
		}, []string{"removes the test TestSum of a/sum_test.go"}},
		{"renames it to where none run", func() []preview.File {
			return []preview.File{{Path: "_a/sum_test.go", From: "a/sum_test.go", Status: preview.Renamed}}
		}, []string{"moves a/sum_test.go, which has tests, to where none run"}},
		{"renames it for another system", func() []preview.File {
			return []preview.File{{Path: "a/sum_plan9_test.go", From: "a/sum_test.go", Status: preview.Renamed}}
		}, []string{"has the tests of a/sum_test.go run on some systems only"}},
		{"writes it for another system", func() []preview.File {
			return []preview.File{file("a/add_test.go", goTest, ""), file("a/add_windows_test.go", "", goTest)}
		}, []string{"removes the test TestSum of a/add_test.go"}},
		{"accepts what is printed", edit("a/__snapshots__/a.test.ts.snap", "one\n", "one", "two"), []string{"changes a/__snapshots__/a.test.ts.snap, which tests expect"}},
		{"empties a test without assertions", edit("b_test.go", "package a\n\nfunc TestB(t *testing.T) {\n\tcheck(t, 1)\n}\n", "\tcheck(t, 1)\n", ""), []string{"empties the test TestB in b_test.go"}},
		{"returns at once", edit("c_test.go", "package a\n\nfunc TestC(t *testing.T) {\n\tcheck(t, 1)\n}\n", "\tcheck", "\treturn\n\tcheck"), []string{"empties the test TestC in c_test.go"}},
		{"returns before an assertion", edit("d_test.go", twice, "\tassert.Equal(t, 2", "\treturn\n\tassert.Equal(t, 2"), []string{"takes 2 assertions out of the test TestSum in d_test.go"}},
		{"asks for a variable", edit("e_test.go", goTest, "\tif sum", "\tif os.Getenv(\"ALL\") == \"\" {\n\t\treturn\n\t}\n\tif sum"), []string{"skips 1 test in e_test.go"}},
		{"skips by a variable", edit("f_test.go", goTest, "\tif sum", "\tif all == \"\" {\n\t\tt.Skip()\n\t}\n\tif sum"), []string{"skips 1 test in f_test.go"}},
		{"ends the run of tests", edit("g.test.js", "it('a', () => { expect(f()).toBe(1) })\n", "it", "process.exit(0)\nit"), []string{"skips 1 test in g.test.js"}},
		{"changes results as they come", one("conftest.py", "", "def pytest_runtest_makereport(item, call):\n    pass\n"), []string{"skips 1 test in conftest.py"}},
		{"notices that it is tested", edit("sum.go", "package a\n", "package a\n", "package a\n\nvar two = testing.Testing()\n"), []string{"notices 1 test run in sum.go"}},
		{"says that a program wrote it", edit("h.go", "package a\n", "package a\n", "// Code generated by hand. DO NOT EDIT.\n\npackage a\n"), []string{"silences 1 finding in h.go"}},
		{"deletes a test of Rust", edit("src/lib.rs", "#[test]\nfn it_works() {\n    assert_eq!(f(), 2);\n}\n", "#[test]\n", ""), []string{"has 1 test of Rust less"}},
		{"deletes a test of C++", edit("a_test.cc", "TEST(Sum, Two) {\n  EXPECT_EQ(f(1), 2);\n}\n", "TEST(Sum, Two)", "void two()"), []string{"removes the test Sum, Two of a_test.cc"}},
		{"deletes tests that have no names", one("table.test.js", "for (const c of cases) run(c)\n", ""), []string{"removes table.test.js, which has tests"}},

		{"moves a test of Rust", func() []preview.File {
			return []preview.File{file("src/a.rs", "#[test]\nfn works() {}\n", ""), file("src/b.rs", "", "#[test]\nfn works() {}\n")}
		}, nil},
		{"writes a snapshot", one("a/__snapshots__/b.test.ts.snap", "", "one\n"), nil},
		{"edits what a test reads", edit("a/testdata/b_test.go", goTest, "t.Fatal()", "x()"), []string{"changes a/testdata/b_test.go, which tests read"}},
		{"edits a program", edit("bin/start", "a\n", "a", "b"), nil},
		{"requires another version", edit("go.mod", "module a\n\ngo 1.26\n", "1.26", "1.27"), nil},
		{"reads a variable", edit("i_test.go", goTest, "\tif sum", "\tdir := os.Getenv(\"HOME\")\n\tif sum"), nil},
		{"writes a test for one system", one("a/new_linux_test.go", "", goTest), nil},
	}...)
	const npm = `{"lockfileVersion": 3, "packages": {"": {"name": "a"}, "node_modules/jest": {"version": "29.7.0", "resolved": "https://npm.example/jest/-/jest-29.7.0.tgz", "integrity": "sha512-a"},
  "node_modules/b": {"version": "1.0.0", "resolved": "https://npm.example/b/-/b-1.0.0.tgz", "integrity": "sha512-b"}, "node_modules/w": {"resolved": "packages/w", "link": true}}}`
	const npm1 = `{"dependencies": {"a": {"version": "1.0.0", "resolved": "https://npm.example/a/-/a-1.0.0.tgz", "integrity": "sha1-a", "dependencies": {"b": {"version": "2.0.0", "integrity": "sha1-b"}}}}}`
	const sum = "example.org/a v1.0.0 h1:one\nexample.org/a v1.0.0/go.mod h1:two\n"
	const crates = "version = 4\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"one\"\n" +
		"[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n[[package]]\nname = \"g\"\nversion = \"0.1.0\"\nsource = \"git+https://example.org/g?rev=1#aa\"\n" +
		"[[package]]\nname = \"h\"\nversion = \"0.1.0\"\nsource = \"git+https://example.org/h#aa\"\n"
	const poetry = "[[package]]\nname = \"pytest\"\nversion = \"8.0.0\"\nfiles = [{file = \"pytest-8.0.0.whl\", hash = \"sha256:one\"}]\n"
	const oldPoetry = "[[package]]\nname = \"pytest\"\nversion = \"7.0.0\"\n[metadata.files]\npytest = [{file = \"pytest-7.0.0.whl\", hash = \"sha256:one\"}]\n"
	const uv = "[[package]]\nname = \"pytest\"\nversion = \"8.0.0\"\nsource = {registry = \"https://pypi.example/simple\"}\nsdist = {url = \"https://files.example/x/pytest-8.0.0.tar.gz\", hash = \"sha256:one\"}\n" +
		"wheels = [{url = \"https://files.example/x/pytest-8.0.0.whl\", hash = \"sha256:two\"}]\n"
	const yarn1 = "# yarn lockfile v1\n\n\n\"@x/jest@^29.0.0\", \"@x/jest@^29.7.0\":\n  version \"29.7.0\"\n  resolved \"https://npm.example/@x/jest/-/jest-29.7.0.tgz#aa\"\n  integrity sha512-a\n  dependencies:\n    version \"1\"\n\n" +
		"b@1:\n  version \"1.0.0\"\n  resolved \"https://npm.example/b/-/b-1.0.0.tgz#bb\"\n"
	const yarn4 = "__metadata:\n  version: 8\n  cacheKey: 10c0\n\n\"@x/jest@npm:^29.0.0, @x/jest@npm:^29.7.0\":\n  version: 29.7.0\n  resolution: \"@x/jest@npm:29.7.0\"\n  checksum: 10c0/aa\n  linkType: hard\n\n" +
		"\"w@workspace:packages/w\":\n  version: 0.0.0-use.local\n  resolution: \"w@workspace:packages/w\"\n  linkType: soft\n"
	const pnpm = "lockfileVersion: '9.0'\nimporters:\n  .:\n    devDependencies:\n      '@x/jest':\n        specifier: ^29.0.0\n        version: 29.7.0(@types/node@20.0.0)\n    dependenciesMeta:\n      a: {injected: true}\n" +
		"packages:\n  '@x/jest@29.7.0':\n    resolution: {integrity: sha512-a}\n  /b/1.0.0_peer@2.0.0:\n    resolution: {integrity: sha512-b}\n"
	const composer = `{"packages": [{"name": "a/b", "version": "1.0.0", "source": {"type": "git", "url": "https://git.example/a/b.git", "reference": "aa"}, "dist": {"type": "zip", "url": "https://api.example/repos/a/b/zipball/aa", "reference": "aa", "shasum": ""}}],
  "packages-dev": [{"name": "c/d", "version": "dev-main", "source": {"type": "git", "url": "https://git.example/c/d.git", "reference": "cc"}}]}`
	const gems = "GEM\n  remote: https://gems.example/\n  specs:\n    rspec (3.13.0)\n      rspec-core (~> 3.13)\n    rspec-core (3.13.1)\n\nPATH\n  remote: .\n  specs:\n    own (0.1)\n\nDEPENDENCIES\n  rspec\n\nCHECKSUMS\n  rspec (3.13.0) sha256=one\n  own (0.1)\n"
	const pipenv = `{"default": {}, "develop": {"pytest": {"hashes": ["sha256:one", "sha256:two"], "index": "pypi", "version": "==8.0.0"}}}`
	const bun = `{"lockfileVersion": 1, "workspaces": {"": {"name": "p", "dependencies": {"@x/jest": "29.7.0",},},}, "packages": {
    "@x/jest": ["@x/jest@29.7.0", "", { "dependencies": { "ms": "2.1.2" } }, "sha512-a=="],
    "@x/jest/ms": ["ms@2.1.2", "", {}, "sha512-b=="],
    "g": ["g@github:u/g#aa", {}, "u-g-aa"],
    "w": ["w@workspace:packages/w"],
  }
}`
	const nuget = `{"version": 1, "dependencies": {"net8.0": {"xunit": {"type": "Direct", "requested": "[2.5.0, )", "resolved": "2.5.0", "contentHash": "a=="}, "own": {"type": "Project"}}}}`
	const node = `{"name": "a", "dependencies": {"b": "1", "g": "git+https://git.example/g.git#a"}, "devDependencies": {"jest": "^29.0.0"}}`
	const crate = "[package]\nname = \"a\"\n[dependencies]\nserde = \"1\"\n[features]\n"
	const python = "[build-system]\nrequires = [\"setuptools\"]\n[project]\nname = \"a\"\ndependencies = [\"pytest>=8\"]\n[dependency-groups]\ndev = [\"mypy\"]\n"
	const poetries = "[tool.poetry.group.dev.dependencies]\npytest = \"^8\"\n"
	const pip = "--index-url https://pypi.example/simple\n\nattrs==23.1.0 \\\n    --hash=sha256:one \\\n    --hash=sha256:two\n    # via pytest\npytest[x]==8.0.0 ; python_version > '3' --hash=sha256:three\ng @ git+https://git.example/g.git@aa\n"
	cheats = append(cheats, []kase{
		{"replaces a package of bun", edit("bun.lock", bun, "sha512-a", "sha512-x"), []string{"has other content of @x/jest 29.7.0 in bun.lock"}},
		{"takes its checksum out of bun.lock", edit("bun.lock", bun, `, "sha512-b=="`, ""), []string{"has other content of @x/jest/ms 2.1.2 in bun.lock"}},
		{"takes one of bun from another server", edit("bun.lock", bun, `29.7.0", ""`, `29.7.0", "https://example.org/jest.tgz"`), []string{"has @x/jest 29.7.0 come from elsewhere in bun.lock"}},
		{"has another package of bun in its place", edit("bun.lock", bun, `["ms@`, `["mz@`), []string{"has @x/jest/ms 2.1.2 come from elsewhere in bun.lock"}},
		{"takes one of bun from an archive", edit("bun.lock", bun, "@x/jest@29.7.0", "@x/jest@https://example.org/jest.tgz"), []string{"has @x/jest https://example.org/jest.tgz come from elsewhere in bun.lock"}},
		{"takes one of bun from another repository", edit("bun.lock", bun, "github:u/g", "github:v/g"), []string{"has g github:v/g#aa come from elsewhere in bun.lock"}},
		{"patches a package of bun", edit("bun.lock", bun, `"packages": {`, `"patchedDependencies": {"@x/jest@29.7.0": "a.patch",}, "packages": {`), []string{"has @x/jest come from elsewhere in bun.lock"}},
		{"replaces a package of NuGet", edit("a/packages.lock.json", nuget, `"a=="`, `"b=="`), []string{"has other content of xunit 2.5.0 for net8.0 in a/packages.lock.json"}},
		{"takes one of NuGet from the project", edit("packages.lock.json", nuget, `"type": "Direct", "requested": "[2.5.0, )", "resolved": "2.5.0", "contentHash": "a=="`, `"type": "Project"`), []string{"has xunit for net8.0 come from elsewhere in packages.lock.json"}},
		{"replaces a package of pip", edit("requirements.txt", pip, "sha256:three", "sha256:x"), []string{"has other content of pytest 8.0.0 in requirements.txt"}},
		{"requires one file of a version in place of another", edit("requirements/dev.txt", pip, "sha256:one", "sha256:x"), nil},
		{"takes all checksums of a package out", edit("requirements-dev.txt", strings.ReplaceAll(pip, " \\\n    --hash=sha256:two", ""), " \\\n    --hash=sha256:one", ""), []string{"has other content of attrs 23.1.0 in requirements-dev.txt"}},
		{"takes the checksums of all packages out", one("requirements.txt", pip, "--index-url https://pypi.example/simple\nattrs==23.1.0\npytest==8.0.0\n"), []string{"has other content of attrs 23.1.0, pytest 8.0.0 in requirements.txt"}},
		{"takes packages of pip from another server", edit("requirements.txt", pip, "pypi.example", "example.org"), []string{"has attrs 23.1.0, pytest 8.0.0 come from elsewhere in requirements.txt"}},
		{"asks another server, too", edit("requirements.txt", pip, "\n\nattrs", "\n--extra-index-url=https://example.org/simple\nattrs"), []string{"has attrs 23.1.0, pytest 8.0.0 come from elsewhere in requirements.txt"}},
		{"takes one of pip from another repository", edit("requirements.txt", pip, "git.example/g", "example.org/g"), []string{"has g come from elsewhere in requirements.txt"}},

		{"locks another version by bun", edit("bun.lock", strings.Replace(bun, "sha512-a", "sha512-x", 1), "29.7.0", "29.8.0"), nil},
		{"locks another commit by bun", edit("bun.lock", bun, "g#aa", "g#bb"), nil},
		{"adds a package of its own to bun", edit("bun.lock", bun, `"w": [`, `"v": ["v@workspace:packages/v"], "w": [`), nil},
		{"locks another version by NuGet", edit("packages.lock.json", strings.Replace(nuget, "a==", "b==", 1), "2.5.0", "2.6.0"), nil},
		{"locks for one more framework", edit("packages.lock.json", nuget, `{"net8.0"`, `{"net9.0": {"xunit": {"type": "Direct", "resolved": "2.5.0", "contentHash": "c=="}}, "net8.0"`), nil},
		{"requires another version", edit("requirements.txt", strings.Replace(pip, "three", "x", 1), "==8.0.0", "==8.1.0"), nil},
		{"requires what was published later, too", edit("requirements.txt", pip, "--hash=sha256:three", "--hash=sha256:four --hash=sha256:three"), nil},
		{"requires another commit", edit("requirements.txt", pip, "@aa", "@bb"), nil},
		{"begins to require with checksums", one("requirements.txt", "attrs==23.1.0\n", "attrs==23.1.0 --hash=sha256:one\n"), nil},
		{"requires one more without checksums", one("requirements.txt", "pytest==8.0.0\n", "pytest==8.1.0\nattrs\n-r more.txt\n"), nil},
		{"requires from a repository", one("requirements.txt", "pytest==8.0.0\n", "pytest==8.0.0\ng @ git+https://git.example/g.git\n"), []string{"has g come from elsewhere in requirements.txt"}},
		{"requires an archive", one("requirements.txt", "pytest\n", "https://example.org/pytest.whl\n"), []string{"has https://example.org/pytest.whl come from elsewhere in requirements.txt"}},
		{"requires from another server", one("requirements-dev.txt", "pytest==8.0.0\n", "-i https://example.org/simple\npytest==8.0.0\n"), []string{"has pytest 8.0.0 come from elsewhere in requirements-dev.txt"}},

		{"declares a folder in place of a package", edit("package.json", node, `"^29.0.0"`, `"file:fake"`), []string{"has jest come from elsewhere in package.json"}},
		{"declares another package in its place", edit("package.json", node, `"^29.0.0"`, `"npm:jost@^29.0.0"`), []string{"has jest come from elsewhere in package.json"}},
		{"declares a repository in its place", edit("package.json", node, `"^29.0.0"`, `"someone/jest#main"`), []string{"has jest come from elsewhere in package.json"}},
		{"declares one more of a repository", edit("package.json", node, `"b": "1"`, `"b": "1", "c": "git+https://example.org/c.git#v1"`), []string{"has c come from elsewhere in package.json"}},
		{"overrides a package", edit("package.json", node, `"name"`, `"overrides": {"jest": "file:fake"}, "name"`), []string{"changes package.json: its section overrides"}},
		{"overrides one of yarn", edit("package.json", node, `"name"`, `"resolutions": {"jest": "1.0.0"}, "name"`), []string{"changes package.json: its section resolutions"}},
		{"overrides one of pnpm", edit("package.json", node, `"name"`, `"pnpm": {"overrides": {"jest": "1.0.0"}}, "name"`), []string{"changes package.json: its section pnpm.overrides"}},
		{"overrides one of a workspace", one("pnpm-workspace.yaml", "packages: [a]\n", "packages: [a, b]\noverrides:\n  jest: link:fake\n"), []string{"changes pnpm-workspace.yaml: its section overrides"}},
		{"declares an absolute folder in place of a crate", edit("Cargo.toml", crate, `serde = "1"`, `serde = {path = "/serde"}`), []string{"has serde come from elsewhere in Cargo.toml"}},
		{"declares a folder above", edit("Cargo.toml", crate, "[features]", `own = {path = ".."}`+"\n[features]"), []string{"has own come from elsewhere in Cargo.toml"}},
		{"patches a crate", edit("Cargo.toml", crate, "[features]", "[patch.crates-io]\nserde = {path = \"serde\"}\n[features]"), []string{"changes Cargo.toml: its section patch"}},
		{"declares a folder in place of a crate", edit("a/Cargo.toml", crate, `serde = "1"`, `serde = {path = "../serde"}`), []string{"has serde come from elsewhere in a/Cargo.toml"}},
		{"declares a repository in place of a crate", edit("Cargo.toml", crate, `serde = "1"`, `serde = {git = "https://example.org/serde"}`), []string{"has serde come from elsewhere in Cargo.toml"}},
		{"declares an archive of Python", edit("pyproject.toml", python, `"pytest>=8"`, `"pytest @ https://example.org/pytest.whl"`), []string{"has pytest come from elsewhere in pyproject.toml"}},
		{"declares an archive in a group", edit("pyproject.toml", python, `"mypy"`, `"mypy @ https://example.org/mypy.whl"`), []string{"has mypy come from elsewhere in pyproject.toml"}},
		{"has uv take one from a folder", edit("pyproject.toml", python, "[build", "[tool.uv.sources]\npytest = {path = \"fake\"}\n[build"), []string{"changes pyproject.toml: its section tool.uv.sources"}},
		{"has poetry take one from a repository", edit("pyproject.toml", poetries, `"^8"`, `{git = "https://example.org/p.git", rev = "a"}`), []string{"has pytest come from elsewhere in pyproject.toml"}},
		{"changes a binary lock file", one("bun.lockb", "a\x00b", "a\x00c"), []string{"changes bun.lockb, which nobody can read"}},
		{"removes a binary lock file", one("bun.lockb", "a\x00b", ""), []string{"changes bun.lockb, which nobody can read"}},

		{"locks by a binary file", one("bun.lockb", "", "a\x00b"), nil},
		{"declares another version", edit("package.json", node, "^29.0.0", ">=29 <31"), nil},
		{"declares more packages", edit("package.json", node, `"b": "1"`, `"b": "1", "c": "workspace:*", "@x/d": "catalog:", "e": "file:packages/e"`), nil},
		{"declares another commit", edit("package.json", node, "g.git#a", "g.git#b"), nil},
		{"declares a crate of its own", edit("a/Cargo.toml", crate, "[features]", "own = {path = \"../own\"}\nlog = \"0.4\"\n[features]"), nil},
		{"declares another version of a crate", edit("Cargo.toml", crate, `serde = "1"`, `serde = {version = "1.1", features = ["derive"]}`), nil},
		{"declares more of Python", edit("pyproject.toml", python, `"pytest>=8"`, `"pytest>=9", "attrs"`), nil},
		{"declares a new manifest", one("package.json", "", node), nil},
		{"replaces a package of yarn", edit("yarn.lock", yarn1, "sha512-a", "sha512-x"), []string{"has other content of @x/jest 29.7.0 in yarn.lock"}},
		{"replaces one without integrity", edit("yarn.lock", yarn1, "#bb", "#cc"), []string{"has other content of b 1.0.0 in yarn.lock"}},
		{"takes one of yarn from another server", edit("yarn.lock", yarn1, "https://npm.example/b/", "https://example.org/b/"), []string{"has b 1.0.0 come from elsewhere in yarn.lock"}},
		{"takes another package of yarn in its place", edit("yarn.lock", yarn1, "npm.example/b/-/b-", "npm.example/c/-/c-"), []string{"has b 1.0.0 come from elsewhere in yarn.lock"}},
		{"calls another package by its name", edit("yarn.lock", yarn1, "b@1:", "\"b@npm:c@1\":"), []string{"has b 1.0.0 come from elsewhere in yarn.lock"}},
		{"replaces a package of a later yarn", edit("yarn.lock", yarn4, "10c0/aa", "10c0/bb"), []string{"has other content of @x/jest 29.7.0 in yarn.lock"}},
		{"resolves another package in its place", edit("yarn.lock", yarn4, `resolution: "@x/jest@`, `resolution: "@x/jost@`), []string{"has @x/jest 29.7.0 come from elsewhere in yarn.lock"}},
		{"takes a package from an archive", edit("yarn.lock", yarn4, `@npm:29.7.0"`, `@npm:29.7.0::__archiveUrl=https%3A%2F%2Fexample.org%2Fjest.tgz"`), []string{"has @x/jest 29.7.0 come from elsewhere in yarn.lock"}},
		{"patches a package", edit("yarn.lock", yarn4, `@npm:29.7.0"`, `@patch:@x/jest@npm%3A29.7.0#~/.yarn/patches/jest.patch::version=29.7.0&hash=aa"`), []string{"has @x/jest 29.7.0 come from elsewhere in yarn.lock"}},
		{"replaces a package of pnpm", edit("pnpm-lock.yaml", pnpm, "sha512-a", "sha512-x"), []string{"has other content of @x/jest 29.7.0 in pnpm-lock.yaml"}},
		{"replaces one of an old pnpm", edit("pnpm-lock.yaml", pnpm, "sha512-b", "sha512-x"), []string{"has other content of b 1.0.0 in pnpm-lock.yaml"}},
		{"takes one of pnpm from another server", edit("pnpm-lock.yaml", pnpm, "sha512-a", "sha512-a, tarball: https://example.org/jest.tgz"), []string{"has @x/jest 29.7.0 come from elsewhere in pnpm-lock.yaml"}},
		{"takes one of pnpm from the project", edit("pnpm-lock.yaml", pnpm, "version: 29.7.0(", "version: link:jest("), []string{"has @x/jest come from elsewhere in pnpm-lock.yaml"}},
		{"has another package of pnpm in its place", edit("pnpm-lock.yaml", pnpm, "version: 29.7.0(", "version: b@1.0.0("), []string{"has @x/jest come from elsewhere in pnpm-lock.yaml"}},
		{"patches a package of pnpm", edit("pnpm-lock.yaml", pnpm, "packages:\n", "patchedDependencies:\n  '@x/jest@29.7.0': {hash: aa, path: a.patch}\npackages:\n"), []string{"has @x/jest come from elsewhere in pnpm-lock.yaml"}},
		{"replaces a package of composer", edit("composer.lock", composer, "\"reference\": \"aa\"", "\"reference\": \"bb\""), []string{"has other content of a/b 1.0.0 in composer.lock"}},
		{"takes one of composer from elsewhere", edit("composer.lock", composer, "api.example/repos/a/b", "api.example/repos/x/b"), []string{"has a/b 1.0.0 come from elsewhere in composer.lock"}},
		{"takes one of composer from the project", edit("composer.lock", composer, `"type": "git", "url": "https://git.example/a/b.git"`, `"type": "path", "url": "b"`), []string{"has a/b 1.0.0 come from elsewhere in composer.lock"}},
		{"replaces a gem", edit("Gemfile.lock", gems, "sha256=one", "sha256=other"), []string{"has other content of rspec 3.13.0 in Gemfile.lock"}},
		{"takes gems from another server", edit("Gemfile.lock", gems, "https://gems.example/", "https://example.org/"), []string{"has rspec 3.13.0, rspec-core 3.13.1 come from elsewhere in Gemfile.lock"}},
		{"takes gems from the project", edit("Gemfile.lock", gems, "GEM\n  remote: https://gems.example/", "PATH\n  remote: vendor"), []string{"has rspec 3.13.0, rspec-core 3.13.1 come from elsewhere in Gemfile.lock"}},
		{"replaces a package of pipenv", edit("Pipfile.lock", pipenv, `"sha256:one", "sha256:two"`, `"sha256:x"`), []string{"has other content of pytest 8.0.0 in Pipfile.lock"}},
		{"takes one of pipenv from a repository", edit("Pipfile.lock", pipenv, `"index": "pypi"`, `"git": "https://example.org/p.git"`), []string{"has pytest 8.0.0 come from elsewhere in Pipfile.lock"}},

		{"locks another version by yarn", edit("yarn.lock", yarn1, "29.7.0", "29.8.0"), nil},
		{"locks another version by a later yarn", edit("yarn.lock", strings.Replace(yarn4, "10c0/aa", "10c0/bb", 1), "29.7.0", "29.8.0"), nil},
		{"adds a package of its own to yarn", edit("yarn.lock", yarn4, "\n\"w@", "\n\"v@workspace:packages/v\":\n  version: 0.0.0-use.local\n  resolution: \"v@workspace:packages/v\"\n\n\"w@"), nil},
		{"locks another version by pnpm", edit("pnpm-lock.yaml", pnpm, "29.7.0", "29.8.0"), nil},
		{"locks another peer by pnpm", edit("pnpm-lock.yaml", pnpm, "node@20", "node@22"), nil},
		{"locks another version by composer", edit("composer.lock", strings.ReplaceAll(composer, `"aa"`, `"bb"`), "1.0.0", "1.1.0"), nil},
		{"locks another commit by composer", edit("composer.lock", composer, `"cc"`, `"dd"`), nil},
		{"locks another version of a gem", edit("Gemfile.lock", gems, "3.13.0", "3.13.2"), nil},
	}...)
	cheats = append(cheats, []kase{
		{"replaces a module", edit("go.sum", sum, "h1:one", "h1:other"), []string{"has other content of example.org/a v1.0.0 in go.sum"}},
		{"replaces a package of npm", edit("web/package-lock.json", npm, "sha512-a", "sha512-x"), []string{"has other content of jest 29.7.0 in web/package-lock.json"}},
		{"takes its checksum out", edit("package-lock.json", npm, `, "integrity": "sha512-a"`, ""), []string{"has other content of jest 29.7.0 in package-lock.json"}},
		{"takes a package from another server", edit("package-lock.json", npm, "https://npm.example/jest/", "https://example.org/jest/"), []string{"has jest 29.7.0 come from elsewhere in package-lock.json"}},
		{"takes another package in its place", edit("package-lock.json", npm, "npm.example/jest/-/jest", "npm.example/jost/-/jost"), []string{"has jest 29.7.0 come from elsewhere in package-lock.json"}},
		{"takes it from the project", edit("package-lock.json", npm, `"version": "29.7.0", "resolved": "https://npm.example/jest/-/jest-29.7.0.tgz", "integrity": "sha512-a"`, `"resolved": "packages/w", "link": true`), []string{"has jest come from elsewhere in package-lock.json"}},
		{"takes a new one from elsewhere", edit("package-lock.json", npm, `"node_modules/b"`, `"node_modules/c": {"version": "1.0.0", "resolved": "git+ssh://git@example.org/c.git#aa"}, "node_modules/b"`), []string{"has c 1.0.0 come from elsewhere in package-lock.json"}},
		{"replaces a package in an old lock file", edit("package-lock.json", npm1, "sha1-b", "sha1-x"), []string{"has other content of a/node_modules/b 2.0.0 in package-lock.json"}},
		{"breaks a lock file", edit("package-lock.json", npm, "}}}", "}}"), []string{"changes package-lock.json: all of it, since it has a version that is not valid"}},
		{"replaces a crate", edit("Cargo.lock", crates, `"one"`, `"other"`), []string{"has other content of a 1.0.0 in Cargo.lock"}},
		{"takes a crate from a repository", edit("Cargo.lock", crates, "registry+https://github.com/rust-lang/crates.io-index", "git+https://example.org/a#aa"), []string{"has a 1.0.0 come from elsewhere in Cargo.lock"}},
		{"replaces a package of poetry", edit("poetry.lock", poetry, "sha256:one", "sha256:other"), []string{"has other content of pytest 8.0.0 in poetry.lock"}},
		{"replaces one of an old poetry", edit("poetry.lock", oldPoetry, "sha256:one", "sha256:other"), []string{"has other content of pytest 7.0.0 in poetry.lock"}},
		{"takes one of poetry from a repository", edit("poetry.lock", poetry, "files =", "source = {type = \"git\", url = \"https://example.org/p.git\", reference = \"main\"}\nfiles ="), []string{"has pytest 8.0.0 come from elsewhere in poetry.lock"}},
		{"replaces a package of uv", edit("uv.lock", uv, "sha256:two", "sha256:other"), []string{"has other content of pytest 8.0.0 in uv.lock"}},
		{"takes a wheel from another server", edit("uv.lock", uv, "https://files.example/x/pytest-8.0.0.whl", "https://example.org/pytest-8.0.0.whl"), []string{"has pytest 8.0.0 come from elsewhere in uv.lock"}},

		{"adds a package of its own", edit("package-lock.json", npm, `"node_modules/w"`, `"node_modules/v": {"resolved": "packages/v", "link": true}, "node_modules/w"`), nil},
		{"adds a package of its own in Python", edit("uv.lock", uv+"[[package]]\nname = \"own\"\nversion = \"1\"\nsource = {editable = \".\"}\n", "[[package]]\nname = \"own\"", "[[package]]\nname = \"more\"\nversion = \"1\"\nsource = {editable = \"more\"}\n[[package]]\nname = \"own\""), nil},
		{"locks another version", edit("package-lock.json", npm, "29.7.0", "29.8.0"), nil},
		{"locks another version of a module", edit("go.sum", sum, "v1.0.0", "v1.1.0"), nil},
		{"locks one more module", edit("go.sum", sum, "two\n", "two\nexample.org/b v1.0.0 h1:three\n"), nil},
		{"locks another crate and commit", edit("Cargo.lock", crates, "rev=1#aa", "rev=2#bb"), nil},
		{"locks another commit of a branch", edit("Cargo.lock", crates, "h#aa", "h#bb"), nil},
		{"locks a wheel that was published later", edit("uv.lock", uv, "wheels = [", "wheels = [{url = \"https://files.example/x/pytest-8.0.0-2.whl\", hash = \"sha256:three\"}, "), nil},
		{"locks what it had not", one("poetry.lock", "", poetry), nil},
	}...)
	link := func(p, to string) func() []preview.File {
		return func() []preview.File {
			file(p, "", to)
			f, _ := preview.Compare(p, preview.Side{}, preview.Side{Text: []byte(to), Mode: linkMode})
			return []preview.File{f}
		}
	}
	uncheckedLink := []string{"makes src/a.py a link to what is not checked as such"}
	cheats = append(cheats, []kase{
		{"hides code behind a link", link("src/a.py", "../data/a.txt"), uncheckedLink},
		{"takes code from elsewhere", link("src/a.py", "/tmp/a.py"), uncheckedLink},
		{"takes code from outside", link("src/a.py", "../../a.py"), uncheckedLink},
		{"has a link lead elsewhere", func() []preview.File {
			file("src/a.py", "b.py", "b.txt")
			return []preview.File{{Path: "src/a.py", Status: preview.Modified, Diff: "diff --git a/src/a.py b/src/a.py\nindex 1111111..2222222 120000\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-b.py\n+b.txt\n"}}
		}, uncheckedLink},
		{"links to code", link("src/a.py", "../lib/b.py"), nil},
		{"links to a text", link("CLAUDE.md", "AGENTS.md"), nil},
		{"links what is not checked", link("data/latest", "2026"), nil},
	}...)
	read := func(file string, after bool) ([]byte, error) { return []byte(texts[after][file]), nil }
	for _, c := range cheats {
		if got := Doubts(c.files(), read); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	unreadable := func(string, bool) ([]byte, error) { return nil, errors.New("it is damaged") }
	if got := Doubts(edit("a_test.go", goTest, "sum(1", "sum(2")(), unreadable); !slices.Equal(got, []string{"changes a_test.go, which nobody could read"}) {
		t.Errorf("unreadable: %q", got)
	}
}

// TestIsAddedTest: of what an agent writes that is to write tests, only tests that run count.
// What tests compare with, or read, may not change unseen. New files are part of new tests, and code that is no data is checked itself.
func TestDoubtsOfTestData(t *testing.T) {
	changed := func(file string) string { return "changes " + file + ", which tests read" }
	for file, doubt := range map[string]bool{"testdata/want.json": true, "a/testdata/in/x.go": true, "tests/data/want.txt": true, "spec/fixtures/users.yml": true,
		"test/expected": true, "pkg/golden/a.html": true, "src/data.json": false, "tests/helper.py": false, "latest/a.txt": false, "testdata": false} {
		for status, diff := range map[string]string{preview.Modified: "@@ -1 +1 @@\n-2\n+3\n", preview.Removed: "@@ -1 +0,0 @@\n-2\n", preview.Added: "@@ -0,0 +1 @@\n+2\n"} {
			got := Doubts([]preview.File{{Path: file, Status: status, Diff: diff}}, func(string, bool) ([]byte, error) { return []byte("2\n"), nil })
			if want := doubt && status != preview.Added; slices.Contains(got, changed(file)) != want || len(got) > 1 {
				t.Errorf("%s, %s: %q", file, status, got)
			}
		}
	}
	moved := []preview.File{{Path: "old/want.txt", From: "testdata/want.txt", Status: preview.Renamed}}
	if got := Doubts(moved, func(string, bool) ([]byte, error) { return []byte("2\n"), nil }); !slices.Contains(got, changed("testdata/want.txt")) {
		t.Errorf("moved away: %q", got)
	}
}

func TestIsAddedTest(t *testing.T) {
	for file, want := range map[string]bool{"a_test.go": true, "a/test_b.py": true, "tests/a.rs": true, "src/a.rs": false, "a/testdata/a_test.go": false, "_a/a_test.go": false,
		"node_modules/x/a.test.js": false, ".venv/lib/test_a.py": false, "build/test_a.py": false, "conftest.py": false, "pytest.ini": false, "a.go": false} {
		if got := IsAddedTest(file); got != want {
			t.Errorf("%s: %v", file, got)
		}
	}
}

// FuzzDoubts: whatever files have, a change that changes nothing raises no doubt, and no text breaks it.
func FuzzDoubts(f *testing.F) {
	for _, name := range []string{"a_test.go", "test_a.py", "package.json", "pyproject.toml", "setup.cfg", "Makefile", ".github/workflows/a.yml", "go.sum", "uv.lock", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "composer.lock", "Gemfile.lock", "Pipfile.lock", "bun.lock", "packages.lock.json", "requirements.txt"} {
		f.Add(name, "[tool.ruff]\na = 1\n", "def test_a():\n    assert f() == 1\n")
	}
	f.Fuzz(func(t *testing.T, name, was, now string) {
		if was == "" || now == "" {
			return
		}
		read := func(_ string, after bool) ([]byte, error) {
			if after {
				return []byte(now), nil
			}
			return []byte(was), nil
		}
		change, ok := preview.Compare(name, preview.Side{Text: []byte(was)}, preview.Side{Text: []byte(now)})
		if !ok {
			return
		}
		got := Doubts([]preview.File{change}, read)
		same := preview.File{Path: name, Status: preview.Modified}
		if now = was; !configures(name) && len(Doubts([]preview.File{same}, read)) > 0 {
			t.Errorf("the same text raises %q, and another one %q", Doubts([]preview.File{same}, read), got)
		}
	})
}
