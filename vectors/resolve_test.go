package vectors_test

import (
	"testing"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
)

// A line of a file names what has the fewest lines there, before and after the file changed.
func TestStanding(t *testing.T) {
	t.Parallel()
	input := func(digest uint64, drop int) vectors.Input {
		b := &graph.PartBuilder{}
		for _, n := range []graph.Node{
			{ID: "a:b.go", Type: graph.File, Line: 1, End: 40},
			{ID: "a:b.go:T", Type: graph.Type, Line: 10 - drop, End: 30 - drop},
			{ID: "a:b.go:T.M", Type: graph.Method, Line: 20 - drop, End: 22 - drop},
			{ID: "dag/b", Type: graph.DAG, Line: 1},
		} {
			n.Path = "a:b.go"
			b.Add(graph.Item{Node: n})
		}
		return vectors.Input{Name: "file:a:b.go", Digest: digest, Part: b.Part}
	}
	o := options()
	x := open(t, build(t, []vectors.Input{input(1, 0)}, o), nil, o)
	changed, err := x.Stored.Update(t.Context(), []vectors.Input{input(2, 5)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(x *vectors.Index, want map[string]string) {
		t.Helper()
		for place, id := range want {
			r, ok := x.AtLine(place)
			if got := x.Graph().ID(r); ok != (id != "") || ok && got != id {
				t.Errorf("%q is %q (%v), want %q", place, got, ok, id)
			}
		}
	}
	check(x, map[string]string{
		"a:b.go:1": "a:b.go", "./a:b.go:9": "a:b.go", "a:b.go:10": "a:b.go:T", "a:b.go:20": "a:b.go:T.M", "a:b.go:22": "a:b.go:T.M",
		"a:b.go:23": "a:b.go:T", "a:b.go:40": "a:b.go", "a:b.go:41": "dag/b", "a:b.go:0": "", "a:b.go:-1": "", "a:b.go:": "",
		"a:b.go": "", ":3": "", "3": "", "": "", "b.go:3": "", "a:b.go:99999999999999999999": "",
	})
	check(changed, map[string]string{"a:b.go:9": "a:b.go:T", "a:b.go:15": "a:b.go:T.M", "a:b.go:20": "a:b.go:T", "a:b.go:30": "a:b.go"})
}
