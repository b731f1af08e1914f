package mirror

import (
	"encoding/json"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// statusPrefix begins the labels that show the status of an issue, as status:in-review.
const statusPrefix = "status:"

// LabelNamed returns the label of the mirror of a name; ok is false for one that it does not add.
func LabelNamed(name string) (l Label, ok bool) {
	for _, l := range Labels() {
		if l.Name == name {
			return l, true
		}
	}
	return Label{name, "5319e7", "The status of the issue, by the steps of a workflow"}, strings.HasPrefix(name, statusPrefix)
}

// writeRun adds to the issue of a workflow's run the status of the issue, and at the end what its last steps say.
func writeRun(p *Page, spec *schemas.DAGSpec, st *schemas.DAGStatus, b *Body) {
	if spec.Workflow == nil {
		return
	}
	if st.IssueStatus != "" && newestRun(p, spec, st) {
		p.Label(statusLabel(st.IssueStatus))
	}
	if st.Phase != schemas.DAGSucceeded || len(st.Layers) == 0 {
		return
	}
	for _, name := range st.Layers[len(st.Layers)-1] {
		if text := resultText(st.Nodes.Of(name).Result); text != "" {
			b.Paragraph("**%s**", codeText(name))
			b.Quoted(text)
		}
	}
}

// newestRun reports whether no other run of the workflow in a session of the same issue started later.
func newestRun(p *Page, spec *schemas.DAGSpec, st *schemas.DAGStatus) bool {
	issue := func(s *schemas.DAGSpec) int {
		return state.SpecOf[*schemas.SessionSpec](p.Tree().Entry(schemas.SessionKind.Ref(s.Session))).IssueOr(s.Issue)
	}
	for _, ref := range p.Tree().ReferrersOf(schemas.WorkflowKind.Ref(spec.Workflow.Name), schemas.DAGKind.Name) {
		e := p.Tree().Entry(ref)
		other := state.SpecOf[*schemas.DAGSpec](e)
		if other != nil && issue(other) == issue(spec) && state.StatusOf[schemas.DAGStatus](e).StartedAt.After(st.StartedAt.Time) {
			return false
		}
	}
	return true
}

// statusLabel is the label of a status of an issue.
func statusLabel(status string) string {
	const longest = 50 // characters of a label
	words := strings.FieldsFunc(strings.ToLower(status), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := statusPrefix + strings.Join(words, "-")
	return name[:min(len(name), longest)]
}

// resultText is what a result says to people: its summary, or the text that it is.
func resultText(raw json.RawMessage) string {
	var text string
	var report struct{ Summary string }
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return text
	case json.Unmarshal(raw, &report) == nil && report.Summary != "":
		return report.Summary
	}
	return string(raw)
}
