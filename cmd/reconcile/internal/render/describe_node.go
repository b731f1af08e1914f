package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/schemas"
)

// DescribeNode writes the page of a node's description in sections: its spec, its gate, its attempts and outputs.
func DescribeNode(w io.Writer, palette Palette, v *dags.NodeView, now time.Time) error {
	p := &descriptionPage{p: palette, now: now}
	p.nodeHead(v)
	if declared, err := json.Marshal(v.Spec); err == nil {
		p.section("Spec", fieldsWithout(declared, []string{"name", "needs", "agent"})) // the head has these
	}
	if v.Gate != nil {
		p.section("To approve", p.gate(v.Gate, v.DAG))
	}
	if v.Origin != nil {
		p.section("Reused and run again", p.lines([]string{v.Origin.String()}))
	}
	if n := &v.Status; n.State == schemas.NodeFailed && (n.Output != "" || n.Log != "") {
		p.section("Output", strings.Join(progressFailure(v.DAG, v.Spec.Name, n.Output, n.Log), "\n")+"\n")
	}
	byNode := func(files []string) map[string][]string {
		if len(files) == 0 {
			return nil
		}
		return map[string][]string{v.Spec.Name: files}
	}
	p.section("Outputs", p.lines(outputLines(byNode(v.Missing), byNode(v.Changed))))
	p.section("Runs", p.runs(v.Runs))
	_, err := w.Write(p.b.Bytes())
	return err
}

func (p *descriptionPage) nodeHead(v *dags.NodeView) {
	n := &v.Status
	t := NewTable(p.p)
	t.Wrap = true
	row := func(head, text string) {
		if text != "" {
			t.Cells(Cell{Text: head + ":", Color: Bold}, Cell{Text: text})
		}
	}
	row("Node", v.Spec.Name)
	row("Of", v.DAG)
	row("File", v.Path)
	t.Cells(Cell{Text: "State:", Color: Bold}, Cell{Text: n.State, Color: stateColor(n.State)})
	row("Why", p.whyNode(*n))
	agent := v.Spec.Agent
	if len(v.Runs) > 0 {
		agent = cmp.Or(v.Runs[len(v.Runs)-1].By, agent)
	}
	row("Agent", agent)
	row("Needs", strings.Join(v.Spec.Needs, ", "))
	row("Needed by", strings.Join(v.NeededBy, ", "))
	if n.Attempts > 0 {
		row("Attempts", strconv.Itoa(n.Attempts))
	}
	row("Took", p.duration(*n).Text)
	if n.ExitCode != nil {
		row("Exit code", strconv.Itoa(*n.ExitCode))
	}
	row("Key", n.Key)
	row("Log", n.Log)
	if v.Turn != nil {
		row("Turn", turns.Line(v.Turn))
	}
	if n.Landed != nil {
		row("Landed", strings.TrimSpace(fmt.Sprintf("%s %s %s", n.Landed.Status, n.Landed.Reason, n.Landed.Commit)))
	}
	if v := n.Pipeline; v != nil {
		row("Pipeline", v.State)
		row("Inspected", looped(v.Inspected, v.InspectorLoops))
		row("Reviewed", v.Reviewed)
		row("Tests", v.Written)
		row("Tested", looped(v.Tested, v.TesterLoops))
	}
	for _, line := range dags.HandoffLines(n.Handoff) {
		row("Hand-off", line)
	}
	for _, a := range n.Approvals {
		label := "Approved"
		if a.Ignores != "" {
			label = "Ignored " + a.Ignores
		}
		row(label, strings.TrimSuffix(schemas.Acting(a.By, a.Proof)+": "+a.Reason, ": "))
	}
	row("Result", string(n.Result))
	t.Write(&p.b)
}

func (p *descriptionPage) runs(runs []dags.NodeRun) string {
	t := p.table("RUN", "OUTCOME", "STARTED", "TOOK", "MESSAGE")
	for _, r := range runs {
		t.Cells(Cell{Text: r.Key}, Cell{Text: r.Outcome, Color: stateColor(r.Outcome)}, p.age(r.Started),
			p.duration(schemas.NodeStatus{State: r.Outcome, StartedAt: r.Started, FinishedAt: r.Ended}), Cell{Text: r.Message})
	}
	return t.text()
}

// looped is a verdict with how often the change was sent back before.
func looped(verdict string, loops int) string {
	if loops == 0 {
		return verdict
	}
	return strings.TrimSpace(fmt.Sprintf("%s (sent back %s)", verdict, map[bool]string{true: "once", false: fmt.Sprintf("%d times", loops)}[loops == 1]))
}
