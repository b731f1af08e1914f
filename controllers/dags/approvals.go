package dags

import (
	"encoding/json"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// approvalsVar begins the variable that has the answers of those who approved a node, as a JSON list.
const approvalsVar = "RECONCILE_APPROVALS="

// approveOf is what the spec says about approvals of node i now; nil for nothing.
func (f *fold) approveOf(i int32) *schemas.Approve {
	if f.heldBack(i) != "" {
		return f.previewOf(i).Approval()
	}
	return f.p.Spec.Nodes[i].Approve
}

// isGate reports whether node i starts, or its commit lands, only when it is approved.
func (f *fold) isGate(i int32) bool { return f.approveOf(i) != nil && !f.b.Human[i] }

// asksForAnswer reports whether an approval of node i has to bring an answer.
func (f *fold) asksForAnswer(i int32) bool {
	a := f.approveOf(i)
	return a != nil && len(a.Form) > 0
}

// approvals are those of node i under its present key, whatever they are worth.
func (f *fold) approvals(i int32) []schemas.Approval {
	if f.approveOf(i) == nil && f.previewOf(i) == nil && f.pipelineOf(i) == nil {
		return nil
	}
	if now, ok := f.approved[i]; ok {
		return now
	}
	if f.was[i].Key == f.b.Keys[i] {
		return f.was[i].Approvals
	}
	return nil
}

// personName is the person who approves, as the settings call them, else the name itself.
func (f *fold) personName(by string) string {
	if p := f.Tree.Settings().PersonOf(by); p != nil {
		return p.Name
	}
	return strings.ToLower(by)
}

// answered is the result that a person gave to node i, while its approval is in force.
func (f *fold) answered(i int32) json.RawMessage {
	if f.verbs[i] != schemas.VerbApprove {
		return nil
	}
	if now, ok := f.given[i]; ok {
		return now
	}
	if was := f.was[i]; was.Verb == schemas.VerbApprove && was.Key == f.b.Keys[i] {
		return was.Result
	}
	return nil
}

// approvalAnswers are the approvals of node i that came with an answer, as JSON; "" for none.
func (f *fold) approvalAnswers(i int32) string {
	given := slices.DeleteFunc(slices.Clone(f.approvals(i)), func(a schemas.Approval) bool { return len(a.Answer) == 0 })
	if len(given) == 0 {
		return ""
	}
	text, err := json.Marshal(given)
	if err != nil {
		return ""
	}
	return string(text)
}

// gateSpan is the time in which node i could have started, had it been approved.
func (f *fold) gateSpan(i int32, ready schemas.Time) []schemas.Span {
	if f.heldBack(i) != "" || !f.isGate(i) {
		return nil
	}
	span := schemas.Span{From: ready}
	if f.next[i].Reason != settle.ReasonWaitsForApproval {
		for _, a := range f.approvals(i) {
			span.To = schemas.Later(span.To, a.At)
		}
		if !span.To.After(ready.Time) {
			return nil
		}
	}
	return []schemas.Span{span}
}

// commitSpan is the time in which the commit of node i could have landed, had it been approved.
func (f *fold) commitSpan(i int32) []schemas.Span {
	last := f.recs[i].last
	if f.previewOf(i) == nil && f.pipelineOf(i) == nil || last == nil {
		return nil
	}
	span := schemas.Span{From: last.FinishedAt}
	if f.heldBack(i) == "" || f.next[i].Landed == nil || f.next[i].Landed.Reason != schemas.LandedHeld {
		for _, a := range f.approvals(i) {
			span.To = schemas.Later(span.To, a.At)
		}
		if !span.To.After(span.From.Time) {
			return nil
		}
	}
	return []schemas.Span{span}
}

// keepApproval adds an approval of node i; it replaces an earlier one of the same person. One of the commit replaces none of the start, and
// one that ignores a verdict none of another change.
func (f *fold) keepApproval(i int32, a schemas.Approval) {
	if f.approved == nil {
		f.approved = map[int32][]schemas.Approval{}
	}
	kept := slices.DeleteFunc(slices.Clone(f.approvals(i)), func(old schemas.Approval) bool {
		if old.Ignores != a.Ignores || a.Ignores != "" && old.Digest != a.Digest {
			return false
		}
		if other := old.Digest != a.Digest; other && a.Ignores == "" && f.isGate(i) {
			return f.heldBack(i) == ""
		}
		return f.personName(old.By) == f.personName(a.By)
	})
	f.approved[i] = append(kept, a)
}

// approvalTexts are what people answered who approved node i.
func (f *fold) approvalTexts(i int32) (texts []agentio.Message) {
	for _, a := range f.approvals(i) {
		if len(a.Answer) > 0 {
			texts = append(texts, agentio.Message{By: a.By, At: a.At, Text: string(a.Answer)})
		}
	}
	return texts
}

// ignoring is the approval by which the verdict of the inspector or the tester, whose step it is, about the change of node i in a workspace does not count; nil for none.
func (f *fold) ignoring(i int32, w *schemas.RunWorkspace, step string) *schemas.Approval {
	given := f.approvals(i)
	for k := range given {
		if given[k].Ignores != "" && stepAgent(given[k].Ignores) == stepAgent(step) && given[k].Digest == f.shownCommit(w) {
			return &given[k]
		}
	}
	return nil
}

// ignoredBy is the person who overrode a verdict; "" for no one.
func ignoredBy(a *schemas.Approval) string {
	if a == nil {
		return ""
	}
	text := "ignored by " + schemas.Acting(a.By, a.Proof)
	if a.Reason != "" {
		text += ": " + oneLine(a.Reason)
	}
	return text
}
