package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// act is an Action object that its target has not applied yet.
type act struct {
	entry *state.Entry
	spec  *schemas.ActionSpec
	// spent tells that the target's namesake applied it, which is gone: it is remembered, and nothing is done.
	spent bool
}

// record is what the target remembers of an applied action. now counts where the action does not say when it was asked.
func (a act) record(now schemas.Time) schemas.AppliedAction {
	at := a.spec.At
	if at.IsZero() {
		at = now
	}
	return schemas.AppliedAction{
		Name: a.entry.Name, Digest: a.entry.Object.Digest, Verb: a.spec.Verb, Node: a.spec.Node, By: a.spec.By, At: at,
	}
}

// newActs lists the valid actions on target that are not among those applied, in the order of At, then name.
func newActs(t *state.Tree, target *state.Entry, applied []schemas.AppliedAction) []act {
	var acts []act
	for _, r := range t.ReferrersOf(target.Ref, schemas.ActionKind.Name) {
		if slices.ContainsFunc(applied, func(a schemas.AppliedAction) bool { return a.Name == r.Name }) {
			continue
		}
		e := t.Entry(r)
		spec := schemas.SpecAs[*schemas.ActionSpec](e.Object)
		if spec != nil && !spentElsewhere(e, target.Ref) {
			acts = append(acts, act{e, spec, !target.HasStatus() && phaseOf(e) == schemas.ActionApplied})
		}
	}
	slices.SortStableFunc(acts, func(a, b act) int {
		return cmp.Or(a.spec.At.Compare(b.spec.At.Time), strings.Compare(a.entry.Name, b.entry.Name))
	})
	return acts
}

// spentElsewhere reports whether the action was applied to another target before its spec was edited.
func spentElsewhere(e *state.Entry, target schemas.Ref) bool {
	st, ok := e.Status().(*schemas.ActionStatus)
	return ok && st.Phase == schemas.ActionApplied && st.Target != target.String()
}

// kept drops the records of actions whose objects are gone: their results are in the status itself.
func kept(t *state.Tree, applied []schemas.AppliedAction) []schemas.AppliedAction {
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

// message is the history's line for an applied action.
func actMessage(a schemas.AppliedAction, target schemas.Ref) string {
	msg := fmt.Sprintf("action %s: %s %s", a.Name, a.Verb, target)
	if a.Node != "" {
		msg += " " + a.Node
	}
	if a.By != "" {
		msg += ", asked for by " + a.By
	}
	return msg + mootness(a)
}

// mootness returns a note about an action that changed nothing; "" for any other.
func mootness(a schemas.AppliedAction) string {
	if !a.Moot {
		return ""
	}
	if a.Verb == schemas.VerbResume {
		return "; it was not paused, and approve lets go what is held"
	}
	return "; there was nothing to " + a.Verb
}

// decideAction tells whether the action was applied. The applying is done by its target.
func decideAction(in In) Out {
	if in.Gone() {
		return Out{}
	}
	st := &schemas.ActionStatus{Common: common(in.Status())}
	old, _ := in.Status().(*schemas.ActionStatus)
	if old != nil {
		st.Target = old.Target
	}
	if in.Broken() {
		brokenJudgement(in, cmp.Or(st.Phase, schemas.ActionPending)).settle(&st.Common, st.ObservedDigest, in.Now)
		return Out{Status: st}
	}
	digest := in.Object.Digest
	j := judgeAction(in, st)
	if j.reason == ReasonImmutable && old != nil {
		digest = old.ObservedDigest
	}
	j.settle(&st.Common, digest, in.Now)
	return Out{Status: st}
}

func judgeAction(in In, st *schemas.ActionStatus) judgement {
	spec := in.Object.Spec().(*schemas.ActionSpec)
	if st.Phase == schemas.ActionApplied && st.ObservedDigest != in.Object.Digest {
		return immutable(schemas.ActionApplied, "an action cannot be changed once it was applied; write a new one")
	}
	ref, err := spec.TargetRef()
	if err != nil {
		return judgement{phase: schemas.ActionPending, class: invalid, reason: ReasonInvalidSpec, message: err.Error()}
	}
	if st.Phase == schemas.ActionApplied {
		return judgement{phase: schemas.ActionApplied, class: ready, reason: ReasonApplied, message: appliedMessage(st)}
	}
	st.Target = ref.String()
	return judgeNewAction(in, ref, st)
}

func appliedMessage(st *schemas.ActionStatus) string {
	if c := st.Condition(schemas.Ready); c != nil && c.Reason == ReasonApplied {
		return c.Message
	}
	return "applied to " + st.Target
}

func judgeNewAction(in In, ref schemas.Ref, st *schemas.ActionStatus) judgement {
	target := in.Tree.Entry(ref)
	if target == nil || target.Gone() {
		return judgement{phase: schemas.ActionPending, class: waiting, reason: ReasonTargetNotFound,
			message: fmt.Sprintf("waits for %s, which does not exist", ref)}
	}
	for _, a := range actionsOn(in.World, target) {
		if a.Name != in.Name {
			continue
		}
		if a.Digest != in.Object.Digest {
			return immutable(schemas.ActionApplied, "an action cannot be changed once it was applied; write a new one")
		}
		return judgement{phase: schemas.ActionApplied, class: ready, reason: ReasonApplied,
			message: "applied to " + ref.String() + mootness(a), since: a.At.Time}
	}
	return judgement{phase: schemas.ActionPending, class: waiting, reason: ReasonPending,
		message: fmt.Sprintf("waits for %s, which cannot be decided as its file stands", ref)}
}

// actionsOn lists the actions applied to a DAG or session, as decided.
func actionsOn(w *World, target *state.Entry) []schemas.AppliedAction {
	return schemas.AppliedTo(w.Status(target))
}

func immutable(phase, message string) judgement {
	return judgement{phase: phase, class: invalid, reason: ReasonImmutable, message: message}
}

// actionAffects adds the target of an action: the present one and the one that it was applied to. If nothing is left of
// an action, its target is unknown, and everything is added.
func actionAffects(c *Change) {
	e := c.Entry
	switch {
	case e == nil:
		c.AddAll()
		return
	case !c.Itself:
		return
	}
	if st, ok := e.Status().(*schemas.ActionStatus); ok && st.Target != "" {
		if ref, err := targetKinds.ParseRef(st.Target); err == nil {
			addTarget(c.Worklist, ref)
			if ref.Kind == schemas.SessionKind.Name && e.Gone() {
				addActionHolders(c.Worklist, e.Name)
			}
		}
	}
	if spec := schemas.SpecAs[*schemas.ActionSpec](e.Object); spec != nil {
		if ref, err := spec.TargetRef(); err == nil {
			addTarget(c.Worklist, ref)
		}
	}
}

var targetKinds = schemas.Kinds{schemas.DAGKind, schemas.SessionKind}

func addTarget(w Worklist, ref schemas.Ref) {
	if w.Tree().Entry(ref) != nil {
		w.AddChanged(ref)
	}
}
