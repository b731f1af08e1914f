// Package sessions decides Sessions: their phase, which of them have a slot, and what that lets their DAGs do.
package sessions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// decide follows a session through its life. What its DAGs may do is its seat; this only tells about it.
func decide(in settle.In) settle.Out {
	if in.Gone() {
		return settle.Out{}
	}
	old, _ := in.Status().(*schemas.SessionStatus)
	if old == nil {
		old = new(schemas.SessionStatus)
	}
	st := &schemas.SessionStatus{Common: old.Common, Hold: old.Hold, Quality: old.Quality, Actions: actions.Kept(in.Tree, old.Actions)}
	past := settle.History{Old: old.History}
	sum := tally(in, st, &past)
	if in.Broken() {
		settle.JudgeBroken(in, old.Phase).Settle(&st.Common, old.ObservedDigest, in.Now)
		return settle.Out{Status: st}
	}
	s := SlotsOf(in.World).SlotOf(in.Name)
	st.Hold = s.hold
	for _, a := range s.Acts {
		done := a.Record(schemas.NewTime(in.Now))
		done.Refused, done.Verifies = a.Distrusted(), VerifiesAgain(in.Entry, a.Entry.Name, a.Spec)
		switch a.Spec.Verb {
		case schemas.VerbApprove:
			done.Moot = done.Refused == "" && !Approvable(in.Entry)
		case schemas.VerbPause:
			done.Moot = done.Refused == "" && s.desired == schemas.SessionSuspended
		}
		st.Actions = append(slices.Clip(st.Actions), done)
		past.Add(done.At, settle.ReasonApplied, actions.Message(done, in.Ref))
	}
	for _, r := range in.Runs() {
		past.AddRun("", r)
	}
	st.History = past.Entries()
	v := verify(in, s, sum.dagSum, old.Quality)
	sum.unverified = v != nil && sum.endedWell() && v.st.State != schemas.QualityVerified
	j := SlotsOf(in.World).judge(s, sum, old.Phase)
	v.judge(&j)
	if !s.Open && !s.idle && st.Running > 0 && (j.Class == settle.ClassReady || j.Class == settle.ClassWaiting) {
		j.Class = settle.ClassWorking // until what runs has finished or was ended
	}
	j.Settle(&st.Common, in.Object.Digest, in.Now)
	budgets.Warn(in, &st.Common)
	if v == nil {
		st.Quality = nil
		return settle.Out{Status: st}
	}
	st.Quality = v.st
	v.condition(&st.Common, &old.Common)
	return settle.Out{Status: st, Effects: v.effects}
}

// summary is what a session's phase follows from.
type summary struct {
	*dagSum
	done, live int            // live: working, about to, or waiting
	invalid    []*state.Entry // whose files cannot be used; not among dags
	unverified bool           // its work is yet to be verified
}

// failedAt is when the last of the failed DAGs failed.
func (s *summary) failedAt(w *settle.World) (at schemas.Time) {
	for _, name := range s.failed {
		if dag := w.Brief(w.Tree.Entry(schemas.DAGKind.Ref(name))); dag != nil {
			at = schemas.Later(at, dag.FinishedAt)
		}
	}
	return at
}

// tally adds up the DAGs of the session into its status.
func tally(in settle.In, st *schemas.SessionStatus, past *settle.History) *summary {
	sum := &summary{dagSum: SlotsOf(in.World).dagSum(in.Name)}
	sum.done, sum.live = sum.phases[schemas.DAGSucceeded]+sum.phases[schemas.DAGCancelled], len(sum.active)
	st.Progress, st.Running = sum.progress, sum.running
	if sum.dags > 0 {
		st.DAGs = maps.Clone(sum.phases)
	}
	st.ActiveDAGs = append(st.ActiveDAGs, sum.active...)
	for i := range sum.ended.list {
		if e := &sum.ended.list[i]; past.Admits(e.ended) {
			entry := e.entry()
			past.Add(entry.At, entry.Reason, entry.Message)
		}
	}
	for _, name := range sum.dagSum.invalid {
		e := in.Tree.Entry(schemas.DAGKind.Ref(name))
		sum.invalid = append(sum.invalid, e)
		if dag := settle.StatusAs[schemas.DAGStatus](in.World, e); dag != nil && dag.Running > 0 {
			sum.live++
			st.Running += dag.Running
			st.ActiveDAGs = append(st.ActiveDAGs, e.Name)
		}
	}
	slices.Sort(st.ActiveDAGs)
	return sum
}

