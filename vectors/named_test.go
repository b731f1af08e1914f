package vectors_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
)

// TestExactNamesFirst: what is called exactly what was typed comes first, also where other texts have the word much more
// often, where the word is too common to search by, and for constants and variables.
func TestExactNamesFirst(t *testing.T) {
	t.Parallel()
	item := func(name string, kind graph.NodeType, body string) graph.Item {
		return graph.Item{Node: graph.Node{ID: "a/b.go:" + name, Type: kind, Name: name}, Title: name, Body: body}
	}
	var noise []graph.Item
	for _, name := range []string{"ObjectKind", "objectSigned", "AdmitAll", "signed_object", "admitSigned"} {
		noise = append(noise, item(name, graph.Function, strings.Repeat("object admit signed all ", 40)))
	}
	items := append([]graph.Item{
		item("Object", graph.Constant, "= 1"), item("object", graph.Variable, "= 2"), item("Signed", graph.Type, "struct{}"),
		item("Gate.Admit", graph.Method, "{}"), item("All", graph.Function, "{}"),
	}, noise...)
	x := open(t, build(t, []vectors.Input{{Name: "go:a/b.go", Digest: 1, Part: graph.Part{Items: items}}}, options()), nil, options())
	for query, want := range map[string]string{
		"Object": "Object object", "object": "object Object", "Signed": "Signed", "signed": "Signed", "Admit": "Gate.Admit",
		"admit all": "AdmitAll", "Signed-Object": "signed_object", "object_kind": "ObjectKind", "objectsigned": "objectSigned",
		"Gate.Admit": "Gate.Admit", "gate.admit": "Gate.Admit", " Admit() ": "Gate.Admit", "all": "All", "OBJECT": "Object object",
	} {
		for _, mode := range []vectors.Mode{vectors.Lexical, vectors.Hybrid} {
			answer, err := x.Search(t.Context(), vectors.Query{Text: query, Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range answer.Results {
				got = append(got, f.Name)
			}
			names := strings.Fields(want)
			if len(got) < len(names) || !slices.Equal(got[:len(names)], names) {
				t.Errorf("%s %q: %v, want %s first", mode, query, got, want)
			}
		}
	}
	answer, err := x.Search(t.Context(), vectors.Query{Text: "Object", Types: []graph.NodeType{graph.Function}})
	if err != nil || slices.ContainsFunc(answer.Results, func(f vectors.Found) bool { return f.Named > 0 }) {
		t.Errorf("what is not asked for is found by its name: %+v (%v)", answer.Results, err)
	}
}

// TestWordBeforeLikeness: a long text that has the only word of a query comes before texts that are like the word or have parts of it.
func TestWordBeforeLikeness(t *testing.T) {
	t.Parallel()
	item := func(name, body string) graph.Item {
		return graph.Item{Node: graph.Node{ID: "a/b.go:" + name, Type: graph.Function, Name: name}, Title: name, Body: body}
	}
	var long strings.Builder
	for i := range 400 {
		fmt.Fprintf(&long, "other%d ", i)
	}
	items := []graph.Item{item("Long", long.String()+"wombat1")}
	for i := range 40 {
		items = append(items, item(fmt.Sprintf("womba1_t%d", i), "1"))
	}
	x := open(t, build(t, []vectors.Input{{Name: "go:a/b.go", Digest: 1, Part: graph.Part{Items: items}}}, options()), nil, options())
	for _, query := range []string{"wombat1", " Wombat1\n"} {
		answer, err := x.Search(t.Context(), vectors.Query{Text: query})
		if err != nil || len(answer.Results) < 2 || answer.Results[0].Name != "Long" {
			t.Errorf("%q: %+v (%v)", query, answer.Results[:min(2, len(answer.Results))], err)
		}
	}
}

// TestWordsOfConstants: constants and variables, which have no vectors, are found by their comments before texts that have fewer of
// the words, although these are like the query.
func TestWordsOfConstants(t *testing.T) {
	t.Parallel()
	item := func(name string, kind graph.NodeType, body string) graph.Item {
		return graph.Item{Node: graph.Node{ID: "a/b.go:" + name, Type: kind, Name: name}, Title: name, Body: body}
	}
	items := []graph.Item{
		item("Most", graph.Variable, "the largest number of nodes that a compiler takes"),
		item("Depth", graph.Constant, "the deepest recursion of a parser"),
	}
	for i := range 40 {
		items = append(items, item(fmt.Sprintf("compile%d", i), graph.Function, "compiler nodes"),
			item(fmt.Sprintf("parse%d", i), graph.Function, "parser recursion"))
	}
	x := open(t, build(t, []vectors.Input{{Name: "go:a/b.go", Digest: 1, Part: graph.Part{Items: items}}}, options()), nil, options())
	for query, want := range map[string]string{
		"largest number of nodes of the compiler": "Most", "how deep is the recursion of the parser": "Depth",
		"the deepest recursion of a parser": "Depth",
	} {
		answer, err := x.Search(t.Context(), vectors.Query{Text: query})
		if err != nil || len(answer.Results) < 2 || answer.Results[0].Name != want {
			t.Errorf("%q: %+v (%v), want %s first", query, answer.Results[:min(2, len(answer.Results))], err, want)
		}
	}
}
