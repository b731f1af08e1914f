package render

import (
	"encoding/xml"
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

const (
	headHeight   = 46.0
	legendHeight = 34.0
)

// SVG writes a graph picture as a self-contained SVG image, with its title, layout and legend: no external fonts,
// scripts, styles or images.
func SVG(w io.Writer, g graph.Picture) error {
	l := newLayout(g)
	width := max(l.width, 2*margin+float64(textWidth(g.Title))*9, legendWidth(g.States()))
	height := headHeight + l.height + legendHeight + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" `+
		`font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="12" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", svgText(g.Title))
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" ` +
		`orient="auto"><path d="M0 0L8 4L0 8z" fill="#6e7781"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%.0f" y="30" font-size="15" font-weight="bold" fill="#1f2328">%s</text>`+"\n",
		margin, svgText(g.Title))
	fmt.Fprintf(&b, `<g transform="translate(0 %.0f)">`+"\n", headHeight)
	for _, way := range l.lines {
		b.WriteString(svgLine(way))
	}
	for _, column := range l.columns {
		for _, s := range column {
			if s.node >= 0 {
				b.WriteString(svgBox(s, g.Nodes[s.node]))
			}
		}
	}
	b.WriteString("</g>\n")
	b.WriteString(svgLegend(g.States(), headHeight+l.height+legendHeight-8))
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// svgLine draws a curve from box to box that starts and ends horizontally, and passes the columns between in a straight
// line.
func svgLine(way line) string {
	var d strings.Builder
	x, y := way[0].x+way[0].width, way[0].y
	fmt.Fprintf(&d, "M%.1f %.1f", x, y)
	for i, s := range way[1:] {
		end := s.x
		if i == len(way)-2 {
			end -= 2
		}
		bend := (end - x) / 2
		fmt.Fprintf(&d, "C%.1f %.1f %.1f %.1f %.1f %.1f", x+bend, y, end-bend, s.y, end, s.y)
		if s.node < 0 {
			fmt.Fprintf(&d, "H%.1f", s.x+s.width)
		}
		x, y = s.x+s.width, s.y
	}
	return fmt.Sprintf(`<path d="%s" fill="none" stroke="#6e7781" stroke-width="1.2" marker-end="url(#tip)"/>`+"\n",
		d.String())
}

func svgBox(s *spot, n graph.Node) string {
	l := graph.LookOf(n.State)
	dash := ""
	if l.Dashed {
		dash = ` stroke-dasharray="4 3"`
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.0f" rx="6" `+
		`fill="%s" stroke="%s" stroke-width="1.5"%s/>`,
		s.x, s.y-boxHeight/2, s.width, boxHeight, l.Fill, l.Stroke, dash)
	middle := s.x + s.width/2
	name := s.y + 4
	caption := n.Caption()
	if caption != "" {
		name = s.y - 4
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle" font-size="10.5" fill="%s">%s</text>`,
			middle, s.y+12, l.Stroke, svgText(caption))
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="#1f2328">%s</text>`+"\n", middle, name,
		svgText(n.Name))
	return b.String()
}

// svgLegend explains the colours that occur.
func svgLegend(states []string, y float64) string {
	var b strings.Builder
	x := margin
	for _, s := range states {
		l := graph.LookOf(s)
		dash := ""
		if l.Dashed {
			dash = ` stroke-dasharray="3 2"`
		}
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="12" height="12" rx="3" fill="%s" stroke="%s"%s/>`,
			x, y, l.Fill, l.Stroke, dash)
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" font-size="11" fill="#57606a">%s</text>`+"\n", x+18, y+10, svgText(s))
		x += legendEntry(s)
	}
	return b.String()
}

func legendEntry(state string) float64 { return 18 + float64(textWidth(state))*6.8 + 18 }

func legendWidth(states []string) float64 {
	width := 2 * margin
	for _, s := range states {
		width += legendEntry(s)
	}
	return width
}

// svgText escapes text for XML; characters that XML does not allow are shown as Line shows them.
func svgText(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(Line(s))) // a strings.Builder does not fail
	return b.String()
}
