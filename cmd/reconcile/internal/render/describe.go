package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/controllers/progress"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
)

// Description is an object with the data that Describe shows.
type Description struct {
	Entry     *state.Entry
	Details   []settle.Column // of the kind
	Path      string
	Why       []string                           // why it is not ready
	Referrers []string                           // objects that name it
	Gates     []dags.Gate                        // that wait for an approval
	Held      map[string]string                  // the work that nodes wait for which touch the same files, by node
	Estimate  *progress.Estimate                 // of a DAG with work; else nil
	Origins   []dags.Origin                      // of nodes that were reused, or ran again
	Pipelines map[string]*schemas.PipelineStatus // of a session
	Missing   map[string][]string                // missing declared outputs, by node
	Changed   map[string][]string                // declared outputs that changed since their runs, by node
}

// descriptionPage is a description being written. Writing to its buffer does not fail.
type descriptionPage struct {
	p   Palette
	now time.Time
	b   bytes.Buffer
}

// Describe writes the page of an object's description in sections: why, spec, conditions, nodes, outputs, actions,
// referrers and history.
func Describe(w io.Writer, palette Palette, d Description, now time.Time) error {
	p, e := &descriptionPage{p: palette, now: now}, d.Entry
	p.head(d)
	p.section("Why", p.lines(whyBeside(d.Why, e.Problems)))
	if e.Broken() {
		p.section("Problems", p.problems(e.Problems))
	}
	p.section("Spec", p.spec(e))
	p.section("Conditions", p.conditions(e))
	p.section("Pipelines", p.lines(pipelineLines(d.Pipelines)))
	p.section("Nodes", p.nodes(e, d.Held))
	for i := range d.Gates {
		p.section("To approve: "+d.Gates[i].Node, p.gate(&d.Gates[i], e.Ref.String()))
	}
	p.section("Reused and run again", p.lines(originLines(d.Origins)))
	p.failures(e)
	p.section("Outputs", p.lines(outputLines(d.Missing, d.Changed)))
	p.section("Actions", p.actions(e))
	p.section("Referred to by", p.lines(d.Referrers))
	p.section("History", p.history(e))
	_, err := w.Write(p.b.Bytes())
	return err
}

