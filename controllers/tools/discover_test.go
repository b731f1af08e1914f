package tools

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/checks/formats"
)

func TestCatalog(t *testing.T) {
	names := map[string]bool{}
	known := formats.Names()
	for _, tool := range Catalog() {
		if names[tool.Name] || tool.Source == "" || tool.Program == "" || len(tool.Languages) == 0 || len(tool.Roles) == 0 {
			t.Errorf("%q: it is there twice, or has no source, program, language or role", tool.Name)
		}
		names[tool.Name] = true
		for _, r := range tool.Roles {
			where := tool.Name + " as " + string(r.Category)
			if !slices.Contains(checks.Categories(), r.Category) {
				t.Errorf("%s: no such category", where)
			}
			if r.Category == checks.LSP {
				continue
			}
			if !slices.Contains(known, r.Output) || r.CoverageOutput != "" && !slices.Contains(known, r.CoverageOutput) {
				t.Errorf("%s: there is no format %q or %q", where, r.Output, r.CoverageOutput)
			}
			if len(r.Check) == 0 || r.Check[0] != tool.Program {
				t.Errorf("%s: it runs %q", where, r.Check)
			}
			for _, a := range r.Check {
				if slices.Contains([]string{"--fix", "-w", "--write", "-i", "--autocorrect"}, a) {
					t.Errorf("%s: its check has %s, which writes", where, a)
				}
			}
			for _, argv := range [][]string{r.Check, r.Build, r.Fix, r.One, r.Coverage} {
				for _, a := range argv {
					if strings.HasPrefix(a, "--template=") {
						continue // of cppcheck
					}
					for _, hole := range regexpHoles.FindAllString(a, -1) {
						if !slices.Contains([]string{"{files}", "{packages}", "{report}", "{coverage}", "{scratch}", "{test}", "{suite}", "{file}", "{config}", "{configFolder}", "{folder}"}, hole) {
							t.Errorf("%s: %s is no placeholder", where, hole)
						}
					}
				}
			}
			if usesReport := slices.ContainsFunc(r.Check, func(a string) bool { return strings.Contains(a, "{report}") }); usesReport != (r.Report != "") {
				t.Errorf("%s: report is %q", where, r.Report)
			}
			if r.Report != "" && len(r.Reports) > 0 {
				t.Errorf("%s: it has both a report and reports", where)
			}
			if r.Category == checks.TestFramework && len(r.TestFiles) == 0 {
				t.Errorf("%s: it has no files with tests", where)
			}
		}
	}
}

func TestConfigures(t *testing.T) {
	for file, want := range map[string]bool{"eslint.config.js": true, "vitest.config.ts": true, ".mocharc.cjs": true, ".prettierrc.js": true, "config.js": false, "conftest.py": false, "go.mod": false} {
		if Configures(file) != want {
			t.Errorf("%s: %v", file, !want)
		}
	}
}

