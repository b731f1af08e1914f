package graph_test

import (
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/vectors/graph"
)

func TestNames(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, d := range graph.Domains {
		if back, err := graph.ParseDomain(d.String()); err != nil || back != d {
			t.Errorf("ParseDomain(%q) = %v, %v", d, back, err)
		}
		for _, nt := range d.Types() {
			seen++
			if back, err := graph.ParseNodeType(nt.String()); err != nil || back != nt || nt.Domain() != d {
				t.Errorf("ParseNodeType(%q) = %v, %v in %s", nt, back, err, nt.Domain())
			}
		}
	}
	if seen != 22 {
		t.Errorf("the domains have %d types of nodes, want 22", seen)
	}
	for e := graph.Calls; e <= graph.UsedPattern; e++ {
		if back, err := graph.ParseEdgeType(e.String()); err != nil || back != e {
			t.Errorf("ParseEdgeType(%q) = %v, %v", e, back, err)
		}
	}
	if got := graph.BestPractice.String() + " " + graph.LedTo.String() + " " + graph.NodeType(99).String(); got != "best_practice led_to unknown(99)" {
		t.Error(got)
	}
	_, err := graph.ParseDomain("codes")
	if want := `"codes" is no domain; write one of code, history, academic`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, name := range []string{"", "unknown(0)"} {
		if _, err := graph.ParseNodeType(name); err == nil {
			t.Errorf("%q is a type", name)
		}
	}
}

// TestRules holds the rules to the whole table: per type which ways are allowed, of all nine.
func TestRules(t *testing.T) {
	t.Parallel()
	const c, h, a = graph.Code, graph.History, graph.Academic
	type way [2]graph.Domain
	want := map[graph.EdgeType][]way{
		graph.Calls: {{c, c}}, graph.Imports: {{c, c}}, graph.Defines: {{c, c}}, graph.Implements: {{c, c}},
		graph.Contains: {{c, c}, {h, h}, {a, a}},
		graph.Follows:  {{h, h}}, graph.Causes: {{h, h}}, graph.Resolves: {{h, h}}, graph.LedTo: {{h, h}},
		graph.References: {{c, a}, {a, c}, {h, c}, {h, h}, {h, a}, {a, a}},
		graph.AppliesTo:  {{a, c}}, graph.Documents: {{a, c}}, graph.Modified: {{h, c}}, graph.UsedPattern: {{h, a}},
	}
	example := map[graph.Domain]graph.NodeType{c: graph.File, h: graph.Session, a: graph.Doc}
	for e := graph.Calls; e <= graph.UsedPattern; e++ {
		for _, from := range graph.Domains {
			for _, to := range graph.Domains {
				allowed := slices.Contains(want[e], way{from, to})
				err := graph.CheckEdge(e, &graph.Node{ID: "x", Type: example[from]}, &graph.Node{ID: "y", Type: example[to]})
				if (err == nil) != allowed {
					t.Errorf("%s from %s to %s: %v", e, from, to, err)
				}
			}
		}
	}
	file := &graph.Node{ID: "x", Type: graph.File}
	for _, e := range []graph.EdgeType{0, graph.UsedPattern + 1, 200} {
		if graph.CheckEdge(e, file, file) == nil {
			t.Errorf("%s is allowed, which is no type", e)
		}
	}
	if graph.CheckEdge(graph.Calls, &graph.Node{ID: "y"}, &graph.Node{ID: "y"}) == nil {
		t.Error("what is of no domain is allowed")
	}
}

func TestRefusalsSayWhatIsAllowed(t *testing.T) {
	t.Parallel()
	nodes := []graph.Node{
		{ID: "state/tree.go", Type: graph.File}, {ID: "session/login", Type: graph.Session}, {ID: "docs/git.md", Type: graph.Doc},
	}
	_, refused := graph.Build(graph.Parts{Nodes: nodes, Edges: []graph.Edge{
		{From: "state/tree.go", To: "session/login", Type: graph.Modified, Source: "state/links.yaml"},
		{From: "state/tree.go", To: "state/gone.go", Type: graph.Calls},
		{From: "session/login", To: "session/login", Type: graph.Follows},
		{From: "session/login", To: "docs/git.md", Type: 77},
		{From: "session/login", To: "docs/git.md", Type: graph.UsedPattern, Weight: 1.5},
	}})
	want := []string{
		`edge follows from "session/login" to itself: only calls may lead back to where they are from`,
		`edge from "session/login" to "docs/git.md": unknown(77) is no type of edge`,
		`edge used_pattern from "session/login" to "docs/git.md" has the weight 1.5; weights are above 0 up to 1`,
		`edge calls from "state/tree.go" to "state/gone.go": there is no node "state/gone.go"; add it, or leave the edge out`,
		`state/links.yaml: edge modified from "state/tree.go" (code file) to "session/login" (history session): modified goes history to code; from code to history go none`,
	}
	slices.Sort(want)
	var got []string
	for _, err := range refused {
		got = append(got, err.Error())
	}
	if !slices.Equal(got, want) {
		t.Errorf("refused:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
