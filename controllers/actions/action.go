// Package actions decides Actions: what a person or a comment asked of a session, a DAG or a node, and whether the target has
// applied it.
package actions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Pending is an Action object that its target has not applied yet.
type Pending struct {
	Entry *state.Entry
	Spec  *schemas.ActionSpec
	// Spent tells that the target's namesake applied it, which is gone: it is remembered, and nothing is done.
	Spent bool
}

// Distrusted says why the action does not count as a decision of a person; "" if it does.
func (a Pending) Distrusted() string {
	st, _ := a.Entry.Status().(*schemas.ActionStatus)
	if !schemas.OfPeople(a.Spec.Verb) {
		return ""
	}
	return st.Distrusted(a.Entry.Object.Digest)
}

// Identity is who acts, and how that is known. What an action says about a comment or a signature is proved only by the comment or the
// signature.
func (a Pending) Identity(w *settle.World) settle.Identity {
	if id, known := w.Identity(a.Entry.Ref); known && id.Proof != "" {
		return id
	}
	id := settle.Identity{Who: a.Spec.By, Proof: a.Spec.Proof}
	switch id.Proof {
	case schemas.ProofRun, schemas.ProofAccount:
	default:
		id.Proof = schemas.ProofClaimed
	}
	return id
}

// Record is what the target remembers of an applied action. now counts where the action does not say when it was asked.
func (a Pending) Record(now schemas.Time) schemas.AppliedAction {
	at := a.Spec.At
	if at.IsZero() {
		at = now
	}
	return schemas.AppliedAction{
		Name: a.Entry.Name, Digest: a.Entry.Object.Digest, Verb: a.Spec.Verb, Node: a.Spec.Node, By: a.Spec.By, Proof: a.Spec.Proof, At: at,
	}
}

// Unapplied lists the valid actions on target, of a session also those on all, that are not among those applied, in the order of At, then name.
func Unapplied(t *state.Tree, target *state.Entry, applied []schemas.AppliedAction) []Pending {
	var acts []Pending
	refs := t.ReferrersOf(target.Ref, schemas.ActionKind.Name)
	if all := t.ReferrersOf(schemas.AllRef(), schemas.ActionKind.Name); target.Kind == schemas.SessionKind.Name && len(all) > 0 {
		refs = slices.Concat(refs, all)
	}
	for _, r := range refs {
		if slices.ContainsFunc(applied, func(a schemas.AppliedAction) bool { return a.Name == r.Name }) {
			continue
		}
		e := t.Entry(r)
		spec := schemas.SpecAs[*schemas.ActionSpec](e.Object)
		if spec != nil && !spentElsewhere(e, target.Ref) {
			acts = append(acts, Pending{e, spec, !target.HasStatus() && e.Brief().Phase == schemas.ActionApplied})
		}
	}
	slices.SortStableFunc(acts, func(a, b Pending) int {
		return cmp.Or(a.Spec.At.Compare(b.Spec.At.Time), strings.Compare(a.Entry.Name, b.Entry.Name))
	})
	return acts
}

// spentElsewhere reports whether the action was applied to another target before its spec was edited.
func spentElsewhere(e *state.Entry, target schemas.Ref) bool {
	st, ok := e.Status().(*schemas.ActionStatus)
	return ok && st.Phase == schemas.ActionApplied && st.Target != target.String() && st.Target != schemas.TargetAll
}

// Kept drops the records of actions whose objects are gone: their results are in the status itself.
func Kept(t *state.Tree, applied []schemas.AppliedAction) []schemas.AppliedAction {
	gone := func(a schemas.AppliedAction) bool {
		e := t.Entry(schemas.Ref{Kind: schemas.ActionKind.Name, Name: a.Name})
		return e == nil || e.Gone()
	}
	if !slices.ContainsFunc(applied, gone) {
		return applied
	}
	out := slices.DeleteFunc(slices.Clone(applied), gone)
	if len(out) == 0 {
		return nil
	}
	return out
}

