package dags

import (
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// told is a decision about a node whose agent a person has told something.
func foldOf(claims ...state.Claim) *fold {
	spec := &schemas.DAGSpec{Nodes: []schemas.Node{{Name: "n", Agent: "a"}}}
	return &fold{In: settle.In{Entry: &state.Entry{Ref: schemas.DAGKind.Ref("d"), Claims: claims}}, p: &plan.Plan{Name: "d", Spec: spec},
		b:    &plan.Binding{Keys: []string{"k"}, Human: make([]bool, 1)},
		recs: make([]nodeRecord, 1), was: []*schemas.NodeStatus{{}}, applied: []schemas.AppliedAction{{Name: "m", Verb: schemas.VerbPrompt, Node: "n"}}}
}

// runOf is a run of the node, with the texts that its prompt had.
func runOf(seq string, messages ...string) schemas.Run {
	return schemas.Run{Key: "dags/d/n-0123456789abcdef-" + seq, Node: "n", NodeKey: "k", Outcome: schemas.OutcomeSucceeded, Messages: messages,
		StartedAt: schemas.NewTime(time.Unix(1, 0))}
}

// TestTextsAreNotLost: a claim is no receipt, since its run may be killed; a success without the text does not end the work.
func TestTextsAreNotLost(t *testing.T) {
	killed := runOf("1", "m")
	killed.Outcome = ""
	f := foldOf(state.Claim{Run: killed})
	if f.noteDelivered(); f.applied[0].Delivery != nil {
		t.Errorf("a run that has not ended is a receipt: %+v", f.applied[0].Delivery)
	}
	without, with := runOf("1"), runOf("2", "m")
	if !f.unheardAfter(0, &without) {
		t.Error("a success without the text ends the work")
	}
	if f.unheardAfter(0, &with) {
		t.Error("a success with the text does not end the work")
	}
	f.applied[0].Delivery = receipt("m", &with)
	if d := f.applied[0].Delivery; d == nil || d.How != schemas.DeliveredInPrompt || d.Run != with.Key {
		t.Errorf("the receipt is %+v", d)
	}
	if !f.unheardAfter(0, &without) || f.unheardAfter(0, &with) {
		t.Error("a success before the receipt counts, or that of the receipt does not")
	}
	f.applied[0].Node = "other"
	if f.unheardAfter(0, &without) {
		t.Error("a text for another node counts")
	}
	steered := runOf("1")
	steered.Turn = &schemas.Turn{Steered: []schemas.Delivery{{Action: "m", At: schemas.NewTime(time.Unix(2, 0))}}}
	if d := receipt("m", &steered); d == nil || d.How != schemas.DeliveredInTurn {
		t.Errorf("the receipt of a running turn is %+v", d)
	}
}

// TestFullContextUsesNoAttempt: a turn that is ended since its context is full hands its task off to the next session.
func TestFullContextUsesNoAttempt(t *testing.T) {
	run := runOf("1")
	run.Outcome = schemas.OutcomeCancelled
	run.Turn = &schemas.Turn{Marks: []schemas.ContextMark{{Percent: 100, Used: 100, Window: 100}}}
	f := foldOf()
	r := &f.recs[0]
	if f.takeRun(0, &run, nil, nil); r.attempts() != 0 || r.handoffs != 1 || r.handoff != &run {
		t.Errorf("after a full context: %d attempts, %d handoffs", r.attempts(), r.handoffs)
	}
	other := runOf("2")
	other.Outcome = schemas.OutcomeCancelled
	if f.takeRun(0, &other, nil, nil); r.attempts() != 0 || r.handoffs != 1 || r.handoff != &run {
		t.Errorf("after a cancellation: %d attempts, %d handoffs", r.attempts(), r.handoffs)
	}
}

func TestMessageMutants(t *testing.T) {
	mutants.Suite{Mutants: []mutants.Mutant{
		{"a text that came too late is lost", "messages.go", "if a.Delivery == nil && receipt(a.Name, run) == nil {", "if false {", "TestTextsAreNotLost"},
		{"a text goes to any node", "messages.go", "a.Refused == \"\" && a.Node == f.p.Spec.Nodes[i].Name && !yield(a)", "a.Refused == \"\" && !yield(a)", "TestTextsAreNotLost"},
		{"a claim is a receipt", "messages.go", "for _, run := range f.nodeRuns(a.Node) {", "all := slices.Clone(f.nodeRuns(a.Node))\n\tfor k := range f.Entry.Claims {\n\t\tall = append(all, &f.Entry.Claims[k].Run)\n\t}\n\tfor _, run := range all {", "TestTextsAreNotLost"},
		{"a full context uses up an attempt", "node.go", "\t\tr.handoffs++\n", "\t\tr.handoffs++\n\t\tr.failures++\n", "TestFullContextUsesNoAttempt"},
		{"a full context is a cancellation like others", "node.go", "run.Outcome == schemas.OutcomeCancelled && full:", "false:", "TestFullContextUsesNoAttempt"},
	}}.Run(t)
}
