package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/outputs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
)

func newDescribeCmd(a *app) *cobra.Command {
	at := ""
	cmd := &cobra.Command{
		Use:   "describe KIND/NAME",
		Short: "Tell all about one object: why it is not ready, and when it is looked at again",
		Example: "  reconcile describe dag/checks\n" +
			"  reconcile describe session/health -o json",
		Args: arguments(1, 2, "an object"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.describe(cmd.Context(), strings.Join(args, "/"), at)
		},
		ValidArgsFunction: a.completeObjects(false),
	}
	a.atFlag(cmd, &at)
	return cmd
}

// description is an object as describe -o json prints it.
type description struct {
	merged
	Path      string   `json:"path,omitempty"`
	Why       []string `json:"why"`       // why it is not ready, and when it is looked at again
	Referrers []string `json:"referrers"` // objects that name it
	// OutputsChanged are the declared outputs that have changed since their runs, by node.
	OutputsChanged map[string][]string `json:"outputsChanged,omitempty"`
	missing        map[string][]string // declared outputs, by node
}

func (a *app) describe(ctx context.Context, what, at string) error {
	t, done, err := a.loadAt(ctx, at)
	if err != nil {
		return err
	}
	defer done()
	e, err := find(t, what)
	if err != nil {
		return err
	}
	d := description{merged: mergedOf(e), Why: controllers.Why(e, t), Referrers: []string{}}
	for _, r := range t.Referrers(e.Ref) {
		d.Referrers = append(d.Referrers, r.String())
	}
	if e.Object != nil {
		d.Path = e.Object.Path
	}
	if at == "" {
		if a.global.output == formatTable {
			a.noteInterrupted(e)
		}
		if d.missing, d.OutputsChanged, err = outputs.Compare(ctx, a.global.dir, e); err != nil {
			return err
		}
	}
	if a.global.output != formatTable {
		return a.print(d)
	}
	page := &page{app: a, p: a.palette()}
	page.describe(e, d)
	_, err = a.stdout.Write(page.b.Bytes())
	return err
}

// page is a description under construction.
type page struct {
	*app
	p render.Palette
	b bytes.Buffer
}

func (p *page) describe(e *state.Entry, d description) {
	p.head(e, d)
	p.section("Why", p.lines(whyBeside(d.Why, e.Problems)))
	if e.Broken() {
		p.section("Problems", p.problemText(e.Problems))
	}
	p.section("Spec", p.spec(e))
	p.section("Conditions", p.conditions(e))
	p.section("Nodes", p.nodes(e))
	p.failures(e)
	p.section("Outputs", p.lines(outputLines(d.missing, d.OutputsChanged)))
	p.section("Actions", p.actions(e))
	p.section("Referred to by", p.lines(d.Referrers))
	p.section("History", p.history(e))
}

// sectionIndent begins each line of a section.
const sectionIndent = "  "

// table is a table for a section.
func (p *page) table(heads ...string) *render.Table {
	palette := p.p
	if palette.Width > 0 {
		palette.Width = max(palette.Width-len(sectionIndent), 1)
	}
	t := render.NewTable(palette, heads...)
	t.Wrap = true
	return t
}

// section writes a headline and an indented text, if there is one.
func (p *page) section(head, text string) {
	if text == "" {
		return
	}
	fmt.Fprintf(&p.b, "\n%s\n", p.p.Paint(render.Bold, head+":"))
	for line := range strings.Lines(text) {
		p.b.WriteString(sectionIndent + line)
	}
}

func (p *page) head(e *state.Entry, d description) {
	t := render.NewTable(p.p)
	t.Wrap = true
	row := func(head string, c render.Cell) {
		if c.Text != "" {
			t.Cells(render.Cell{Text: head + ":", Color: render.Bold}, c)
		}
	}
	row("Object", render.Cell{Text: e.Ref.String()})
	row("File", render.Cell{Text: d.Path})
	row("Labels", render.Cell{Text: pairs(d.Metadata.Labels)})
	row("Annotations", render.Cell{Text: pairs(d.Metadata.Annotations)})
	if phase := phaseCell(e); phase != dash {
		row("Phase", phase)
	}
	row("Ready", readyCell(e))
	row("Status", render.Cell{Text: because(e)})
	if st, ok := e.Status().(*schemas.DAGStatus); ok {
		row("Progress", render.Cell{Text: fraction(st.Progress) + " nodes"})
		row("Started", p.instant(st.StartedAt))
		row("Finished", p.instant(st.FinishedAt))
	}
	if st, ok := e.Status().(*schemas.SessionStatus); ok {
		row("Progress", render.Cell{Text: fraction(st.Progress) + " nodes"})
		row("Active DAGs", render.Cell{Text: shorten(st.ActiveDAGs, 10)})
	}
	if st, ok := e.Status().(*schemas.AgentStatus); ok {
		row("Activity", render.Cell{Text: st.AgentActivity.Status, Color: render.StateColor(st.AgentActivity.Status)})
		row("Last active", p.instant(st.LastActivity))
	}
	t.Write(&p.b) // a buffer does not fail; nor does it below
}

// instant is a time with its distance from now; empty when there is none.
func (p *page) instant(t schemas.Time) render.Cell {
	if t.IsZero() {
		return render.Cell{}
	}
	d := p.now().Sub(t.Time)
	if d < 0 {
		return render.Cell{Text: fmt.Sprintf("%s (in %s)", utc(t), render.Age(-d))}
	}
	return render.Cell{Text: fmt.Sprintf("%s (%s ago)", utc(t), render.Age(d))}
}

