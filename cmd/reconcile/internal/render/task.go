package render

import (
	"fmt"
	"io"
	"strings"

	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/schemas"
)

// Task prints how the task of an agent is.
func Task(w io.Writer, v *dags.TaskView) error {
	var b strings.Builder
	line := func(head, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-17s %s\n", head, strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 18)))
		}
	}
	line(v.Node, strings.TrimSuffix(strings.TrimSpace(v.State+" "+v.Reason)+": "+v.Message, ": "))
	line("Agent", v.Agent)
	if p := v.Pipeline; p != nil {
		line("Pipeline", p.State)
		line("Change", p.Digest)
		line("Inspector", verdictLine(p.InspectorLoops, v.MaxLoops, p.Inspected))
		line("Reviewed", p.Reviewed)
		line("Tester", verdictLine(p.TesterLoops, v.MaxLoops, p.Tested))
	}
	if s := v.Inspector; s != nil {
		line("Findings", strings.Join(s.CurrentFindings, "\n"))
	}
	if s := v.Tester; s != nil {
		line("Failing tests", strings.Join(s.PendingFailures, "\n"))
	}
	line("Hand-offs", strings.Join(dags.HandoffLines(v.Handoff), "\n"))
	e := &v.Engineer
	if e.ContextUsage > 0 {
		line("Context", fmt.Sprintf("%.0f %% used", e.ContextUsage*100))
	}
	line("Accomplished", strings.Join(e.Accomplished, "\n"))
	line("Remaining", strings.Join(e.Remaining, "\n"))
	line("Said last", e.ContextNotes)
	line("Files changed", changedFiles(e.FilesChanged))
	_, err := io.WriteString(w, Text(b.String()))
	return err
}

// verdictLine is how often a step sent a change back, and its verdict of the latest one; "" for a step that has looked at none.
func verdictLine(loops, most int, verdict string) string {
	if loops == 0 {
		return verdict
	}
	return strings.TrimSuffix(fmt.Sprintf("sent it back %d of at most %d times; %s", loops, most, verdict), "; ")
}

func changedFiles(all []schemas.FileChange) string {
	lines := make([]string, len(all))
	for i, c := range all {
		if lines[i] = strings.TrimSpace(c.ChangeType + " " + c.Path); c.Summary != "" {
			lines[i] += " (" + c.Summary + ")"
		}
	}
	return strings.Join(lines, "\n")
}
