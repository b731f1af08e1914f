package render

import (
	"fmt"
	"io"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/answer"
	"reconcile.dev/reconcile/vectors/graph"
)

// Hits writes the hits of a search, each with its name, place and lines, and with explain also why it was found.
func Hits(w io.Writer, p Palette, hits []answer.Hit, explain bool) error {
	var b strings.Builder
	for i := range hits {
		writeHit(&b, p, i+1, &hits[i], explain)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeHit(b *strings.Builder, p Palette, rank int, h *answer.Hit, explain bool) {
	id, what := Line(h.ID), h.Kind+"  "+placeOf(h.Path, h.Line)
	fmt.Fprintf(b, "%2d  %s  %s\n", rank, p.Paint(Bold, id), p.Paint(Dim, what))
	for i, line := range h.Snippet {
		number := ""
		if i < len(h.Lines) {
			number = fmt.Sprint(h.Lines[i])
		}
		fmt.Fprintf(b, "%s %s\n", p.Paint(Dim, fmt.Sprintf("%5s", number)), Cut(Line(line), answer.SnippetWidth))
	}
	if explain {
		fmt.Fprintf(b, "      %s\n", p.Paint(Dim, Line(h.Why())))
		for _, f := range h.Facts {
			fmt.Fprintf(b, "      %s\n", p.Paint(Dim, Line(f.String())))
		}
	}
}

// Relations writes the nodes related to a node, the kind of each relation, and the facts about the node.
func Relations(w io.Writer, p Palette, relations []answer.Relation, facts []answer.Fact) error {
	t := NewTable(p, "ID", "KIND", "PLACE", "HOW")
	for _, r := range relations {
		how := r.Link.String()
		if r.Link.Stated {
			how += " (" + r.Link.Path + ")"
		}
		t.Row(r.ID, r.Kind, placeOf(r.Path, r.Line), how)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for _, f := range facts {
		if _, err := fmt.Fprintln(w, Line(f.String())); err != nil {
			return err
		}
	}
	return nil
}

// Cycles writes a shortest path around each cycle.
func Cycles(w io.Writer, p Palette, cycles []answer.Cycle) error {
	t := NewTable(p, "CYCLE", "NODES", "PLACE", "ROUND")
	for i, c := range cycles {
		first, nodes := fmt.Sprintf("%d %s", i+1, c.Edge), fmt.Sprint(len(c.Nodes))
		for _, l := range c.Round {
			t.Row(first, nodes, placeOf(l.Path, l.Line), l.String())
			first, nodes = "", ""
		}
	}
	return t.Write(w)
}

// Paths writes paths, one edge per line; numbered if several were requested.
func Paths(w io.Writer, p Palette, paths []answer.Path, numbered bool) error {
	columns := []string{"EDGE", "PLACE"}
	if numbered {
		columns = append([]string{"WAY"}, columns...)
	}
	t := NewTable(p, columns...)
	for i, way := range paths {
		rows := [][]string{}
		for _, l := range way.Links {
			rows = append(rows, []string{l.String(), placeOf(l.Path, l.Line)})
		}
		if len(rows) == 0 {
			rows = append(rows, []string{way.Nodes[0], ""}) // the ends are the same
		}
		for j, row := range rows {
			switch {
			case !numbered:
			case j == 0:
				row = append([]string{fmt.Sprint(i + 1)}, row...)
			default:
				row = append([]string{""}, row...)
			}
			t.Row(row...)
		}
	}
	return t.Write(w)
}

// IndexStats writes the statistics of an index as a table: the nodes by domain and kind, and the model of the vectors.
func IndexStats(w io.Writer, p Palette, s *answer.Stats) error {
	t := NewTable(p, "DOMAIN", "KIND", "NODES")
	for _, d := range graph.Domains {
		for _, kind := range d.Types() {
			if n := s.Types[kind.String()]; n > 0 {
				t.Row(d.String(), kind.String(), Grouped(n))
			}
		}
	}
	var b strings.Builder
	t.Write(&b) // a buffer does not fail
	if s.Nodes > 0 {
		b.WriteByte('\n')
	}
	model := s.Model
	if model == "" {
		model = "nothing"
	}
	fmt.Fprintf(&b, "%s, %s, %s; vectors by %s\n", GroupedPlural(s.Nodes, "node"), GroupedPlural(s.Edges, "edge"),
		GroupedPlural(s.Inputs, "input"), model)
	if s.Model != "" {
		fmt.Fprintf(&b, "links made with m %d and efConstruction %d; a search keeps %d candidates, a thorough one %d\n",
			s.M, s.EfConstruction, s.EfSearch, s.EfThorough)
	}
	if s.Large+s.Binary > 0 {
		fmt.Fprintf(&b, "left out: %s larger than index.maxFileSize, %s without text\n", schemas.Count(s.Large, "file"), schemas.Count(s.Binary, "file"))
	}
	if s.Unreadable > 0 {
		fmt.Fprintf(&b, "left out because they cannot be read: %s\n", schemas.Count(s.Unreadable, "path"))
	}
	fmt.Fprintf(&b, "%s, the largest of %s nodes; %s without edges; cycles: %d of calls, %d of imports\n",
		schemas.Count(s.Components, "component"), Grouped(s.Largest), Grouped(s.Isolated),
		s.Cycles[graph.Calls.String()], s.Cycles[graph.Imports.String()])
	if s.HubEdges > 0 {
		fmt.Fprintf(&b, "the most edges, %s, has %s\n", Grouped(s.HubEdges), Line(s.Hub))
	}
	if s.Stated+s.Provenances+s.Conflicts > 0 {
		fmt.Fprintf(&b, "stated: %s, %s, %s (%d open)\n", schemas.Count(s.Stated, "edge"), schemas.Count(s.Provenances, "provenance"),
			schemas.Count(s.Conflicts, "conflict"), s.Unresolved)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
