package dags

import (
	"cmp"
	"fmt"
	"strings"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// A node that escalates waits for the answer to its plan change, and goes on with it.

// escalates reports whether a run of node i escalated a blocker: by its output, or by the command.
func (f *fold) escalates(i int32, run *schemas.Run) bool {
	for k := range f.escalations {
		if x := &f.escalations[k]; x.Escalates() && x.Spec.Run == run.Key && x.Spec.Node == f.p.Spec.Nodes[i].Name {
			return true
		}
	}
	return false
}

// waitsForHelp blocks a node with a blocker that no one has answered.
func (f *fold) waitsForHelp(i int32) bool {
	for k := range f.escalations {
		x := &f.escalations[k]
		if x.Escalates() && x.Spec.Node == f.p.Spec.Nodes[i].Name && x.Holds(f.World, f.Name, f.b.Keys[i]) {
			f.set(i, schemas.NodeBlocked, settle.ReasonEscalated, fmt.Sprintf("%s: %s%s", x.Entry.Ref, oneLine(x.Spec.Reason), tried(x.Spec.Tried)))
			return true
		}
	}
	if last := f.recs[i].last; last != nil && last.Outcome == schemas.OutcomeAsked && len(last.PlanChange) > 0 {
		if name, spec := planchanges.SpecOfRun(last); spec != nil && f.Tree.Entry(schemas.PlanChangeKind.Ref(name)) == nil {
			f.set(i, schemas.NodeBlocked, settle.ReasonEscalated, "its blocker is being put: "+oneLine(spec.Reason))
			return true
		}
	}
	return false
}

// seqAfterHelp is the number of the run after the last one that escalated, with or without a record; 0 for none.
func (f *fold) seqAfterHelp(i int32) (seq int) {
	for k := range f.escalations {
		half, n := clarifications.SplitSeq(f.escalations[k].Spec.Run)
		if f.escalations[k].Escalates() && half == keys.OfRuns(f.p.Name, f.p.Spec.Nodes[i].Name, f.b.Keys[i]) {
			seq = max(seq, n+1)
		}
	}
	return seq
}

func tried(all []string) string {
	if len(all) == 0 {
		return ""
	}
	lines := make([]string, len(all))
	for i := range all {
		lines[i] = oneLine(all[i])
	}
	return "; tried: " + schemas.Shorten(lines, 5)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// help are the answers to the blockers of node i, for its next run.
func (f *fold) help(i int32) (out []agentio.Answered) {
	for k := range f.escalations {
		x := &f.escalations[k]
		st := settle.StatusAs[schemas.PlanChangeStatus](f.World, x.Entry)
		if a := st.Answer; x.Escalates() && x.Spec.Node == f.p.Spec.Nodes[i].Name && a != nil && !st.Open() {
			word := "It was refused"
			if a.Accept {
				word = "It was answered"
			}
			said := strings.TrimSpace(a.Reason + "\n" + a.Instructions)
			out = append(out, agentio.Answered{ID: x.Entry.Ref.String(), To: cmp.Or(a.By, "a person"), Topic: oneLine(x.Spec.Reason),
				Status: schemas.ClarificationResolved, Summary: strings.TrimSpace(word + ": " + cmp.Or(said, strings.Join(st.Changes, "; ")))})
		}
	}
	return out
}
