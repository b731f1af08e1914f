package mirror

import (
	"cmp"
	"fmt"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// PlanChange mirrors plan changes on the issue of their target.
var PlanChange = Projector{
	Home: func(o *schemas.Object) (int, schemas.Ref) {
		to, err := schemas.SpecAs[*schemas.PlanChangeSpec](o).TargetRef()
		if err != nil {
			return 0, schemas.Ref{}
		}
		return 0, to
	},
	About: func(o *schemas.Object) (title, description string) {
		spec := schemas.SpecAs[*schemas.PlanChangeSpec](o)
		return spec.Said(), spec.Reason
	},
	Write: writePlanChange,
}

// writePlanChange shows the request and the answer. One that cannot be taken is not shown.
func writePlanChange(p *Page) {
	spec := schemas.SpecAs[*schemas.PlanChangeSpec](p.Entry.Object)
	st, ok := p.Entry.Status().(*schemas.PlanChangeStatus)
	if !ok || st.Phase == "" {
		return
	}
	b := p.NewBody()
	what := "Plan change"
	switch {
	case spec.Change == schemas.ChangeHandoff:
		what = "Hand-off of " + codeText(spec.Node)
	case spec.Node != "":
		what = "Blocker of " + codeText(spec.Node)
	}
	b.Paragraph("### %s %s: %s", what, codeText(p.Entry.Name), codeText(st.Phase))
	b.table([]string{"Change", "Of", "By", "Blocked", "Failed"}, [][]string{{codeText(spec.Change), codeText(spec.Target),
		threadName(cmp.Or(spec.By, "a person")), lineText(strings.Join(spec.Blocked, ", "), cellLength), lineText(strings.Join(spec.Failed, ", "), cellLength)}})
	b.Quoted(spec.Reason)
	b.List("What was tried", shortLines(spec.Tried))
	quotedJSON(b, "Context", spec.ShownContext())
	quotedJSON(b, "Suggestions", spec.Suggestions.Shown())
	quotedJSON(b, "The edit that the architect accepts, and only a person may", st.Proposal.Shown())
	if a := st.Answer; a != nil {
		word := "Refused"
		if a.Accept {
			word = "Accepted"
		}
		b.Paragraph("%s by %s.", word, threadName(a.By))
		b.Quoted(strings.TrimSpace(a.Reason + "\n" + a.Instructions))
	}
	b.List("What changes", shortLines(st.Changes))
	b.List("What could not be applied", shortLines(st.Rejected))
	if c := st.Condition(schemas.Ready); c != nil && st.Phase == schemas.PlanPending {
		b.Paragraph("%s", fmt.Sprintf("Waits: %s.", lineText(c.Message, whyLength)))
		b.Paragraph("Comment %s, with an edit in a fenced block if the suggestions are not to be applied as they are, or %s and the reason.",
			codeText("/approve "+p.Entry.Ref.String()), codeText("/deny "+p.Entry.Ref.String()))
	}
	p.Status(b)
}

// quotedJSON shows JSON in a line below a heading; nothing for "".
func quotedJSON(b *Body, heading, text string) {
	if text != "" {
		b.Paragraph("**%s**", heading)
		b.Quoted("```json\n" + text + "\n```") // in one line, so that nothing in it ends the block
	}
}

// shortLines makes texts of agents lines of Markdown.
func shortLines(all []string) []string {
	out := make([]string, len(all))
	for i := range all {
		out[i] = lineText(all[i], whyLength)
	}
	return out
}
