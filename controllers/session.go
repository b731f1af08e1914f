package controllers

import (
	"fmt"
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// decideSession follows a session through its life. What its DAGs may do is its seat; this only tells about it.
func decideSession(in In) Out {
	if in.Gone() {
		return Out{}
	}
	old, _ := in.Status().(*schemas.SessionStatus)
	if old == nil {
		old = new(schemas.SessionStatus)
	}
	st := &schemas.SessionStatus{Common: old.Common, Hold: old.Hold, Actions: kept(in.Tree, old.Actions)}
	past := historyBuilder{old: old.History}
	sum := tally(in, st, &past)
	if in.Broken() {
		brokenJudgement(in, old.Phase).settle(&st.Common, old.ObservedDigest, in.Now)
		return Out{Status: st}
	}
	s := slotsOf(in.World).slotOf(in.Name)
	st.Hold = s.hold
	for _, a := range s.acts {
		done := a.record(schemas.NewTime(in.Now))
		st.Actions = append(slices.Clip(st.Actions), done)
		past.add(done.At, ReasonApplied, actMessage(done, in.Ref))
	}
	st.History = past.entries()
	j := slotsOf(in.World).judgeSession(s, sum, old.Phase)
	if !s.open && st.Running > 0 && (j.class == ready || j.class == waiting) {
		j.class = working // until what runs has finished or was ended
	}
	j.settle(&st.Common, in.Object.Digest, in.Now)
	return Out{Status: st}
}

// summary is what a session's phase follows from.
type summary struct {
	*dagSum
	done, live int            // live: working, about to, or waiting
	invalid    []*state.Entry // whose files cannot be used; not among dags
}

// failedAt is when the last of the failed DAGs failed.
func (s *summary) failedAt(w *World) (at schemas.Time) {
	for _, name := range s.failed {
		if dag := w.Brief(w.Tree.Entry(dagRef(name))); dag != nil {
			at = later(at, dag.FinishedAt)
		}
	}
	return at
}

// tally adds up the DAGs of the session into its status.
func tally(in In, st *schemas.SessionStatus, past *historyBuilder) *summary {
	sum := &summary{dagSum: slotsOf(in.World).dagSum(in.Name)}
	sum.done, sum.live = sum.phases[schemas.DAGSucceeded]+sum.phases[schemas.DAGCancelled], len(sum.active)
	st.Progress, st.Running = sum.progress, sum.running
	if sum.dags > 0 {
		st.DAGs = maps.Clone(sum.phases)
	}
	st.ActiveDAGs = append(st.ActiveDAGs, sum.active...)
	for i := range sum.ended.list {
		if e := &sum.ended.list[i]; past.admits(e.ended) {
			entry := e.entry()
			past.add(entry.At, entry.Reason, entry.Message)
		}
	}
	for _, name := range sum.dagSum.invalid {
		e := in.Tree.Entry(dagRef(name))
		sum.invalid = append(sum.invalid, e)
		if dag := dagStatus(in.World, e); dag != nil && dag.Running > 0 {
			sum.live++
			st.Running += dag.Running
			st.ActiveDAGs = append(st.ActiveDAGs, e.Name)
		}
	}
	slices.Sort(st.ActiveDAGs)
	return sum
}

// judgeSession finds the phase. A session ends Completed only when that is asked for; it is Failed while a DAG of it is
// and nothing of it runs or waits (decision 7).
func (w *slots) judgeSession(s *slot, sum *summary, phase string) judgement {
	switch s.reason {
	case ReasonInvalidTransition:
		return judgement{phase: phase, class: invalid, reason: s.reason, message: s.message}
	case ReasonPaused:
		return judgement{phase: schemas.SessionPaused, class: ready, reason: s.reason, message: s.message}
	case ReasonPausedByAction, ReasonAnotherSessionActive:
		return judgement{phase: schemas.SessionPaused, class: waiting, reason: s.reason, message: s.message}
	case ReasonSuspended:
		return judgement{phase: schemas.SessionSuspended, class: ready, reason: s.reason, message: s.message}
	case ReasonSuspendedByAction:
		return judgement{phase: schemas.SessionSuspended, class: waiting, reason: s.reason, message: s.message}
	case ReasonSessionLimit:
		return judgement{phase: waitingPhase(phase), class: waiting, reason: s.reason, message: s.message}
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

func (w *slots) judgeActive(s *slot, sum *summary, phase string) judgement {
	complete := s.desired == schemas.SessionCompleted
	switch {
	case complete && (phase == schemas.SessionCompleted || sum.done == sum.dags && len(sum.invalid) == 0):
		return judgement{phase: schemas.SessionCompleted, class: ready, reason: ReasonCompleted, message: completedMessage}
	case len(sum.failed) > 0 && sum.live == 0:
		return judgement{phase: schemas.SessionFailed, class: failed, reason: ReasonDAGFailed, since: sum.failedAt(w.world).Time,
			message: fmt.Sprintf("dag/%s failed%s; retry it when the cause is gone", sum.failed[0], more(len(sum.failed)-1))}
	case complete && sum.done == sum.dags && sum.live == 0:
		return judgement{phase: schemas.SessionActive, class: waiting, reason: ReasonCompletionPending,
			message: fmt.Sprintf("waits for %s%s to be put right or removed, and completes when its DAGs are done",
				sum.invalid[0].Ref, more(len(sum.invalid)-1))}
	case complete:
		return judgement{phase: schemas.SessionActive, class: working, reason: ReasonCompletionPending,
			message: fmt.Sprintf("completes when its DAGs are done: %d of %d are%s", sum.done, sum.dags,
				invalidDAGs(len(sum.invalid)))}
	case sum.dags == 0 && len(sum.invalid) > 0:
		return judgement{phase: schemas.SessionActive, class: ready, reason: ReasonActive,
			message: "active" + invalidDAGs(len(sum.invalid))}
	case sum.dags == 0:
		return judgement{phase: schemas.SessionActive, class: ready, reason: ReasonActive, message: "active, no DAGs yet"}
	}
	return judgement{phase: schemas.SessionActive, class: ready, reason: ReasonActive,
		message: fmt.Sprintf("active, %d of %d DAGs done%s", sum.done, sum.dags, invalidDAGs(len(sum.invalid)))}
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

// more is how many others there are, for the end of a list that names one.
func more(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " and another one"
	}
	return fmt.Sprintf(" and %d others", n)
}
