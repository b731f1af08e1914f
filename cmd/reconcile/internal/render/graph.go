package render

import (
	"fmt"
	"io"
	"strings"
)

// Graph is a picture of nodes that need each other.
type Graph struct {
	Title string      `json:"title"`
	Nodes []GraphNode `json:"nodes"` // in the order of their declaration
}

// GraphNode is one node. Names in Needs that no node has are left out of the picture.
type GraphNode struct {
	Name  string   `json:"name"`
	State string   `json:"state,omitempty"` // "" where there is none, as in a workflow
	Note  string   `json:"note,omitempty"`  // what stands below the name beside the state: a duration, an agent
	Needs []string `json:"needs,omitempty"`
}

// caption is the second line of a node's box; it tells the state in words, so that colour is not all.
func (n GraphNode) caption() string { return strings.TrimSpace(n.State + " " + n.Note) }

// look is how a state is drawn.
type look struct {
	fill, stroke string
	dashed       bool
}

// looks are the looks of node states; the colours keep a contrast of 4.5 between stroke and fill.
var looks = map[string]look{
	"Succeeded": {fill: "#dafbe1", stroke: "#1a7f37"},
	"Failed":    {fill: "#ffebe9", stroke: "#cf222e"},
	"Running":   {fill: "#ddf4ff", stroke: "#0969da"},
	"Queued":    {fill: "#ddf4ff", stroke: "#0969da", dashed: true},
	"Blocked":   {fill: "#fff8c5", stroke: "#9a6700"},
	"Cancelled": {fill: "#fff1e5", stroke: "#bc4c00"},
	"Skipped":   {fill: "#f6f8fa", stroke: "#6e7781", dashed: true},
}

func lookOf(state string) look {
	if l, ok := looks[state]; ok {
		return l
	}
	return look{fill: "#ffffff", stroke: "#57606a"}
}

// states lists the states that occur, in the order of their first node.
func (g Graph) states() []string {
	var out []string
	seen := map[string]bool{"": true}
	for _, n := range g.Nodes {
		if !seen[n.State] {
			seen[n.State] = true
			out = append(out, n.State)
		}
	}
	return out
}

// edges calls f with the indices of each needed node and the node that needs it.
func (g Graph) edges(f func(from, to int)) {
	index := make(map[string]int, len(g.Nodes))
	for i, n := range g.Nodes {
		index[n.Name] = i
	}
	for i, n := range g.Nodes {
		for _, need := range n.Needs {
			if from, ok := index[need]; ok {
				f(from, i)
			}
		}
	}
}

// Mermaid writes the graph as a mermaid flowchart, which GitHub draws in Markdown.
func Mermaid(w io.Writer, g Graph) error {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, n := range g.Nodes {
		label := mermaidText(n.Name)
		if c := n.caption(); c != "" {
			label += "<br/>" + mermaidText(c)
		}
		fmt.Fprintf(&b, "  n%d[\"%s\"]", i, label)
		if n.State != "" {
			fmt.Fprintf(&b, ":::%s", className(n.State))
		}
		b.WriteByte('\n')
	}
	g.edges(func(from, to int) { fmt.Fprintf(&b, "  n%d --> n%d\n", from, to) })
	for _, s := range g.states() {
		l := lookOf(s)
		fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:%s,color:#1f2328", className(s), l.fill, l.stroke)
		if l.dashed {
			b.WriteString(",stroke-dasharray:4 3")
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// className makes a word that mermaid takes as the name of a class.
func className(state string) string {
	return "s" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, state)
}

// mermaidText escapes what has a meaning inside a quoted label, by mermaid's #code; entities.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range Line(s) {
		if strings.ContainsRune("\"#&<>;`\\[]{}()|", r) {
			fmt.Fprintf(&b, "#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// DOT writes the graph in Graphviz's language.
func DOT(w io.Writer, g Graph) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR\n", dotText(g.Title))
	b.WriteString("  node [shape=box style=\"rounded,filled\" fontname=\"monospace\" fontsize=11]\n")
	for i, n := range g.Nodes {
		l := lookOf(n.State)
		style := "rounded,filled"
		if l.dashed {
			style += ",dashed"
		}
		label := n.Name
		if c := n.caption(); c != "" {
			label += "\n" + c
		}
		fmt.Fprintf(&b, "  n%d [label=%s style=%q fillcolor=%q color=%q]\n", i, dotText(label), style, l.fill, l.stroke)
	}
	g.edges(func(from, to int) { fmt.Fprintf(&b, "  n%d -> n%d\n", from, to) })
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