func TestLanguageOf(t *testing.T) {
	for file, want := range map[string]string{
		"a/main.go": "go", "x.ts": "typescript", "x.d.ts": "typescript", "x.tsx": "typescript", "x.jsx": "javascript", "x.mjs": "javascript", "a.py": "python", "a.rs": "rust",
		"a.h": "c", "a.hpp": "c++", "a.sh": "bash", "Rakefile": "ruby", "a.vue": "vue", "README.md": "", "a.cgi": "", "a.spec": "", "a.unknown": "", ".bashrc": "bash", "x.yml": "yaml", "x.php": "php",
	} {
		if got := LanguageOf(file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	for file, want := range map[string]bool{"vendor/a": true, "node_modules/x": true, "a/testdata": true, "third-party/x": true, "deps": true, "a/deps": false, "tests/fixtures": true,
		"src": false, "pkg/vendoring": false} {
		if got := Vendored(file); got != want {
			t.Errorf("%s: vendored %v", file, got)
		}
	}
}

// Each archive in testdata is a project. Its comment has lines "program FOLDER NAME VERSION" and "choose LANGUAGE CATEGORY TOOL" or "infer …"; the file "want" has what
// is discovered, with its commands if the comment says so.
func TestDiscover(t *testing.T) {
	for _, file := range archives(t) {
		t.Run(path.Base(file.name), func(t *testing.T) {
			f := Facts{Folders: map[string]*Folder{"": {}}, Programs: map[Place]Program{}}
			for line := range strings.Lines(string(file.Comment)) {
				switch w := strings.Fields(line); {
				case len(w) == 4 && w[0] == "program":
					folder := strings.TrimPrefix(w[1], ".")
					f.Programs[Place{folder, w[2]}] = Program{"/" + path.Join(folder, "bin", w[2]), strings.Trim(w[3], "-")}
				case len(w) == 4 && w[0] == "choose":
					f.Choices = append(f.Choices, Choice{w[1], checks.Category(w[2]), w[3], "preference/x", false})
				case len(w) == 4 && w[0] == "infer":
					f.Choices = append(f.Choices, Choice{w[1], checks.Category(w[2]), w[3], "academic, preference/y", true})
				}
			}
			want := ""
			for _, x := range file.Files {
				if x.Name == "want" {
					want = string(x.Data)
					continue
				}
				folder, name := path.Split(x.Name)
				folder = strings.TrimSuffix(folder, "/")
				if f.Folders[folder] == nil {
					f.Folders[folder] = &Folder{}
				}
				at := f.Folders[folder]
				at.Files = append(at.Files, name)
				if at.Texts == nil {
					at.Texts, at.Languages = map[string]string{}, map[string]int{}
				}
				at.Texts[name] = string(x.Data)
				if l := LanguageOf(name); l != "" {
					at.Languages[l]++
				}
			}
			for _, x := range f.Folders {
				slices.Sort(x.Files)
			}
			var got strings.Builder
			for _, d := range Discover(f) {
				fmt.Fprintf(&got, "%s %s .%s: %s %s, %s\n", d.Category, d.Language, d.Folder, d.Tool, d.Confidence, d.Why)
				if strings.Contains(string(file.Comment), "commands") {
					fmt.Fprintf(&got, "$ %s\n", strings.Join(d.Check, " "))
				}
			}
			for _, o := range Undecided(f, Discover(f)) {
				if !strings.Contains(string(file.Comment), "undecided") {
					break
				}
				fmt.Fprintf(&got, "? %s %s:", o.Category, o.Language)
				for _, x := range o.Options {
					fmt.Fprintf(&got, " %s", x.Tool)
					for _, pro := range x.Pros {
						if strings.HasPrefix(pro, "is run by ") {
							fmt.Fprintf(&got, " (%s)", pro)
						}
					}
				}
				fmt.Fprintln(&got)
			}
			if got.String() != want {
				t.Errorf("got:\n%swant:\n%s", got.String(), want)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	for _, p := range []string{"*.test.js", "test_*", "a.go", "*", "*.{x", "?b", "[a-b].go", "[", "a*b", "**"} {
		for _, name := range []string{"a.test.js", "test_a", "a.go", "", "ab", "b.go", "[", "axxb"} {
			want, err := path.Match(p, name)
			if got := matches(p, name); got != (want && err == nil) {
				t.Errorf("%q, %q: %v", p, name, got)
			}
		}
	}
}

func TestNumber(t *testing.T) {
	for said, want := range map[string]string{"go1.26.8": "1.26.8", "black, 24.2.0 (compiled: yes)": "24.2.0", "v20.11.0": "20.11.0", "Debian clang-format version 19": "19",
		"version: 0.9.0": "0.9.0", "7zip 24.1-rc.1": "24.1-rc.1", "none": ""} {
		if got := number(said); got != want {
			t.Errorf("%q: %q", said, got)
		}
	}
	if compareVersions("10.0", "9.9.9") <= 0 || compareVersions("2", "2.0") != 0 || compareVersions("1.64.8", "2") >= 0 || compareVersions("9.0.1-rc.1", "9.0.1") <= 0 || compareVersions("9.x", "9.2") != 0 {
		t.Error("order of versions")
	}
}

type archive struct {
	*txtar.Archive
	name string
}

var regexpHoles = regexp.MustCompile(`\{\w+\}`)

func archives(t *testing.T) (all []archive) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, n := range names {
		a, err := txtar.ParseFile(n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, archive{a, n})
	}
	return all
}

// The package manager that a folder names, or else the nearest one above it, runs its scripts.
func TestNodeManager(t *testing.T) {
	script := `{"scripts": {"lint": "eslint src"}}`
	for _, c := range []struct {
		name, root, own string // package.json
		above, beside   []string
		want            string
	}{
		{"nothing", "", script, nil, nil, "npm run -s lint -- --format json"},
		{"a field", "", `{"packageManager": "yarn@4.5.0+sha512.aa", "scripts": {"lint": "eslint src"}}`, nil, []string{"pnpm-lock.yaml"}, "yarn run --silent lint --format json"},
		{"a field above", `{"packageManager": "bun@1.2.0"}`, script, nil, nil, "bun run --silent lint --format json"},
		{"a lock file above", "", script, []string{"pnpm-lock.yaml"}, nil, "pnpm --silent run lint --format json"},
		{"a nearer lock file", `{"packageManager": "bun@1.2.0"}`, script, nil, []string{"package-lock.json"}, "npm run -s lint -- --format json"},
		{"no program that is known", `{"packageManager": "../x@1"}`, script, nil, []string{"yarn.lock"}, "yarn run --silent lint --format json"},
	} {
		f := Facts{Programs: map[Place]Program{{"", "eslint"}: {Path: "/bin/eslint", Version: "10.0.0"}}, Folders: map[string]*Folder{
			"":    {Files: append([]string{"package.json"}, c.above...), Texts: map[string]string{"package.json": c.root}},
			"web": {Files: append([]string{"a.js", "eslint.config.js", "package.json"}, c.beside...), Texts: map[string]string{"package.json": c.own}, Languages: map[string]int{"javascript": 1}},
		}}
		i := slices.IndexFunc(Discover(f), func(d Discovered) bool { return d.Tool == "eslint" })
		if i < 0 {
			t.Fatalf("%s: eslint is not found", c.name)
		}
		if got := strings.Join(Discover(f)[i].Own, " "); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
