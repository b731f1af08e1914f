package render

import (
	"fmt"
	"io"
	"strings"

	"reconcile.dev/reconcile/controllers/preview"
	"reconcile.dev/reconcile/schemas"
)

// Preview writes the diff of each file below a line about it, and a summary.
func Preview(w io.Writer, palette Palette, c *preview.Change) error {
	var b strings.Builder
	for i := range c.Files {
		f := &c.Files[i]
		name := f.Path
		if f.From != "" {
			name = f.From + " -> " + f.Path
		}
		b.WriteString(palette.Paint(Bold, Line(fmt.Sprintf("%s %s", f.Status, name))))
		fmt.Fprintf(&b, "  +%d -%d, %d changed, %s\n", f.Added, f.Removed, f.Changed, schemas.Count(len(f.Hunks), "hunk"))
		flags(&b, palette, f.Flags)
		for line := range strings.Lines(hunksOf(f.Diff)) {
			b.WriteString(paintDiff(palette, Text(strings.TrimSuffix(line, "\n"))) + "\n")
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s: +%d -%d, %d changed, %s\n", schemas.Count(len(c.Files), "file"), c.Added, c.Removed, c.Changed, schemas.Count(c.Hunks, "hunk"))
	flags(&b, palette, c.Flags)
	_, err := io.WriteString(w, b.String())
	return err
}

func flags(b *strings.Builder, palette Palette, flags []preview.Flag) {
	for _, f := range flags {
		b.WriteString(palette.Paint(Yellow, Line("! "+f.Name+": "+f.Message)) + "\n")
	}
}

// hunksOf is a diff without its head, which the line about the file says in words.
func hunksOf(diff string) string {
	if i := strings.Index(diff, "\n@@ "); i >= 0 {
		return diff[i+1:]
	}
	return ""
}

func paintDiff(palette Palette, line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return palette.Paint(Green, line)
	case strings.HasPrefix(line, "-"):
		return palette.Paint(Red, line)
	case strings.HasPrefix(line, "@@"):
		return palette.Paint(Dim, line)
	}
	return line
}
