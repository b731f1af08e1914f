package tools

import (
	"slices"
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