func utc(t schemas.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func pairs(m map[string]string) string {
	var out []string
	for _, k := range sortedKeys(m) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, ", ")
}

func (p *page) lines(lines []string) string {
	t := p.table()
	for _, l := range lines {
		t.Row(l)
	}
	return text(t)
}

func (p *page) problemText(problems []schemas.Problem) string {
	var b bytes.Buffer
	render.Problems(&b, p.p, problems)
	return b.String()
}

// longFields are left out of the spec that describe prints: nodes have a table of their own, the others are lists that
// "reconcile get -o yaml" prints.
var longFields = []string{"nodes", "steps", "entries"}

// spec is the spec as written, without its long lists.
func (p *page) spec(e *state.Entry) string {
	if e.Object == nil {
		return ""
	}
	var fields map[string]any
	if err := json.Unmarshal(e.Object.Canonical(), &fields); err != nil {
		return ""
	}
	for _, f := range longFields {
		delete(fields, f)
	}
	if len(fields) == 0 {
		return ""
	}
	var b bytes.Buffer
	if err := document.YAML(&b, fields); err != nil {
		return ""
	}
	return render.Text(b.String())
}

func (p *page) conditions(e *state.Entry) string {
	if !e.HasStatus() {
		return ""
	}
	t := p.table("TYPE", "STATUS", "REASON", "SINCE", "MESSAGE")
	for _, c := range e.Status().Base().Conditions {
		t.Cells(render.Cell{Text: c.Type}, render.Cell{Text: string(c.Status), Color: render.StateColor(string(c.Status))},
			render.Cell{Text: c.Reason}, ago(c.LastTransitionTime, p.now()), render.Cell{Text: c.Message})
	}
	return text(t)
}

// text is a table as a string.
func text(t *render.Table) string {
	var b bytes.Buffer
	t.Write(&b)
	return b.String()
}

func (p *page) nodes(e *state.Entry) string {
	if e.Kind != schemas.DAGKind.Name {
		return ""
	}
	st, _ := e.Status().(*schemas.DAGStatus)
	t := p.table("NODE", "STATE", "ATTEMPTS", "TOOK", "EXIT", "WHY")
	for _, name := range nodeNames(e) {
		n := schemas.NodeStatus{State: schemas.NodePending}
		if st != nil && st.Nodes[name].State != "" {
			n = st.Nodes[name]
		}
		t.Cells(render.Cell{Text: name}, render.Cell{Text: n.State, Color: render.StateColor(n.State)},
			render.Cell{Text: number(n.Attempts)}, p.duration(n), exitCell(n), render.Cell{Text: p.whyNode(n)})
	}
	return text(t)
}

// failures shows the end of what failed nodes printed, of the first ones.
func (p *page) failures(e *state.Entry) {
	const most = 3
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return
	}
	shown := 0
	for _, name := range nodeNames(e) {
		n := st.Nodes[name]
		if n.State != schemas.NodeFailed || n.Output == "" && n.Log == "" {
			continue
		}
		if shown++; shown > most {
			p.section("More output", "reconcile logs "+e.Ref.String()+" --failed\n")
			return
		}
		p.section("Output of "+name, strings.Join(render.Failure(e.Ref.String(), name, n.Output, n.Log), "\n")+"\n")
	}
}

// duration is how long a node's last attempt took, or has taken so far.
func (p *page) duration(n schemas.NodeStatus) render.Cell {
	if n.State == schemas.NodeRunning && !n.StartedAt.IsZero() {
		return render.Cell{Text: render.Age(p.now().Sub(n.StartedAt.Time))}
	}
	return orDash(took(n))
}

func exitCell(n schemas.NodeStatus) render.Cell {
	if n.ExitCode == nil {
		return dash
	}
	return render.Cell{Text: number(*n.ExitCode)}
}

func (p *page) whyNode(n schemas.NodeStatus) string {
	var parts []string
	if n.Reason != "" {
		parts = append(parts, n.Reason)
	}
	if n.Message != "" {
		parts = append(parts, n.Message)
	}
	s := strings.Join(parts, ": ")
	if !n.RetryAt.IsZero() {
		s += "; next attempt at " + p.instant(n.RetryAt).Text
	}
	return s
}

func (p *page) actions(e *state.Entry) string {
	var applied []schemas.AppliedAction
	switch st := e.Status().(type) {
	case *schemas.DAGStatus:
		applied = st.Actions
	case *schemas.SessionStatus:
		applied = st.Actions
	}
	t := p.table("AGE", "VERB", "NODE", "BY", "ACTION")
	for _, act := range applied {
		t.Cells(ago(act.At, p.now()), render.Cell{Text: act.Verb}, orDash(act.Node), orDash(act.By),
			render.Cell{Text: act.Name})
	}
	return text(t)
}

func (p *page) history(e *state.Entry) string {
	if !e.HasStatus() {
		return ""
	}
	t := p.table("AGE", "REASON", "MESSAGE")
	for _, h := range e.Status().Base().History {
		t.Cells(ago(h.At, p.now()), render.Cell{Text: h.Reason}, render.Cell{Text: h.Message})
	}
	return text(t)
}

// outputLines lists declared outputs that are missing, or that have changed since their runs.
func outputLines(missing, changed map[string][]string) []string {
	var out []string
	for _, node := range sortedKeys(missing) {
		out = append(out, node+": outputs not here: "+strings.Join(missing[node], ", "))
	}
	for _, node := range sortedKeys(changed) {
		out = append(out, node+": changed since its run: "+strings.Join(changed[node], ", "))
	}
	return out
}
