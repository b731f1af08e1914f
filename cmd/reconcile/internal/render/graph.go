package render

import (
	"fmt"
	"io"
	"strings"

	"reconcile.dev/reconcile/controllers/graph"
)

// Mermaid writes a graph picture in Mermaid, as a flowchart that GitHub draws in Markdown.
func Mermaid(w io.Writer, g graph.Picture) error {
	_, err := io.WriteString(w, g.Mermaid())
	return err
}

// DOT writes a graph picture as a digraph in DOT, Graphviz's language.
func DOT(w io.Writer, g graph.Picture) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR\n", dotText(g.Title))
	b.WriteString("  node [shape=box style=\"rounded,filled\" fontname=\"monospace\" fontsize=11]\n")
	for i, n := range g.Nodes {
		l := graph.LookOf(n.State)
		style := "rounded,filled"
		if l.Dashed {
			style += ",dashed"
		}
		label := n.Name
		if c := n.Caption(); c != "" {
			label += "\n" + c
		}
		fmt.Fprintf(&b, "  n%d [label=%s style=%q fillcolor=%q color=%q]\n", i, dotText(label), style, l.Fill, l.Stroke)
	}
	g.Edges(func(from, to int) { fmt.Fprintf(&b, "  n%d -> n%d\n", from, to) })
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// dotText quotes text for DOT; line feeds become line breaks of the label.
func dotText(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(Line(l))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}