// pipelineLines say how far pipelines are, by task.
func pipelineLines(all map[string]*schemas.PipelineStatus) (lines []string) {
	for _, task := range slices.Sorted(maps.Keys(all)) {
		p, line := all[task], task+": "+all[task].State
		for _, part := range []struct{ what, text string }{{"inspected", looped(p.Inspected, p.InspectorLoops)}, {"reviewed", p.Reviewed}, {"tested", looped(p.Tested, p.TesterLoops)}} {
			if part.text != "" {
				line += "; " + part.what + ": " + part.text
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// describeWhy writes the Why section of each description: why the object, or its named node of a DAG, is in its state.
func describeWhy(w io.Writer, palette Palette, objects []Description, node string, now time.Time) error {
	p := &descriptionPage{p: palette, now: now}
	for i, d := range objects {
		if i > 0 {
			p.b.WriteByte('\n')
		}
		if st, ok := d.Entry.Status().(*schemas.DAGStatus); ok && node != "" {
			n := st.Nodes.Of(node)
			p.b.WriteString(Line(fmt.Sprintf("%s %s: %s", d.Entry.Ref, node, n.State)) + "\n")
			if why := cmp.Or(p.whyNode(n), awaitedNeeds(d.Entry, st, node)); why != "" {
				p.section("Why", p.lines([]string{why}))
			}
			continue
		}
		p.head(Description{Entry: d.Entry})
		p.section("Why", p.lines(d.Why))
		p.section("Nodes", p.nodes(d.Entry, d.Held))
	}
	_, err := w.Write(p.b.Bytes())
	return err
}

// awaitedNeeds says for which of its needs a node waits, which its status leaves to the spec; "" for none.
func awaitedNeeds(e *state.Entry, st *schemas.DAGStatus, node string) string {
	spec := state.SpecOf[*schemas.DAGSpec](e)
	if spec == nil || spec.Node(node) == nil || st.Nodes.Of(node).State != schemas.NodePending {
		return ""
	}
	var needs []string
	for _, need := range spec.Node(node).Needs {
		if is := st.Nodes.Of(need).State; is != schemas.NodeSucceeded && is != schemas.NodeSkipped {
			needs = append(needs, need)
		}
	}
	if needs == nil {
		return ""
	}
	return "it waits for " + strings.Join(needs, ", ")
}

// sectionIndent begins each line of a section.
const sectionIndent = "  "

// table is a table for a section.
func (p *descriptionPage) table(heads ...string) *Table {
	palette := p.p
	if palette.Width > 0 {
		palette.Width = max(palette.Width-len(sectionIndent), 1)
	}
	t := NewTable(palette, heads...)
	t.Wrap = true
	return t
}

// section writes a headline and an indented text, unless it is empty.
func (p *descriptionPage) section(head, text string) {
	if text == "" {
		return
	}
	fmt.Fprintf(&p.b, "\n%s\n", p.p.Paint(Bold, head+":"))
	for line := range strings.Lines(text) {
		p.b.WriteString(sectionIndent + line)
	}
}

func (p *descriptionPage) head(d Description) {
	e := d.Entry
	t := NewTable(p.p)
	t.Wrap = true
	row := func(head, text string) {
		if text != "" {
			t.Cells(Cell{Text: head + ":", Color: Bold}, Cell{Text: text})
		}
	}
	word := func(head, text string) { t.Cells(Cell{Text: head + ":", Color: Bold}, Word(text)) }
	row("Object", e.Ref.String())
	row("File", d.Path)
	if e.Object != nil {
		row("Labels", describePairs(e.Object.Metadata.Labels))
		row("Annotations", describePairs(e.Object.Metadata.Annotations))
	}
	if phase := readiness.PhaseWord(e); phase != "" {
		word("Phase", phase)
	}
	word("Ready", readiness.ReadyWord(e))
	if why := readiness.Because(e); !isProblem(e, why) {
		row("Status", why)
	}
	for _, c := range d.Details {
		text := ""
		if c.Text != nil {
			text = c.Text(e)
		} else {
			text = p.instant(c.Time(e))
		}
		if text != "" {
			word(c.Head, text)
		}
	}
	if est := d.Estimate; est != nil {
		row("Layers", fmt.Sprintf("%d/%d done", est.LayersDone, est.Layers))
		row("Left", est.LeftText())
	}
	t.Write(&p.b)
}

// instant returns a time with its distance from now; "" for the zero time.
func (p *descriptionPage) instant(t schemas.Time) string {
	if t.IsZero() {
		return ""
	}
	at, d := t.UTC().Format("2006-01-02 15:04:05Z"), p.now.Sub(t.Time)
	if d < 0 {
		return fmt.Sprintf("%s (in %s)", at, Age(-d))
	}
	return fmt.Sprintf("%s (%s ago)", at, Age(d))
}

// describePairs shows labels and the like on one line.
func describePairs(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, ", ")
}

func (p *descriptionPage) lines(lines []string) string {
	t := p.table()
	for _, l := range lines {
		t.Row(l)
	}
	return t.text()
}

// isProblem reports whether a text is one of the problems of an object's file, which have a section.
func isProblem(e *state.Entry, text string) bool {
	return slices.ContainsFunc(e.Problems, func(p schemas.Problem) bool { return p.Error() == text })
}

func (p *descriptionPage) problems(problems []schemas.Problem) string {
	var b strings.Builder
	Problems(&b, p.p, problems)
	return b.String()
}

// longFields are omitted from the spec in describe: nodes have their own table, the others are lists that "reconcile get -o
// yaml" prints.
var longFields = []string{"nodes", "steps", "entries"}

// spec is the spec as written, without its long lists.
func (p *descriptionPage) spec(e *state.Entry) string {
	if e.Object == nil {
		return ""
	}
	return fieldsWithout(e.Object.Canonical(), longFields)
}

// fieldsWithout returns the fields of a JSON object as YAML, without some.
func fieldsWithout(object []byte, without []string) string {
	var fields map[string]any
	if err := json.Unmarshal(object, &fields); err != nil {
		return ""
	}
	for _, f := range without {
		delete(fields, f)
	}
	if len(fields) == 0 {
		return ""
	}
	var b bytes.Buffer
	if err := document.YAML(&b, fields); err != nil {
		return ""
	}
	return Text(b.String())
}

func (p *descriptionPage) conditions(e *state.Entry) string {
	if !e.HasStatus() {
		return ""
	}
	t := p.table("TYPE", "STATUS", "REASON", "SINCE", "MESSAGE")
	for _, c := range e.Status().Base().Conditions {
		if isProblem(e, c.Message) {
			c.Message = "its file has problems"
		}
		t.Cells(Cell{Text: c.Type}, Cell{Text: string(c.Status), Color: stateColor(string(c.Status))},
			Cell{Text: c.Reason}, p.age(c.LastTransitionTime), Cell{Text: c.Message})
	}
	return t.text()
}

// gate shows a gate of a DAG: the task and its inputs, as they would be approved.
func (p *descriptionPage) gate(g *dags.Gate, dag string) string {
	t := p.table()
	t.Row("Digest", g.Digest)
	if len(g.Approve.By) > 0 {
		t.Row("By", strings.Join(g.Approve.By, ", "))
	}
	if want := g.Approve.Quorum(); want > 1 {
		t.Row("People", strconv.Itoa(want))
	}
	for _, a := range g.Given {
		t.Row("Approved", schemas.Acting(a.By, a.Proof)+", proof: "+a.Proof)
	}
	if len(g.Approve.Form) > 0 {
		t.Row("Form", schemas.FormOutline(g.Approve.Form))
	}
	t.Row("Task", g.Task)
	if c := g.Landing; c != nil {
		if c.Change != nil {
			t.Row("Change", schemas.Count(c.Change.Lines, "line")+" in "+schemas.Count(c.Changed, "file"))
			if len(c.Change.Sensitive) > 0 {
				t.Row("Sensitive", strings.Join(c.Change.Sensitive, ", "))
			}
		}
		if len(c.Doubts) > 0 {
			t.Row("Doubts", strings.Join(c.Doubts, "; "))
		}
		t.Row("Look", "reconcile preview --base "+c.Base+" --commit "+c.Commit)
	}
	for _, name := range slices.Sorted(maps.Keys(g.Needs)) {
		n := g.Needs[name]
		text := n.State
		if result, err := json.Marshal(n.Result); err == nil && n.Result != nil {
			text += " " + string(result)
		}
		if c := g.Commits[name]; c != "" {
			text += ", commit " + c + " (git show " + c + ")"
		}
		t.Row("Need "+name, text)
	}
	command := "reconcile approve " + dag + " " + g.Node + " --digest " + g.Digest
	if len(g.Approve.Form) > 0 {
		command += " --answer TEXT"
	}
	t.Row("Approve", command)
	return t.text()
}

func (p *descriptionPage) age(t schemas.Time) Cell { return Cell{Text: ageOf(t, p.now)} }

func (p *descriptionPage) nodes(e *state.Entry, held map[string]string) string {
	if e.Kind != schemas.DAGKind.Name {
		return ""
	}
	st, _ := e.Status().(*schemas.DAGStatus)
	t := p.table("NODE", "STATE", "ATTEMPTS", "TOOK", "EXIT", "WHY")
	for _, name := range nodes.NodeNames(e) {
		n, exit := schemas.NodeStatus{State: schemas.NodePending}, ""
		if st != nil && st.Nodes.Of(name).State != "" {
			n = st.Nodes.Of(name)
		} else if c := undecided(st); c != nil {
			n.Reason, n.Message = c.Reason, c.Message
		}
		n.Message = cmp.Or(held[name], n.Message)
		if n.ExitCode != nil {
			exit = strconv.Itoa(*n.ExitCode)
		}
		t.Cells(Cell{Text: name}, Cell{Text: n.State, Color: stateColor(n.State)}, Cell{Text: strconv.Itoa(n.Attempts)},
			p.duration(n), Word(exit), Cell{Text: strings.TrimSpace(pipelineOf(&n) + " " + p.whyNode(n))})
	}
	return t.text()
}

// undecided is why a DAG whose nodes have no statuses yet is not ready; nil if its status does not say.
func undecided(st *schemas.DAGStatus) *schemas.Condition {
	if st == nil {
		return nil
	}
	return st.Condition(schemas.Ready)
}

// pipelineOf names the pipeline at work on a node whose work was handed over; "" for the first.
func pipelineOf(n *schemas.NodeStatus) string {
	if n.Handoff == nil || n.Handoff.Index == 0 {
		return ""
	}
	return fmt.Sprintf("pipeline %d", n.Handoff.Index)
}

// failures shows the end of the output of the first failed nodes.
func (p *descriptionPage) failures(e *state.Entry) {
	const most = 3
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return
	}
	shown := 0
	for _, name := range nodes.NodeNames(e) {
		n := st.Nodes.Of(name)
		if n.State != schemas.NodeFailed || n.Output == "" && n.Log == "" {
			continue
		}
		if shown++; shown > most {
			p.section("More output", "reconcile logs "+e.Ref.String()+" --failed\n")
			return
		}
		p.section("Output of "+name, strings.Join(progressFailure(e.Ref.String(), name, n.Output, n.Log), "\n")+"\n")
	}
}

// duration returns how long a node's last attempt took, or has taken so far.
func (p *descriptionPage) duration(n schemas.NodeStatus) Cell {
	if n.State == schemas.NodeRunning && !n.StartedAt.IsZero() {
		return Cell{Text: Age(p.now.Sub(n.StartedAt.Time))}
	}
	return Word(Took(n))
}

func (p *descriptionPage) whyNode(n schemas.NodeStatus) string {
	parts := slices.DeleteFunc([]string{n.Reason, n.Message}, func(s string) bool { return s == "" })
	s := strings.Join(parts, ": ")
	if n.Round > 0 {
		s = strings.TrimSuffix(fmt.Sprintf("round %d; %s", n.Round, s), "; ")
	}
	if !n.RetryAt.IsZero() {
		s += "; next attempt at " + p.instant(n.RetryAt)
	}
	return s
}

func (p *descriptionPage) actions(e *state.Entry) string {
	t := p.table("AGE", "VERB", "NODE", "BY", "ACTION")
	for _, act := range schemas.AppliedTo(e.Status()) {
		t.Cells(p.age(act.At), Cell{Text: act.Verb}, Word(act.Node), Word(schemas.Acting(act.By, act.Proof)), Cell{Text: act.Name})
	}
	return t.text()
}

func (p *descriptionPage) history(e *state.Entry) string {
	if !e.HasStatus() {
		return ""
	}
	t := p.table("AGE", "REASON", "MESSAGE")
	for _, h := range e.Status().Base().History {
		t.Cells(p.age(h.At), Cell{Text: h.Reason}, Cell{Text: h.Message})
	}
	return t.text()
}

// originLines describe where results of nodes are from, at most 50.
func originLines(all []dags.Origin) (out []string) {
	const most = 50
	for i := range all[:min(len(all), most)] {
		out = append(out, all[i].String())
	}
	if n := len(all) - most; n > 0 {
		out = append(out, "and "+schemas.Count(n, "node")+" more")
	}
	return out
}

// outputLines lists declared outputs that are missing, or that changed since their runs.
func outputLines(missing, changed map[string][]string) []string {
	var out []string
	for _, node := range slices.Sorted(maps.Keys(missing)) {
		out = append(out, node+": outputs not here: "+strings.Join(missing[node], ", "))
	}
	for _, node := range slices.Sorted(maps.Keys(changed)) {
		out = append(out, node+": changed since its run: "+strings.Join(changed[node], ", "))
	}
	return out
}

func orNone(s *string) string {
	if s == nil || *s == "" {
		return none
	}
	return *s
}

func stampText(at schemas.Stamp, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04 UTC") + ", " + stampAge(at, now) + " ago"
}

// Took returns how long a node's last attempt took, from StartedAt to FinishedAt; "" if it has not ended.
func Took(n schemas.NodeStatus) string {
	if n.StartedAt.IsZero() || n.FinishedAt.IsZero() {
		return ""
	}
	return Age(n.FinishedAt.Sub(n.StartedAt.Time))
}
