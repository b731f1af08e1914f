package main

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

func newExplainCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain KIND[.FIELD…]",
		Short: "Say what may be written in a field of a kind",
		Example: "  reconcile explain dag\n" +
			"  reconcile explain dag.spec.nodes.needs\n" +
			"  reconcile explain agent.spec.runner -o json",
		Args:              arguments(1, 1, "a field"),
		RunE:              func(_ *cobra.Command, args []string) error { return a.explain(args[0]) },
		ValidArgsFunction: completeFields,
	}
}

// explanation is a field as -o json prints it.
type explanation struct {
	Field       string        `json:"field"`
	Type        string        `json:"type"`
	Required    bool          `json:"required,omitempty"`
	Default     string        `json:"default,omitempty"`
	Values      []string      `json:"values,omitempty"`
	Limits      []string      `json:"limits,omitempty"`
	Examples    []string      `json:"examples,omitempty"`
	Description string        `json:"description,omitempty"`
	Fields      []explanation `json:"fields,omitempty"`
}

func explanationOf(e schemas.Explanation) explanation {
	out := explanation{
		Field: e.Path, Type: e.Type, Required: e.Required, Default: e.Default, Values: e.Enum, Limits: e.Limits,
		Examples: e.Examples, Description: e.Description,
	}
	for _, f := range e.Fields {
		out.Fields = append(out.Fields, explanationOf(f))
	}
	return out
}

func (a *app) explain(field string) error {
	word, rest, _ := strings.Cut(field, ".")
	k, err := findKind(word)
	if err != nil {
		return err
	}
	var path []string
	if rest != "" {
		path = strings.Split(rest, ".")
	}
	e, err := schemas.Explain(k, path)
	if err != nil {
		return badUsage("%v", err)
	}
	if a.global.output != formatTable {
		return a.print(explanationOf(e))
	}
	_, err = a.stdout.Write(explainText(a.palette(), k, e))
	return err
}

// explainText lays a field out as kubectl does: head, description, children.
func explainText(p render.Palette, k schemas.Kind, e schemas.Explanation) []byte {
	var b bytes.Buffer
	t := render.NewTable(p)
	t.Wrap = true
	row := func(head, value string) {
		if value != "" {
			t.Cells(render.Cell{Text: head + ":", Color: render.Bold}, render.Cell{Text: value})
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
		b.WriteString("\n" + p.Paint(render.Bold, "DESCRIPTION:") + "\n")
		for _, line := range render.Wrap(e.Description, descriptionWidth(p)) {
			b.WriteString("  " + line + "\n")
		}
	}
	if len(e.Fields) > 0 {
		b.WriteString("\n" + p.Paint(render.Bold, "FIELDS:") + "\n")
		writeFields(&b, p, e)
	}
	return b.Bytes()
}

// writeFields lists the fields of a set, each with the first sentence of its description.
func writeFields(b *bytes.Buffer, p render.Palette, e schemas.Explanation) {
	t := render.NewTable(p)
	t.Indent, t.Wrap = "  ", true
	for _, f := range e.Fields {
		name := strings.TrimPrefix(f.Path, e.Path+".")
		t.Cells(render.Cell{Text: name, Color: render.Bold}, render.Cell{Text: f.Type + requiredMark(f), Color: render.Dim},
			render.Cell{Text: firstSentence(f.Description)})
	}
	t.Write(b)
}

// descriptionWidth is where a description is broken: it is easy to read, and fits the terminal.
func descriptionWidth(p render.Palette) int {
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

func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		s = s[:i+1]
	}
	return render.Cut(s, 120)
}

// completeFields offers the kinds, and behind a dot the fields that may follow.
func completeFields(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	dot := strings.LastIndexByte(typed, '.')
	if dot < 0 {
		words, _ := kindCompletions(true, nil)
		return words, directive
	}
	path := strings.Split(typed[:dot], ".")
	k, ok := kinds().Find(path[0])
	if !ok {
		return nil, directive
	}
	e, err := schemas.Explain(k, path[1:])
	if err != nil {
		return nil, directive
	}
	var out []cobra.Completion
	for _, f := range e.Fields {
		name := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
		out = append(out, cobra.CompletionWithDesc(typed[:dot+1]+name, firstSentence(f.Description)))
	}
	return out, directive
}
