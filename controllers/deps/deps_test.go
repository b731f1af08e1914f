package deps

import "testing"

func TestLater(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{">=20", ">=18.1", true}, {">=18", ">=18.1", false}, {"1.21", "1.21.0", false}, {"^3.12", ">=3.9,<4", true}, {"", ">=3", false}} {
		if got := later(c.a, c.b); got != c.want {
			t.Errorf("%q is later than %q: %v", c.a, c.b, got)
		}
	}
}

func FuzzImports(f *testing.F) {
	f.Add("import {a as b} from 'x'\nfrom . import (y\nuse a::b;\nrequire 'x'\nimport a.b\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range []string{"a.go", "a.ts", "a.py", "a.rs", "a.rb", "A.java"} {
			for _, i := range importsOf(File{p, []byte(text)}) {
				if i.line < 1 {
					t.Errorf("%s: %+v", p, i)
				}
			}
		}
	})
}
