package dags

import (
	"iter"
	"slices"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Texts of people are Actions with the verbs prompt, interrupt and handoff. A text is part of each prompt of a new session until one of the
// runs that had it is on record, and of later ones under the same key; that it is on record is its receipt. A text may arrive
// twice, if a run is killed, and never not at all.

// noteDelivered adds the receipts of the texts that runs on record had.
func (f *fold) noteDelivered() {
	cloned := false
	for k := range f.applied {
		a := &f.applied[k]
		if !schemas.IsMessage(a.Verb) || a.Delivery != nil {
			continue
		}
		d := f.deliveryOf(a)
		if d == nil {
			continue
		}
		if !cloned {
			cloned, f.applied = true, slices.Clone(f.applied)
		}
		f.applied[k].Delivery = d
	}
}

// deliveryOf finds the first run on record that had a text.
func (f *fold) deliveryOf(a *schemas.AppliedAction) *schemas.MessageReceipt {
	var found *schemas.MessageReceipt
	for _, run := range f.nodeRuns(a.Node) {
		if d := receipt(a.Name, run); d != nil && (found == nil || d.At.Before(found.At.Time)) {
			found = d
		}
	}
	return found
}

// receipt is how a run got a text; nil if it did not.
func receipt(action string, run *schemas.Run) *schemas.MessageReceipt {
	d := &schemas.MessageReceipt{How: schemas.DeliveredInPrompt, At: run.StartedAt, Run: run.Key, NodeKey: run.NodeKey}
	if slices.Contains(run.Messages, action) {
		return d
	}
	if t := run.Turn; t != nil {
		for _, s := range t.Steered {
			if s.Action == action {
				d.How, d.At = schemas.DeliveredInTurn, s.At
				return d
			}
		}
	}
	return nil
}

// messages yields the applied texts for node i.
func (f *fold) messages(i int32) iter.Seq[*schemas.AppliedAction] {
	return func(yield func(*schemas.AppliedAction) bool) {
		for k := range f.applied {
			if a := &f.applied[k]; schemas.IsMessage(a.Verb) && a.Refused == "" && a.Node == f.p.Spec.Nodes[i].Name && !yield(a) {
				return
			}
		}
	}
}

// unheardAfter reports whether a run of node i succeeded while a text waited that it did not get: then the work goes on.
func (f *fold) unheardAfter(i int32, run *schemas.Run) bool {
	if run.Outcome != schemas.OutcomeSucceeded || !run.IsWork() || !f.takesTexts(i) {
		return false
	}
	for a := range f.messages(i) {
		if a.Moot {
			continue
		}
		if a.Delivery == nil && receipt(a.Name, run) == nil {
			return true
		}
		if d := a.Delivery; d != nil && d.NodeKey == run.NodeKey {
			_, seq := clarifications.SplitSeq(run.Key)
			if _, got := clarifications.SplitSeq(d.Run); got > seq {
				return true
			}
		}
	}
	return false
}

// hears reports whether a text finds a node whose agent still works, or will. An end that no decision before this one has seen does
// not count: nothing depends on it yet.
func (f *fold) hears(node string) bool {
	i, ok := f.p.Index[node]
	if !ok {
		return false
	}
	was := f.was[i]
	lands := was.Reason == settle.ReasonLanding || was.Reason == settle.ReasonTreeDirty
	over := was.Key == f.b.Keys[i] && (readiness.NodeEnded(was) || lands)
	return f.takesTexts(i) && !over
}

// takesTexts reports whether texts of people are for node i: the prompts of a program have them.
func (f *fold) takesTexts(i int32) bool {
	return f.p.Spec.Nodes[i].Agent != "" && !f.b.Human[i]
}

// texts are what the next prompt of node i has of people, with the names of the Actions.
func (f *fold) texts(i int32) (texts []agentio.Message, names []string) {
	for a := range f.messages(i) {
		if a.Delivery != nil && a.Delivery.NodeKey != f.b.Keys[i] {
			continue
		}
		if spec := f.actionSpec(a.Name); spec != nil {
			texts = append(texts, agentio.Message{By: spec.By, At: a.At, Text: spec.Text})
			names = append(names, a.Name)
		}
	}
	return append(texts, f.approvalTexts(i)...), names
}

func (f *fold) actionSpec(name string) *schemas.ActionSpec {
	if e := f.Tree.Entry(schemas.ActionKind.Ref(name)); e != nil {
		return schemas.SpecAs[*schemas.ActionSpec](e.Object)
	}
	return nil
}

// tell are the texts for the running turn of node i.
func (f *fold) tell(i int32) []settle.Message {
	c := f.recs[i].claim
	if c == nil || c.StartedAt.IsZero() {
		return nil
	}
	var out []settle.Message
	for a := range f.messages(i) {
		if a.Verb != schemas.VerbPrompt || a.Delivery != nil || receipt(a.Name, &c.Run) != nil {
			continue
		}
		if spec := f.actionSpec(a.Name); spec != nil {
			out = append(out, settle.Message{Action: a.Name, Text: agentio.Message{By: spec.By, At: a.At, Text: spec.Text}.Told()})
		}
	}
	return out
}

// interrupts returns the first action that is to end the running turn of node i; nil for none.
func (f *fold) interrupts(i int32) *schemas.AppliedAction {
	c := f.recs[i].claim
	if c == nil {
		return nil
	}
	for a := range f.messages(i) {
		if schemas.EndsTurn(a.Verb) && a.Delivery == nil && receipt(a.Name, &c.Run) == nil {
			return a
		}
	}
	return nil
}
