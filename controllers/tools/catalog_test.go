package tools

import (
	"os"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/checks"
)

// Each language has a tool that finds faults in code, one that formats it and a language server.
func TestCatalogCoversLanguages(t *testing.T) {
	for _, language := range []string{"go", "python", "javascript", "typescript", "rust", "ruby", "java", "kotlin", "c", "c++", "c#", "elixir", "bash", "php", "swift",
		"zig", "ocaml", "dart", "terraform", "nix", "vue", "svelte"} {
		has := map[checks.Category]bool{}
		for _, tool := range Catalog() {
			if slices.Contains(tool.Languages, language) {
				for _, r := range tool.Roles {
					has[r.Category] = true
				}
			}
		}
		// No tool of Zig and OCaml that checks code without building it is known here, and RuboCop formats Ruby as it lints.
		checked := has[checks.Linter] || has[checks.TypeChecker] || language == "zig" || language == "ocaml"
		if formatted := has[checks.Formatter] || language == "ruby" || language == "kotlin"; !checked || !formatted || !has[checks.LSP] {
			t.Errorf("%s: checked %v, formatted %v, language server %v", language, checked, formatted, has[checks.LSP])
		}
	}
}

// Each tool that competes with another one says what speaks for it and against it, so that a person can choose.
func TestOptionsSaySomething(t *testing.T) {
	for _, language := range Languages() {
		for _, category := range checks.Categories() {
			all := Options(Facts{}, language, category)
			if len(all) < 2 {
				continue
			}
			for _, o := range all {
				c, _ := entry(o.Tool)
				if len(c.Pros) == 0 || len(c.Cons) == 0 {
					t.Errorf("%s of %s: %s says nothing for or against it", category, language, o.Tool)
				}
			}
		}
	}
}

// ranWith are the tools of the catalogue that we have run, with the versions: their commands, exit codes and output are as the catalogue has them.
// Recordings of most are in controllers/checks/formats/testdata.
var ranWith = map[string]string{
	"bandit": "1.6.2", "basedpyright": "1.40.1", "bats": "1.8.2", "biome": "2.6.8", "black": "23.1.0", "bun test": "1.4.5", "cargo check": "1.95.0", "cargo test": "1.95.0", "checkstyle": "8.36.1",
	"clang-format": "14.0", "clang-tidy": "14.0", "clippy": "1.95.0", "cppcheck": "2.10", "ctest": "3.25.1", "deno test": "2.9.6", "dune test": "2.9.3", "eslint": "10.15.0",
	"flake8": "5.0.4", "flawfinder": "2.0.19", "go race": "1.26", "go test": "1.26", "go vet": "1.26", "gofmt": "1.26", "goimports": "0.52.0", "golangci-lint": "2.5.0",
	"gosec": "2", "javac": "17", "jest": "30", "maven": "3.8.7", "minitest": "5.17.0", "mix format": "1.14.0", "mix test": "1.14.0", "mocha": "12",
	"mypy": "1.0.1", "node --test": "20.20.2", "oxlint": "1.94.0", "phpcs": "3.7.1", "phpunit": "9.6.7", "prettier": "3.10.1", "pylint": "2.16.2",
	"pyright": "1.1", "pytest": "7.2.1", "rspec": "3.12.0", "rubocop": "1.39.0", "rustfmt": "1.95.0", "shellcheck": "0.9.0", "shfmt": "3.6.0",
	"staticcheck": "0.6.1", "tsc": "7.0.2", "unittest": "3.11.7", "vitest": "4.1.12", "tape": "5.10", "yamllint": "1.29.0",
	"google-java-format": "1.23.0", "gradle": "4.4.1", "ktlint": "1.8.0", "svelte-check": "4.7.8", "terraform fmt": "1.11.4", "tflint": "0.64.0", "vue-tsc": "3.3.14", "zig build test": "0.16.0", "zig fmt": "0.16.0",
}

// documented are those that were written from documentation alone, which the entries name: nobody could install them here. govulncheck was run without its
// database.
var documented = []string{"cargo audit", "cargo nextest", "credo", "dart analyze", "dart format", "dart test", "detekt", "dotnet build", "dotnet format", "dotnet test",
	"govulncheck", "nixfmt", "ocamlformat", "php-cs-fixer", "phpstan", "ruff", "statix", "swift test",
	"swift-format", "swiftlint", "ty"}

// Of each tool that checks something it is known whether somebody has run it.
func TestWhoRanTools(t *testing.T) {
	for _, tool := range Catalog() {
		checks := slices.ContainsFunc(tool.Roles, func(r Role) bool { return len(r.Check) > 0 })
		if ran, read := ranWith[tool.Name] != "", slices.Contains(documented, tool.Name); checks == (ran == read) {
			t.Errorf("%s: run %v, written from documentation %v", tool.Name, ran, read)
		}
	}
	page, err := os.ReadFile("../../docs/checks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(strings.Join(strings.Fields(string(page)), " "), "run and compared: ")
	if list, _, _ = strings.Cut(strings.ReplaceAll(list, " (run without its database)", ""), "."); list != strings.Join(documented, ", ") {
		t.Errorf("docs/checks.md names %q", list)
	}
}
