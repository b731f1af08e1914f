package project

import (
	"cmp"
	"path"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/graph"
)

// typeOf says what a category of observations is.
var typeOf = map[string]graph.NodeType{
	schemas.CategoryDecision: graph.Decision, schemas.CategoryError: graph.Failure,
}

// Remembered are the observations in a file of the memory.
type Remembered struct {
	Path         string
	Observations []schemas.Observation
}

// Memory makes the part of an issue's remembered observations from their files: the issue's file and its archive. It
// leaves out observations that a newer one replaced. A merged observation is indexed by the text of its originals, as
// long as it exists and all of them do; the merged one is then found by its name.
func Memory(files ...Remembered) graph.Part {
	b := &graph.PartBuilder{}
	merged := mergedIn(files)
	for _, f := range files {
		for i := range f.Observations {
			o := f.Observations[i]
			switch {
			case o.SupersededBy != "" || o.Archived && !merged[o.ID]:
				continue
			case len(o.Compacts) > 0 && merged[o.Compacts[0]]:
				o.Content = ""
			}
			observation(b, f.Path, &o)
		}
	}
	return b.Part
}

// mergedIn returns the originals of merged observations, of those whose originals all exist.
func mergedIn(files []Remembered) map[string]bool {
	there, out := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		for i := range f.Observations {
			there[f.Observations[i].ID] = there[f.Observations[i].ID] || f.Observations[i].Archived
		}
	}
	for _, f := range files {
		for i := range f.Observations {
			o := &f.Observations[i]
			if o.SupersededBy != "" || o.Archived || slices.ContainsFunc(o.Compacts, func(id string) bool { return !there[id] }) {
				continue
			}
			for _, id := range o.Compacts {
				out[id] = true
			}
		}
	}
	return out
}

func observation(b *graph.PartBuilder, p string, o *schemas.Observation) {
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