// judge finds the phase. A session ends Completed only when that is asked for; it is Failed while a DAG of it is
// and nothing of it runs or waits (decision 7).
func (w *Slots) judge(s *slot, sum *summary, phase string) settle.Judgement {
	if s.idle {
		return w.judgeActive(s, sum, phase)
	}
	switch s.Reason {
	case settle.ReasonInvalidTransition:
		return settle.Judgement{Phase: phase, Class: settle.ClassInvalid, Reason: s.Reason, Message: s.Message}
	case settle.ReasonPaused:
		return settle.Judgement{Phase: schemas.SessionPaused, Class: settle.ClassReady, Reason: s.Reason, Message: s.Message}
	case settle.ReasonPausedByAction, settle.ReasonAnotherSessionActive:
		return settle.Judgement{Phase: schemas.SessionPaused, Class: settle.ClassWaiting, Reason: s.Reason, Message: s.Message}
	case settle.ReasonSuspended:
		return settle.Judgement{Phase: schemas.SessionSuspended, Class: settle.ClassReady, Reason: s.Reason, Message: s.Message}
	case settle.ReasonSuspendedByAction:
		return settle.Judgement{Phase: schemas.SessionSuspended, Class: settle.ClassWaiting, Reason: s.Reason, Message: s.Message}
	case settle.ReasonSessionLimit:
		return settle.Judgement{Phase: waitingPhase(phase), Class: settle.ClassWaiting, Reason: s.Reason, Message: s.Message}
	}
	return w.judgeActive(s, sum, phase)
}

// waitingPhase is Created for a session that never had a place, and Paused for one that lost it to a higher rank.
func waitingPhase(phase string) string {
	switch phase {
	case "", schemas.SessionCreated, schemas.SessionCompleted:
		return schemas.SessionCreated
	}
	return schemas.SessionPaused
}

func (w *Slots) judgeActive(s *slot, sum *summary, phase string) settle.Judgement {
	complete := s.desired == schemas.SessionCompleted
	switch {
	case complete && (phase == schemas.SessionCompleted || sum.done == sum.dags && len(sum.invalid) == 0 && !sum.unverified):
		return settle.Judgement{Phase: schemas.SessionCompleted, Class: settle.ClassReady, Reason: settle.ReasonCompleted, Message: cmp.Or(s.Message, completedMessage)}
	case complete && sum.unverified:
		return settle.Judgement{Phase: schemas.SessionActive, Class: settle.ClassReady, Reason: settle.ReasonCompletionPending, Message: "completes when it is verified"}
	case len(sum.failed) > 0 && sum.live == 0:
		return settle.Judgement{Phase: schemas.SessionFailed, Class: settle.ClassFailed, Reason: settle.ReasonDAGFailed, Since: sum.failedAt(w.world).Time,
			Message: fmt.Sprintf("dag/%s failed%s; retry it when the cause is gone", sum.failed[0], schemas.AndOthers(len(sum.failed)-1))}
	case complete && sum.done == sum.dags && sum.live == 0:
		return settle.Judgement{Phase: schemas.SessionActive, Class: settle.ClassWaiting, Reason: settle.ReasonCompletionPending,
			Message: fmt.Sprintf("waits for %s%s to be put right or removed, and completes when its DAGs are done",
				sum.invalid[0].Ref, schemas.AndOthers(len(sum.invalid)-1))}
	case complete:
		return settle.Judgement{Phase: schemas.SessionActive, Class: settle.ClassWorking, Reason: settle.ReasonCompletionPending,
			Message: fmt.Sprintf("completes when its DAGs are done: %d of %d are%s", sum.done, sum.dags,
				invalidDAGs(len(sum.invalid)))}
	case sum.dags == 0 && len(sum.invalid) > 0:
		return settle.Judgement{Phase: schemas.SessionActive, Class: settle.ClassReady, Reason: settle.ReasonActive,
			Message: "active" + invalidDAGs(len(sum.invalid))}
	case sum.dags == 0:
		return settle.Judgement{Phase: schemas.SessionActive, Class: settle.ClassReady, Reason: settle.ReasonActive, Message: "active, no DAGs yet"}
	}
	return settle.Judgement{Phase: schemas.SessionActive, Class: settle.ClassReady, Reason: settle.ReasonActive,
		Message: fmt.Sprintf("active, %d of %d DAGs done%s", sum.done, sum.dags, invalidDAGs(len(sum.invalid)))}
}

// invalidDAGs is the end of a sentence about a session's DAGs.
func invalidDAGs(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 DAG is invalid"
	}
	return fmt.Sprintf(", %d DAGs are invalid", n)
}

// IssueOf is the number of the issue that a question is about, or that a DAG serves: its own, else its session's, else 0.
func IssueOf(t *state.Tree, dag *state.Entry) int {
	if q := state.SpecOf[*schemas.ClarificationRequestSpec](dag); q != nil {
		return q.Issue
	}
	spec := schemas.SpecAs[*schemas.DAGSpec](dag.Object)
	if spec == nil {
		return 0
	}
	if spec.Issue > 0 {
		return spec.Issue
	}
	if s := state.SpecOf[*schemas.SessionSpec](t.Entry(schemas.SessionKind.Ref(spec.Session))); s != nil {
		return s.Issue
	}
	return 0
}
