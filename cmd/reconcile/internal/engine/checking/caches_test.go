package checking

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// Only what runs no code of the project writes caches that other checks read.
func TestSharesCaches(t *testing.T) {
	dir := t.TempDir()
	root, elsewhere := filepath.Join(dir, "p"), filepath.Join(dir, "bin", "go")
	inside, link := filepath.Join(root, "bin", "go"), filepath.Join(dir, "linked")
	for _, program := range []string{inside, elsewhere} {
		if err := os.MkdirAll(filepath.Dir(program), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(program, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(inside, link); err != nil {
		t.Skip(err)
	}
	golangci := func(t *tools.Discovered, config string) { // in a folder that it checks
		err := errors.Join(os.MkdirAll(filepath.Join(root, "a"), 0o700), os.WriteFile(filepath.Join(root, "a", ".golangci.yml"), []byte(config), 0o600))
		if t.Tool = "golangci-lint"; err != nil {
			panic(err)
		}
	}
	vet := tools.Discovered{Tool: "go vet", Language: "go", Category: checks.TypeChecker, Program: elsewhere}
	for _, c := range []struct {
		what   string
		change func(*Checker, *tools.Discovered)
		want   bool
	}{
		{"go vet", func(*Checker, *tools.Discovered) {}, true},
		{"a program of the project", func(_ *Checker, t *tools.Discovered) { t.Program = inside }, false},
		{"a link to a program of the project", func(_ *Checker, t *tools.Discovered) { t.Program = link }, false},
		{"a program that is gone", func(_ *Checker, t *tools.Discovered) { t.Program += "x" }, false},
		{"a program of the project in its positive control", func(c *Checker, t *tools.Discovered) {
			t.Program, c.project, c.Root = inside, c.Root, dir+"/control"
		}, false},
		{"the command of the team", func(c *Checker, _ *tools.Discovered) { c.team = true }, false},
		{"tests", func(_ *Checker, t *tools.Discovered) { t.Role.TestFiles = []string{"*_test.go"} }, false},
		{"the compiler of tests", func(c *Checker, t *tools.Discovered) { t.Role.TestFiles, c.compiles = []string{"*_test.go"}, true }, true},
		{"the race detector", func(_ *Checker, t *tools.Discovered) { t.Category = checks.Deep }, false},
		{"a linter with plugins", func(_ *Checker, t *tools.Discovered) { t.Language = "typescript" }, false},
		{"golangci-lint", func(_ *Checker, t *tools.Discovered) { golangci(t, "linters: {enable: [revive]}\n") }, true},
		{"golangci-lint with a plugin", func(_ *Checker, t *tools.Discovered) {
			golangci(t, "linters: {settings: {custom: {x: {path: x.so}}}}\n")
		}, false},
		{"golangci-lint with a plugin in other letters", func(_ *Checker, t *tools.Discovered) { golangci(t, `"Custo\u006d": {}`+"\n") }, false},
		{"golangci-lint with a report", func(_ *Checker, t *tools.Discovered) { golangci(t, "output: {formats: {text: {path: ../x}}}\n") }, false},
		{"a linter without such plugins", func(_ *Checker, t *tools.Discovered) { golangci(t, "custom"); t.Tool = "staticcheck" }, true},
	} {
		checker, tool := Checker{Root: root, Sandbox: schemas.SandboxLandlock}, vet
		if c.change(&checker, &tool); checker.shares(tool, []string{"golangci-lint", "run", "./a/..."}) != c.want {
			t.Errorf("%s: %v", c.what, !c.want)
		}
	}
}

// faults are those that let a check write what later checks believe, or the files that it is about.
var faults = []mutants.Mutant{
	{"tests write the shared cache", "caches.go", "t.Role.RunsTests() && !c.compiles || ", "", "TestSharesCaches"},
	{"commands of the team write the shared cache", "caches.go", " || c.team", "", "TestSharesCaches"},
	{"programs of the project write the shared cache", "caches.go", "below || !filepath.IsAbs(at)", "below && at == \"\" || !filepath.IsAbs(at)", "TestSharesCaches"},
	{"a link hides a program of the project", "caches.go", "[]string{program, real}", "[]string{program, program + real[:0]}", "TestSharesCaches"},
	{"linters with plugins write the shared cache", "caches.go", "t.Language == \"go\" && ", "", "TestSharesCaches"},
	{"a linter with plugins of the project writes the shared cache", "caches.go", " && !c.plugged(t, argv)", "", "TestSharesCaches"},
	{"an escape hides a plugin", "caches.go", `, "\\u"`, "", "TestSharesCaches"},
	{"in a positive control a program of the project is another's", "caches.go", "cmp.Or(c.project, c.Root)", "c.Root", "TestSharesCaches"},
	{"what does not build is tested as it was", "checking.go", "if ended.Exit != 0 {\n\t\t\tended.Unreadable", "if false {\n\t\t\tended.Unreadable", "TestBuild"},
	{"what changed since the last build is not tested", "checking.go", "argv := j.Build(places); len(argv) > 0 && ", "argv := j.Build(places); len(argv) < 0 && ", "TestBuild"},
	{"a cache that believes times is kept", "checking.go", "range t.Role.Fresh", "range t.Role.Fresh[:0]", "TestFreshCache"},
	{"a file that is written anew has changed", "altered.go", "f.sum == was.sum && ", "f.sum == was.sum && f.stat.Mtime == was.stat.Mtime && ", "TestAltered"},
	{"a file of the same size has not changed", "altered.go", "f.sum == was.sum && ", "", "TestAltered"},
	{"a file that is gone has not changed", "altered.go", "return f.gone == was.gone", "return true", "TestAltered"},
	{"a large file never changes", "altered.go", "if f.sum == 0 && ", "if false && ", "TestAltered"},
	{"a file that can be run now has not changed", "altered.go", " && f.stat.Mode&executable == was.stat.Mode&executable", "", "TestAltered"},
	{"a mark hides the whole project", "altered.go", "name != cacheTag || dir == \"\"", "name != cacheTag", "TestWithoutCaches"},
	{"a mark hides itself", "altered.go", "path.Base(f) != cacheTag && ", "", "TestWithoutCaches"},
	{"any file of that name is a mark", "altered.go", "err == nil && bytes.HasPrefix(text, []byte(cacheSignature))", "err == nil && bytes.HasPrefix(text, nil)", "TestWithoutCaches"},
	{"what tools leave is a file of the project", "altered.go", "output(f) || ", "output(f) && false || ", "TestWithoutCaches"},
	{"a mark hides files of a commit", "altered.go", "return cached[f]", "return cached[f] || slices.ContainsFunc(caches, func(dir string) bool { return strings.HasPrefix(f, dir) })", "TestWithoutCaches"},
	{"a time that a tool set is believed", "altered.go", "!is.gone && at.Add(checks.ClockTick).After(began)", "!is.gone", "TestAltered"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
