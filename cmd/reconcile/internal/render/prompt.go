package render

import (
	"fmt"
	"io"
	"strings"
)

// PromptPart is one part of a prompt.
type PromptPart struct {
	Name   string
	Tokens int
	Text   string
}

// Prompt writes the parts of a prompt, each below a line with its name and its size.
func Prompt(w io.Writer, p Palette, parts []PromptPart) error {
	var out strings.Builder
	for _, part := range parts {
		out.WriteString(p.Paint(Dim, fmt.Sprintf("== %s: %s", part.Name, GroupedPlural(part.Tokens, "token"))) + "\n")
		out.WriteString(Text(strings.Trim(part.Text, "\n")) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}
