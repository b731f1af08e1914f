package formats

import (
	"fmt"
	"testing"
)

// What the tools of further languages print: the findings as FILE:LINE:COLUMN SEVERITY RULE MESSAGE, and whether the output is complete.
func TestReadLanguages(t *testing.T) {
	for _, c := range []struct{ format, output, want string }{
		{"unformatted", "main.tf\nmodules/a/b.tf\n", "main.tf:0:0 low  it is not formatted;modules/a/b.tf:0:0 low  it is not formatted;true 0"},
		{"unformatted", "a.zig:3:5: error: expected ';' after statement\n", "a.zig:3:5 high  expected ';' after statement;true 0"},
		{"ty", "a.py:1:10: error[invalid-assignment] Object is not assignable\nFound 1 diagnostic\n", "a.py:1:10 high invalid-assignment Object is not assignable;true 0"},
		{"ty", "a.py:1:10: error[invalid-assignment] Object is not assignable\n", "a.py:1:10 high invalid-assignment Object is not assignable;false 0"},
		{"ty", "All checks passed!\n", "true 0"},
		{"msbuild", "/w/Program.cs(3,9): warning CS0219: The variable 'x' is assigned [/w/a.csproj]\n", "/w/Program.cs:3:9 medium CS0219 The variable 'x' is assigned;true 0"},
		{"msbuild", "MSBUILD : error MSB1003: Specify a project file.\n", ":0:0 high MSB1003 Specify a project file.;true 0"},
		{"mix-format", "** (Mix) mix format failed due to --check-formatted.\nThe following files are not formatted:\n\n  * lib/a.ex\n", "lib/a.ex:0:0 low  it is not formatted;true 0"},
		{"mix-format", "** (SyntaxError) lib/a.ex:2:3: unexpected token\n", "lib/a.ex:2:3 high SyntaxError unexpected token;true 0"},
		{"dune-format", "File \"bin/main.ml\", line 1, characters 0-0:\n", "bin/main.ml:1:0 low  it is not formatted;true 0"},
		{"dart-machine", "ERROR|COMPILE_TIME_ERROR|UNDEFINED_IDENTIFIER|/w/a.dart|2|3|4|Undefined name 'x'.\n", "/w/a.dart:2:3 high UNDEFINED_IDENTIFIER Undefined name 'x'.;true 0"},
		{"dart-format", "Changed lib/a.dart\nFormatted 2 files (1 changed) in 0.1 seconds.\n", "lib/a.dart:0:0 low  it is not formatted;true 0"},
		{"statix", "flake.nix>46:13:W:3:This assignment is better written with inherit\n", "flake.nix:46:13 medium 3 This assignment is better written with inherit;true 0"},
		{"nixfmt", "a.nix: not formatted\n", "a.nix:0:0 low  it is not formatted;true 0"},
		{"svelte-check", "1 START \"/w\"\n2 ERROR \"App.svelte\" 1:16 \"Cannot find module\"\n3 COMPLETED 5 FILES 1 ERRORS 0 WARNINGS 1 FILES_WITH_PROBLEMS\n",
			"App.svelte:1:16 high  Cannot find module;true 0"},
	} {
		r, err := Read(c.format, []byte(c.output), Options{})
		got := ""
		for _, f := range r.Findings {
			got += fmt.Sprintf("%s:%d:%d %s %s %s;", f.File, f.Line, f.Column, f.Severity, f.Rule, f.Message)
		}
		if got += fmt.Sprint(r.Complete, r.Ignored); err != nil || got != c.want {
			t.Errorf("%s %q:\ngot  %s %v\nwant %s", c.format, c.output, got, err, c.want)
		}
	}
}
