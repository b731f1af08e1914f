package schemas

import "testing"

func TestPlaceIsOneLine(t *testing.T) {
	for _, c := range []struct {
		at   Place
		want string
	}{
		{Place{Path: "specs/a.yaml"}, "specs/a.yaml"},
		{Place{Path: "specs/a.yaml", Line: 3}, "specs/a.yaml:3"},
		{Place{Path: "specs/a.yaml", Line: 3, Column: 7}, "specs/a.yaml:3:7"},
		{Place{Path: "specs/a\nspecs/b.yaml:1:1: spec: gone", Line: 3, Column: 7},
			`specs/a\nspecs/b.yaml:1:1: spec: gone:3:7`},
		{Place{Path: "a\rb"}, `a\rb`},
	} {
		if got := c.at.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
