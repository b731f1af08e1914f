// Package graph describes the picture of a graph of tasks.
package graph

import (
	"fmt"
	"strings"
	"unicode"
)

// Picture is a drawing of nodes that need each other.
type Picture struct {
	Title string `json:"title"`
	Nodes []Node `json:"nodes"` // in the order of their declaration
}

// Node is one node of a picture. Names in Needs that no node has are left out.
type Node struct {
	Name  string   `json:"name"`
	State string   `json:"state,omitempty"` // "" if unknown, as in a workflow
	Note  string   `json:"note,omitempty"`  // shown below the name next to the state: a duration, an agent
	Needs []string `json:"needs,omitempty"`
}

// Caption returns the caption of a node, its state and its note, which is the second line of its box. It tells the
// state in words, so that colour is not all.
func (n Node) Caption() string { return strings.TrimSpace(n.State + " " + n.Note) }

// Look is how a state is drawn; colours are #rrggbb.
type Look struct {
	Fill, Stroke string
	Dashed       bool
}

// looks are the looks of node states; the colours keep a contrast of 4.5 between stroke and fill.
var looks = map[string]Look{
	"Succeeded": {Fill: "#dafbe1", Stroke: "#1a7f37"},
	"Failed":    {Fill: "#ffebe9", Stroke: "#cf222e"},
	"Running":   {Fill: "#ddf4ff", Stroke: "#0969da"},
	"Queued":    {Fill: "#ddf4ff", Stroke: "#0969da", Dashed: true},
	"Blocked":   {Fill: "#fff8c5", Stroke: "#9a6700"},
	"Cancelled": {Fill: "#fff1e5", Stroke: "#bc4c00"},
	"Skipped":   {Fill: "#f6f8fa", Stroke: "#6e7781", Dashed: true},
}

// LookOf is the look of a state, also of one that is not known.
func LookOf(state string) Look {
	if l, ok := looks[state]; ok {
		return l
	}
	return Look{Fill: "#ffffff", Stroke: "#57606a"}
}

// States returns the different states of the picture's nodes, in the order of their first node.
func (p Picture) States() []string {
	var out []string
	seen := map[string]bool{"": true}
	for _, n := range p.Nodes {
		if !seen[n.State] {
			seen[n.State] = true
			out = append(out, n.State)
		}
	}
	return out
}

// Edges calls f with the indices of both nodes of each edge of the picture, first the node that the other needs.
func (p Picture) Edges(f func(from, to int)) {
	index := make(map[string]int, len(p.Nodes))
	for i, n := range p.Nodes {
		index[n.Name] = i
	}
	for i, n := range p.Nodes {
		for _, need := range n.Needs {
			if from, ok := index[need]; ok {
				f(from, i)
			}
		}
	}
}

// Mermaid is the picture as a mermaid flowchart, which GitHub draws in Markdown.
func (p Picture) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, n := range p.Nodes {
		label := mermaidText(n.Name)
		if c := n.Caption(); c != "" {
			label += "<br/>" + mermaidText(c)
		}
		fmt.Fprintf(&b, "  n%d[\"%s\"]", i, label)
		if n.State != "" {
			fmt.Fprintf(&b, ":::%s", className(n.State))
		}
		b.WriteByte('\n')
	}
	p.Edges(func(from, to int) { fmt.Fprintf(&b, "  n%d --> n%d\n", from, to) })
	for _, s := range p.States() {
		l := LookOf(s)
		fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:%s,color:#1f2328", className(s), l.Fill, l.Stroke)
		if l.Dashed {
			b.WriteString(",stroke-dasharray:4 3")
		}
		b.WriteByte('\n')
	}
	return b.String()
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

// mermaidText escapes the special characters of a quoted label, by mermaid's #code; entities. Invisible characters,
// including line ends, become a replacement character.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case strings.ContainsRune("\"#&<>;`\\[]{}()|", r):
			fmt.Fprintf(&b, "#%d;", r)
		case !unicode.IsPrint(r):
			b.WriteRune(unicode.ReplacementChar)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
