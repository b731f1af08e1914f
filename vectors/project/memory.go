package project

import (
	"cmp"
	"path"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/graph"
)

// typeOf says what a category of observations is.
var typeOf = map[string]graph.NodeType{
	schemas.CategoryDecision: graph.Decision, schemas.CategoryError: graph.Failure,
}

// Memory makes the part of the observations that stand in one file of the memory, at p. Those that a newer one replaced
// are left out.
func Memory(p string, observations []schemas.Observation) graph.Part {
	b := &graph.PartBuilder{}
	for i := range observations {
		o := &observations[i]
		if o.SupersededBy != "" {
			continue
		}
		t := typeOf[o.Category]
		if t == 0 {
			t = graph.Observation
		}
		n := graph.Node{
			ID: "observation/" + o.ID, Type: t, Name: cmp.Or(o.Summary, o.ID), Path: p,
			Labels: labels("agent", o.Agent, "category", o.Category, "issue", number(o.IssueNumber), "kind", "observation",
				"session", o.SessionID, "source", o.Source),
		}
		if !o.Timestamp.IsZero() {
			n.At = o.Timestamp.Unix()
		}
		id := b.Add(graph.Item{Node: n, Title: o.Summary, Body: o.Content})
		for _, a := range o.Anchors {
			b.Edge(id, graph.References, path.Clean(a.Path))
		}
		if o.SessionID != "" {
			b.Edge(schemas.Ref{Kind: schemas.SessionKind.Name, Name: o.SessionID}.String(), graph.Contains, id)
		}
	}
	return b.Part
}
