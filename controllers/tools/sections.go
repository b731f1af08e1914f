package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/modfile"
)

// checking finds the name of a script or target that checks the code.
var checking = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:pre|post)?(?:tests?|lint|vet|check|fmt|format|type-?check|types|coverage|cover|verify|ci|unit|e2e|integration)(?:[-_:.].*)?$`)
})

// sections are those of manifests in which tools have their settings, besides those of the catalogue, and by which dependencies are replaced.
var sections = []string{"Cargo.toml#test", "Cargo.toml#lib.test", "Cargo.toml#lib.doctest", "Cargo.toml#lib.harness", "Cargo.toml#package.autotests", "Cargo.toml#lints", "Cargo.toml#workspace.lints", "package.json#ava", "package.json#c8", "package.json#lint-staged", "package.json#nyc", "package.json#stylelint", "package.json#tap",
	"package.json#vitest", "package.json#xo", "pyproject.toml#tool.coverage", "pyproject.toml#tool.flake8", "pyproject.toml#tool.isort", "pyproject.toml#tool.poe", "pyproject.toml#tool.taskipy",
	"pyproject.toml#tool.tox", "package.json#overrides", "package.json#resolutions", "package.json#patchedDependencies", "package.json#pnpm.overrides", "package.json#pnpm.patchedDependencies",
	"package.json#pnpm.packageExtensions", "pnpm-workspace.yaml#overrides", "pnpm-workspace.yaml#patchedDependencies", "pnpm-workspace.yaml#packageExtensions", "Cargo.toml#patch", "Cargo.toml#replace",
	"pyproject.toml#tool.uv.sources", "pyproject.toml#tool.uv.override-dependencies", "pyproject.toml#tool.uv.index", "pyproject.toml#tool.uv.index-url", "pyproject.toml#tool.uv.extra-index-url",
	"pyproject.toml#tool.poetry.source", "pyproject.toml#tool.pdm.source", "pyproject.toml#tool.pdm.resolution", "composer.json#repositories", "setup.cfg#coverage", "setup.cfg#isort", "setup.cfg#pycodestyle", "setup.cfg#tox"}

// unparsed names the whole of a file, of which the one or the other version is not valid.
const unparsed = "all of it, since it has a version that is not valid"

// checkedParts are the parts of a manifest or a build file that configure checks, by their names in words. One that cannot be read is such a
// part as a whole.
func checkedParts(file string, text []byte) map[string]string {
	name, out := path.Base(file), map[string]string{}
	switch {
	case name == "Makefile" || name == "GNUmakefile" || name == "makefile" || strings.EqualFold(name, "justfile"):
		all, variables := recipes(string(text)), assignments(string(text))
		for target := range all {
			if checking().MatchString(target) {
				out["its target "+target] = wholeRecipe(target, all, variables)
			}
		}
		for _, name := range []string{"SHELL", ".SHELLFLAGS", "MAKEFLAGS"} {
			if value := variables[name]; value != "" {
				out["its "+name] = value
			}
		}
		if _, is := all[".IGNORE"]; is {
			out["its .IGNORE"] = all[".IGNORE"]
		}
		return out
	case name == "go.mod":
		return modParts(text)
	case name == "setup.cfg":
		for _, entry := range sectionsOf(name) {
			for section, lines := range iniSections(string(text)) {
				if section == entry || strings.HasPrefix(section, entry+":") || strings.HasPrefix(section, entry+"-") || strings.HasPrefix(section, entry+".") {
					out["its section "+section] = lines
				}
			}
		}
		return out
	}
	var doc map[string]any
	decode := map[string]func([]byte, any) error{".toml": toml.Unmarshal, ".json": json.Unmarshal, ".yaml": yaml.Unmarshal}[path.Ext(name)]
	if decode == nil || sectionsOf(name) == nil {
		return nil
	}
	if len(text) > 0 && decode(text, &doc) != nil {
		return map[string]string{unparsed: string(text)}
	}
	for _, entry := range sectionsOf(name) {
		at := any(doc)
		for part := range strings.SplitSeq(entry, ".") {
			m, _ := at.(map[string]any)
			at = m[part]
		}
		if at != nil {
			out["its section "+entry] = fmt.Sprint(at) // maps are printed in order
		}
	}
	if scripts, ok := doc["scripts"].(map[string]any); ok && name == "package.json" {
		for script, command := range scripts {
			if checking().MatchString(script) {
				out["its script "+script] = fmt.Sprint(command)
			}
		}
	}
	return out
}

// modParts are the parts of a go.mod that have packages left out, or replaced, by their names in words.
func modParts(text []byte) map[string]string {
	f, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return map[string]string{unparsed: string(text)}
	}
	out := map[string]string{}
	for _, i := range f.Ignore {
		out["its ignore of "+i.Path] = i.Path
	}
	for _, r := range f.Replace {
		out["its replacement of "+r.Old.Path] += r.New.String()
	}
	return out
}

// sectionsOf are the sections of a manifest in which tools have their settings.
func sectionsOf(name string) (out []string) {
	all := sections
	for _, t := range Catalog() {
		all = slices.Concat(all, t.Configs)
	}
	for _, entry := range all {
		if section, ok := strings.CutPrefix(entry, name+"#"); ok && !slices.Contains(out, section) {
			out = append(out, section)
		}
	}
	return out
}

// differs names the parts that a change of a file changes, adds or removes. A script of a new file does not count: it weakens no check.
func differs(file string, before, after []byte) (out []string) {
	was, is := checkedParts(file, before), checkedParts(file, after)
	for _, part := range slices.Sorted(maps.Keys(is)) {
		if old, known := was[part]; old != is[part] && (known || len(before) > 0 || strings.HasPrefix(part, "its section ")) {
			out = append(out, part)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(was)) {
		if _, there := is[part]; !there {
			out = append(out, part)
		}
	}
	return out
}

// recipes are the needs and recipes of targets, by name.
func recipes(text string) map[string]string {
	out := map[string]string{}
	target := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '\t' || line[0] == ' ':
			if target != "" {
				out[target] += strings.TrimSpace(line) + "\n"
			}
		default:
			target = ""
			if head, needs, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(needs, "=") && !strings.Contains(head, "=") && head != "" {
				target = strings.Fields(head)[0]
				out[target] += strings.TrimSpace(needs) + "\n"
			}
		}
	}
	return out
}

// assignments are the values of the variables of a Makefile or justfile, by name.
func assignments(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, is := strings.Cut(line, "="); is && line[0] != '\t' {
			name = strings.TrimRight(strings.TrimPrefix(strings.TrimPrefix(name, "export "), "override "), "?:+! \t")
			if !strings.ContainsAny(name, " \t:#") {
				out[name] += strings.TrimSpace(value) + "\n"
			}
		}
	}
	return out
}

// wholeRecipe is the recipe of a target with the variables in it, whether a file can stand for it, and the recipes of targets that it calls, or needs if it has no
// commands of its own.
func wholeRecipe(target string, all, variables map[string]string) string {
	out, seen := "", map[string]bool{}
	var add func(name string)
	add = func(name string) {
		text, is := all[name]
		if !is || seen[name] {
			return
		}
		seen[name] = true
		out += text
		if slices.Contains(strings.Fields(all[".PHONY"]), name) {
			out += ".PHONY " + name + "\n"
		}
		needs, commands, _ := strings.Cut(text, "\n")
		if strings.TrimSpace(commands) == "" {
			for _, n := range strings.Fields(needs) {
				add(n)
			}
		}
		for _, m := range makes().FindAllStringSubmatch(commands, -1) {
			add(m[1])
		}
	}
	add(target)
	used := map[string]bool{}
	for more := out; more != ""; {
		next := ""
		for _, m := range variable().FindAllStringSubmatch(more, -1) {
			if value := variables[m[1]]; value != "" && !used[m[1]] {
				used[m[1]] = true
				next += m[1] + " = " + value
			}
		}
		out, more = out+next, next
	}
	return out
}

// makes finds the target that a recipe calls.
var makes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:\$[({]MAKE[)}]|\bmake|\bjust)(?: -\S+)* ([\w.-]+)`)
})