// Message is the history's line for an applied action.
func Message(a schemas.AppliedAction, target schemas.Ref) string {
	msg := fmt.Sprintf("action %s: %s %s", a.Name, a.Verb, target)
	if a.Node != "" {
		msg += " " + a.Node
	}
	if a.By != "" {
		msg += ", asked for by " + schemas.Acting(a.By, a.Proof)
	}
	return msg + mootness(a)
}

// deliveryText says how a text reached the agent, or why an action changed nothing; "" for any other action.
func deliveryText(a schemas.AppliedAction) string {
	switch {
	case a.Delivery != nil:
		return "; " + Receipt(a.Delivery)
	case schemas.IsMessage(a.Verb) && !a.Moot:
		return "; the agent does not have the text yet"
	}
	return mootness(a)
}

// Receipt says when and how a text reached an agent.
func Receipt(d *schemas.MessageReceipt) string {
	how := "in the running turn"
	if d.How == schemas.DeliveredInPrompt {
		how = "with the prompt"
	}
	return fmt.Sprintf("delivered %s of %s at %s", how, d.Run, d.At.UTC().Format(time.RFC3339))
}

// mootness returns a note about an action that changed nothing; "" for any other.
func mootness(a schemas.AppliedAction) string {
	if a.Refused != "" {
		return "; it was refused: " + a.Refused
	}
	if !a.Moot {
		return ""
	}
	if schemas.IsMessage(a.Verb) {
		return "; the node has ended or has no program: the text is part of its prompt if it runs again"
	}
	if a.Verb == schemas.VerbResume {
		return "; it was not paused, and approve lets go what is held"
	}
	return "; there was nothing to " + a.Verb
}

// decide tells whether the action was applied. The applying is done by its target.
func decide(in settle.In) settle.Out {
	if in.Gone() {
		return settle.Out{}
	}
	st := &schemas.ActionStatus{Common: settle.Common(in.Status())}
	old, _ := in.Status().(*schemas.ActionStatus)
	if old != nil {
		st.Target, st.Delivery, st.During = old.Target, old.Delivery, old.During
	}
	if in.Broken() {
		settle.JudgeBroken(in, cmp.Or(st.Phase, schemas.ActionPending)).Settle(&st.Common, st.ObservedDigest, in.Now)
		return settle.Out{Status: st}
	}
	digest := in.Object.Digest
	if st.ObservedDigest != digest && st.Phase != schemas.ActionApplied {
		st.During = ""
	}
	j := judge(in, st)
	if j.Reason == settle.ReasonImmutable && old != nil {
		digest = old.ObservedDigest
	}
	was := st.Condition(Delivered)
	j.Settle(&st.Common, digest, in.Now)
	if spec := in.Object.Spec().(*schemas.ActionSpec); schemas.IsMessage(spec.Verb) {
		st.Conditions = slices.Insert(st.Conditions, 0, delivered(st, was, in.Now))
	}
	return settle.Out{Status: st}
}

// Delivered is the condition of an Action that brings a text: the text has reached the agent.
const Delivered = "Delivered"

// delivered is the condition Delivered; was is the one before, or nil.
func delivered(st *schemas.ActionStatus, was *schemas.Condition, now time.Time) schemas.Condition {
	c := schemas.Condition{Type: Delivered, Status: schemas.False, Reason: settle.ReasonPending, LastTransitionTime: schemas.NewTime(now),
		Message: "the agent does not have the text yet: it is part of its next turn"}
	if d := st.Delivery; d != nil {
		c.Status, c.Reason, c.Message, c.LastTransitionTime = schemas.True, settle.ReasonDelivered, Receipt(d), d.At
	} else if r := st.Condition(schemas.Ready); r != nil {
		c.Message = r.Message
	}
	if was != nil && was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return c
}

