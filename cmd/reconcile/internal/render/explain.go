package render

import (
	"io"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Explanation writes a field of a kind as kubectl does: head, description, fields.
func Explanation(w io.Writer, p Palette, k schemas.Kind, e schemas.Explanation) error {
	var b strings.Builder
	t := NewTable(p)
	t.Wrap = true
	row := func(head, value string) {
		if value != "" {
			t.Cells(Cell{Text: head + ":", Color: Bold}, Cell{Text: value})
		}
	}
	row("KIND", k.Name)
	row("FIELD", e.Path)
	row("TYPE", e.Type+requiredMark(e))
	row("DEFAULT", e.Default)
	row("VALUES", strings.Join(e.Enum, ", "))
	row("LIMITS", strings.Join(e.Limits, ", "))
	row("EXAMPLES", strings.Join(e.Examples, ", "))
	t.Write(&b) // a buffer does not fail; nor does it below
	if e.Description != "" {
		b.WriteString("\n" + p.Paint(Bold, "DESCRIPTION:") + "\n")
		for _, line := range Wrap(e.Description, descriptionWidth(p)) {
			b.WriteString("  " + line + "\n")
		}
	}
	if len(e.Fields) > 0 {
		b.WriteString("\n" + p.Paint(Bold, "FIELDS:") + "\n")
		writeFields(&b, p, e)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFields lists the fields of a set, each with the first sentence of its description.
func writeFields(b *strings.Builder, p Palette, e schemas.Explanation) {
	t := NewTable(p)
	t.Indent, t.Wrap = "  ", true
	for _, f := range e.Fields {
		name := strings.TrimPrefix(f.Path, e.Path+".")
		t.Cells(Cell{Text: name, Color: Bold}, Cell{Text: f.Type + requiredMark(f), Color: Dim},
			Cell{Text: FirstSentence(f.Description)})
	}
	t.Write(b)
}

// descriptionWidth is where a description is broken: it is easy to read, and fits the terminal.
func descriptionWidth(p Palette) int {
	const easy, indent = 100, 2
	if p.Width == 0 {
		return easy
	}
	return min(easy, max(p.Width-indent, 1))
}

func requiredMark(e schemas.Explanation) string {
	if e.Required {
		return ", required"
	}
	return ""
}

// FirstSentence returns the first sentence of s, cut to 120 columns.
func FirstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		s = s[:i+1]
	}
	return Cut(s, 120)
}