// variable finds the use of a variable in a recipe.
var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$?[{(]+\s*([\w.-]+)\s*[)}]+`) })

// iniSections are the lines of the sections of an INI file, without comments.
func iniSections(text string) map[string]string {
	out := map[string]string{}
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
			out[section] += ""
		case line != "" && line[0] != '#' && line[0] != ';':
			out[section] += line + "\n"
		}
	}
	return out
}

// isCI reports whether a file says what a service of CI runs.
func isCI(file string) bool {
	name, ext := path.Base(file), path.Ext(file)
	return strings.HasPrefix(file, ".github/workflows/") && (ext == ".yml" || ext == ".yaml") || strings.HasPrefix(file, ".circleci/") ||
		slices.ContainsFunc([]string{".gitlab-ci*.yml", ".travis.yml", "azure-pipelines*.yml", "bitbucket-pipelines.yml", "Jenkinsfile"}, func(p string) bool { return matches(p, name) })
}

// command finds a command that checks the code, in a line of a file of CI.
var command = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[\s"'/=])(?:tests?|lint|vet|check|typecheck|coverage|fmt|format|clippy|tox|nox|verify|pytest|jest|vitest|mocha|eslint|oxlint|biome|prettier|tsc|ruff|flake8|pylint|mypy|pyright|black|bandit|` +
		`golangci-lint|staticcheck|govulncheck|gosec|shellcheck|rubocop|rspec|phpunit|phpstan|ctest|cppcheck|clang-tidy|mvn|gradlew?)(?:$|[\s"':])`)
})

// disarmed finds what lets a failed check pass, in a line of a build file or of CI.
var disarmed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\|\|\s*(?:true|:|exit 0)\b|continue-on-error:\s*true|allow_failure:\s*true|\bif:\s*false\b|maven\.test\.skip|skipTests|testFailureIgnore|ignoreFailures\s*=\s*true|--passWithNoTests|--exit-zero|<excludes?>|excludeTestsMatching|\bexclude(?:Tags|Groups|Categories)\b|` +
		`\bonlyIf\s*\{\s*false|\bWILL_FAIL\b|\bDISABLED\s+TRUE\b|\benabled\s*=\s*false`)
})