func judge(in settle.In, st *schemas.ActionStatus) settle.Judgement {
	spec := in.Object.Spec().(*schemas.ActionSpec)
	if st.Phase == schemas.ActionApplied && st.ObservedDigest != in.Object.Digest {
		return settle.JudgeImmutable(schemas.ActionApplied, "an action cannot be changed once it was applied; write a new one")
	}
	ref, err := spec.TargetRef()
	if err != nil {
		return settle.Judgement{Phase: schemas.ActionPending, Class: settle.ClassInvalid, Reason: settle.ReasonInvalidSpec, Message: err.Error()}
	}
	if st.Phase == schemas.ActionApplied && (!schemas.IsMessage(spec.Verb) || st.Delivery != nil) {
		message := appliedMessage(st)
		if spec.Verb == schemas.VerbStart {
			message = startMessage(in, message)
		}
		return settle.Judgement{Phase: schemas.ActionApplied, Class: settle.ClassReady, Reason: settle.ReasonApplied, Message: message}
	}
	switch spec.Target {
	case schemas.TargetAll:
		st.Target = schemas.TargetAll
		return judgeAll(in)
	case schemas.TargetTree:
		st.Target = schemas.TargetTree
		return settle.Judgement{Phase: schemas.ActionApplied, Class: settle.ClassReady, Reason: settle.ReasonApplied,
			Message: "inspections and runs of tests take it into account until what it covers changes"}
	}
	st.Target = ref.String()
	return judgeNew(in, ref, st)
}

func appliedMessage(st *schemas.ActionStatus) string {
	if c := st.Condition(schemas.Ready); c != nil && c.Reason == settle.ReasonApplied {
		return c.Message
	}
	return "applied to " + st.Target
}

// judgeAll judges an action on all sessions. It is applied as soon as the sessions that there are have applied it: one
// whose file is broken does so when it is corrected, and a later session does not.
func judgeAll(in settle.In) settle.Judgement {
	n := 0
	for _, e := range in.Tree.Entries(schemas.SessionKind.Name) {
		if slices.ContainsFunc(actionsOn(in.World, e), func(a schemas.AppliedAction) bool { return a.Name == in.Name }) {
			n++
		}
	}
	return settle.Judgement{Phase: schemas.ActionApplied, Class: settle.ClassReady, Reason: settle.ReasonApplied,
		Message: "applied to " + schemas.Count(n, "session")}
}

func judgeNew(in settle.In, ref schemas.Ref, st *schemas.ActionStatus) settle.Judgement {
	target := in.Tree.Entry(ref)
	if target == nil || target.Gone() {
		return settle.Judgement{Phase: schemas.ActionPending, Class: settle.ClassWaiting, Reason: settle.ReasonTargetNotFound,
			Message: fmt.Sprintf("waits for %s, which does not exist", ref)}
	}
	if spec := in.Object.Spec().(*schemas.ActionSpec); spec.Verb == schemas.VerbStart {
		return judgeStart(in, spec)
	}
	for _, a := range actionsOn(in.World, target) {
		if a.Name != in.Name {
			continue
		}
		if a.Digest != in.Object.Digest {
			return settle.JudgeImmutable(schemas.ActionApplied, "an action cannot be changed once it was applied; write a new one")
		}
		st.Delivery = a.Delivery
		return settle.Judgement{Phase: schemas.ActionApplied, Class: settle.ClassReady, Reason: settle.ReasonApplied,
			Message: "applied to " + ref.String() + deliveryText(a), Since: a.At.Time}
	}
	if st.Phase == schemas.ActionApplied { // a text whose target has forgotten it
		return settle.Judgement{Phase: schemas.ActionApplied, Class: settle.ClassReady, Reason: settle.ReasonApplied, Message: appliedMessage(st)}
	}
	if spec := in.Object.Spec().(*schemas.ActionSpec); spec.Verb == schemas.VerbApprove && spec.Node != "" && !target.Broken() {
		id, _ := in.World.Identity(in.Ref)
		return settle.Judgement{Phase: schemas.ActionPending, Class: settle.ClassWaiting, Reason: settle.ReasonUnproved,
			Message: cmp.Or(id.Why, "waits for the proof of who wrote it: a run looks at its commit")}
	}
	return settle.Judgement{Phase: schemas.ActionPending, Class: settle.ClassWaiting, Reason: settle.ReasonPending,
		Message: fmt.Sprintf("waits for %s, which cannot be decided as its file stands", ref)}
}

// actionsOn lists the actions applied to a DAG or session, as decided.
func actionsOn(w *settle.World, target *state.Entry) []schemas.AppliedAction {
	return schemas.AppliedTo(w.Status(target))
}
