package dags

import (
	"fmt"
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// records reads claims and runs, which are sorted by node as byName is.
func (f *fold) records() {
	clear(f.recs)
	f.reruns = false
	f.sortQuestions()
	runs := f.Runs()
	for _, i := range f.p.ByName {
		name := f.p.Spec.Nodes[i].Name
		for len(runs) > 0 && runs[0].Node < name {
			runs = runs[1:]
		}
		n := 0
		for n < len(runs) && runs[n].Node == name {
			n++
		}
		f.takeRuns(i, runs[:n])
		runs = runs[n:]
	}
	f.takeClaims()
}

// takeRuns reads the runs of node i.
func (f *fold) takeRuns(i int32, runs []*schemas.Run) {
	r, lands, verified := &f.recs[i], f.landings(i, runs), f.verifications(i, runs)
	for _, run := range runs {
		if run.NodeKey == f.b.Keys[i] {
			r.seq = max(r.seq, run.Seq)
			f.takeRun(i, run, lands, verified)
		}
	}
	f.remember(i, r)
	if f.verbs[i] != "" && f.runsAgain(i) {
		r.again, f.reruns = true, true
	}
}

func (f *fold) takeClaims() {
	for c := range f.Claims {
		claim := &f.Claims[c]
		i, ok := f.p.Index[claim.Node]
		switch {
		case !ok:
		case f.claimsLanding(i, claim):
			f.recs[i].land.claim = claim
		case f.claimsVerification(i, claim):
			f.recs[i].verify.claim = claim
		case claim.NodeKey == f.b.Keys[i] && f.overruled(i, &claim.Run):
			f.recs[i].takeFormer(claim)
		case claim.NodeKey == f.b.Keys[i]:
			f.recs[i].claim = claim
			f.recs[i].again = f.recs[i].won && claim.Seq > f.recs[i].wonAt
			f.reruns = f.reruns || f.recs[i].again
			f.recs[i].starts(claim.StartedAt, f.known(i))
		case claim.Verifies != "":
			f.recs[i].verify.other = max(f.recs[i].verify.other, claim.Seq)
		case !claim.IsWork(): // the landing of a change that is not wanted any more
		default:
			f.recs[i].takeFormer(claim)
		}
	}
}

// takeFormer takes a claim of the node under a former key. One that runs matters more than one that is queued.
func (r *nodeRecord) takeFormer(claim *state.Claim) {
	if !r.formerRuns() {
		r.former = claim
	}
}

// known is the latest start under the node's present key that the status knows of.
func (f *fold) known(i int32) schemas.Time {
	if was := f.was[i]; was.Key == f.b.Keys[i] {
		return was.StartedAt
	}
	return schemas.Time{}
}

func (r *nodeRecord) starts(at, known schemas.Time) {
	if at.After(known.Time) && (r.since.IsZero() || at.Before(r.since.Time)) {
		r.since = at
	}
}

// take takes a record; full says that its turn was ended since its context was full.
func (f *fold) take(r *nodeRecord, run *schemas.Run, pauses, full bool) {
	limited := false
	switch {
	case pauses:
		r.asked++
	case f.limited(r.limits, run):
		limited = true
		r.limits++
	case run.StoppedByBudget():
		limited = true
	case run.Outcome == schemas.OutcomeNotPermitted:
		r.unpermitted++
		r.kept = run
	case run.Outcome == schemas.OutcomeHandedOff, run.Outcome == schemas.OutcomeCancelled && full:
		r.handoffs++
		r.handoff, r.kept, r.handed = run, run, append(r.handed, run)
	case run.Outcome == schemas.OutcomeSucceeded:
		r.won, r.refused, r.kept = true, nil, nil
		r.before, r.failures, r.unlanded, r.wonAt, r.failed = r.attempts()+1, 0, 0, run.Seq, nil
	case run.Outcome == schemas.OutcomeFailed, run.Outcome == schemas.OutcomeTimedOut:
		r.failures++
		r.failed = run
		r.failedAt = schemas.Later(r.failedAt, run.FinishedAt)
	}
	if r.last == nil || run.Seq > r.last.Seq {
		r.last, r.pauses, r.limited = run, pauses, nil
		if limited {
			r.limited = run
		}
	}
}

// remember compensates for pruned records: the status of the same key still holds.
func (f *fold) remember(i int32, r *nodeRecord) {
	was := f.was[i]
	if was.Key != f.b.Keys[i] {
		return
	}
	switch {
	case was.State == schemas.NodeSucceeded && r.unlanded == 0 && (r.reopened == nil || !r.reopened.FinishedAt.After(was.FinishedAt.Time)):
		r.verify.of = nil
		if r.won = true; r.before == 0 {
			r.before = was.Attempts
		}
	case was.Reason == settle.ReasonRoundsUsedUp && r.last == nil:
		r.won, r.before = true, was.Attempts
	case was.State == schemas.NodeFailed && r.last == nil && was.Reason != settle.ReasonWhenFailed:
		r.failures, r.failedAt = max(was.Attempts, 1), was.FinishedAt
	}
}

// mostUnpermitted bounds how many runs of a node may end for a permission.
const mostUnpermitted = 24

const approvedMessage = "an action approved it"

// judge finds the state of node i; the nodes that it needs were judged before.
func (f *fold) judge(i int32) {
	r, s := &f.recs[i], f.next[i]
	f.facts(i)
	if f.p.Spec.Nodes[i].Joins() {
		f.judgeJoin(i)
		return
	}
	defer f.overCall(i)
	switch verb := f.verbs[i]; {
	case verb == schemas.VerbSkip && f.heldBack(i) != "":
		f.stop(i, schemas.NodeSkipped, settle.ReasonSkippedByAction, "an action skipped it")
	case (verb == schemas.VerbCancel || verb == verbKill) && f.heldBack(i) != "":
		f.stop(i, schemas.NodeCancelled, settle.ReasonCancelledByAction, f.cancelMessage(i))
	case f.heldBack(i) != "" && f.waitsForApproval(i):
		r.land.wanted = false
	case r.won && !r.again && r.land.of != nil:
		f.judgeLanding(i)
	case r.won && !r.again && verb == schemas.VerbApprove:
		f.set(i, schemas.NodeSucceeded, settle.ReasonApproved, approvedMessage)
	case r.won && !r.again && f.p.Spec.Nodes[i].Repeat != nil && f.repeats(i):
	case r.won && !r.again:
		f.set(i, schemas.NodeSucceeded, "", "")
	case f.late != "":
		f.stop(i, schemas.NodeSkipped, settle.ReasonTooLate, f.late)
	case f.keepsFormer(i):
	case verb == schemas.VerbSkip:
		f.stop(i, schemas.NodeSkipped, settle.ReasonSkippedByAction, "an action skipped it")
	case verb == schemas.VerbCancel, verb == verbKill:
		f.stop(i, schemas.NodeCancelled, settle.ReasonCancelledByAction, f.cancelMessage(i))
	case r.verify.of != nil && !r.running():
		f.judgeVerifying(i)
	case r.refused != nil && !r.running():
		f.set(i, schemas.NodeBlocked, settle.ReasonLandingRefused, f.refusal(i))
	case r.unlanded > max(f.limits[i].Limit, landRetries):
		name := f.p.Spec.Nodes[i].Name
		f.set(i, schemas.NodeFailed, settle.ReasonNotLanded, fmt.Sprintf("%s; it stays on the branch %s; correct the cause, then reconcile retry %s %s",
			r.failed.Message, f.branch(name), f.Ref, name))
	case f.handoffsMade(i) > mostHandoffs && !r.running():
		f.set(i, schemas.NodeFailed, settle.ReasonTooManyHandoffs, fmt.Sprintf(
			"it handed its task off %d times; divide the task, or give the agent a larger contextWindow", f.handoffsMade(i)))
	case r.unpermitted > mostUnpermitted && !r.running():
		f.set(i, schemas.NodeFailed, settle.ReasonTooManyPermissions, fmt.Sprintf(
			"%d of its runs ended for a permission; allow what it needs in commands.allow, or correct the agent", r.unpermitted))
	case r.failures > f.limits[i].Limit:
		f.set(i, schemas.NodeFailed, f.failureReason(i), s.Message)
	case verb == verbEnd && !r.running():
		f.stop(i, schemas.NodeCancelled, settle.ReasonCancelledByAction, f.cancelMessage(i))
	case (r.asked > 0 || len(r.questions) > 0) && f.givenUp(i):
	default:
		f.judgeOpen(i)
	}
}

// facts copies the record of the node's latest run.
func (f *fold) facts(i int32) {
	r, was, s := &f.recs[i], f.was[i], f.next[i]
	*s = schemas.NodeStatus{Key: f.b.Keys[i], Task: f.b.TaskOf(i), Generation: f.gens[i], Inputs: f.b.Inputs[i], Tools: f.tools[i], Verb: f.verbs[i],
		Attempts: r.attempts(), Approvals: f.approvals(i)}
	if f.rounds != nil && f.rounds[i] > 1 {
		s.Round = f.rounds[i]
	}
	switch {
	case r.running():
		s.Attempts++
		s.StartedAt = r.claim.StartedAt
	case r.last != nil:
		s.StartedAt, s.FinishedAt, s.ExitCode = r.last.StartedAt, r.last.FinishedAt, r.last.ExitCode
		s.Result, s.Output, s.Log, s.Message = r.last.Result, r.last.Output, r.last.Log, r.last.Message
	case was.Key == s.Key && (was.State == schemas.NodeSucceeded || was.State == schemas.NodeFailed):
		s.StartedAt, s.FinishedAt, s.ExitCode, s.Attempts = was.StartedAt, was.FinishedAt, was.ExitCode, was.Attempts
		s.Result, s.Output, s.Log, s.Message = was.Result, was.Output, was.Log, was.Message
	}
	if f.b.Human[i] {
		s.Result = f.answered(i)
	}
	s.Handoff = f.handedOver(i)
}

// judgeOpen judges a node that is neither done nor decided by an action.
func (f *fold) judgeOpen(i int32) {
	n, r, s := &f.p.Spec.Nodes[i], &f.recs[i], f.next[i]
	if !f.needsMet(i) {
		return
	}
	switch {
	case f.b.Human[i] && f.verbs[i] == schemas.VerbApprove:
		f.set(i, schemas.NodeSucceeded, settle.ReasonApproved, approvedMessage)
	case r.running() && f.gate.Keep && f.endsTurn(i):
	case r.running() && f.gate.Keep:
		end := ""
		if f.verbs[i] == verbEnd {
			end = "; an action cancelled it: it ends after this attempt"
		}
		f.set(i, schemas.NodeRunning, settle.ReasonRunning, fmt.Sprintf("attempt %d of %d", r.failures+1, f.limits[i].Limit+1)+f.insteadOf(i)+end)
		if asks := f.asksNow(i); asks != "" {
			f.set(i, schemas.NodeRunning, settle.ReasonWaitsForPermission, asks)
		}
		f.want[i] = true
	case r.running() && f.gate.Kill:
		f.set(i, schemas.NodeRunning, settle.ReasonKilling, "its run is being killed: "+f.gate.Message)
	case r.running():
		f.set(i, schemas.NodeRunning, settle.ReasonEnding, "its run is being ended: "+f.gate.Message)
	case r.formerRuns():
		f.set(i, schemas.NodeRunning, settle.ReasonReplacing, "the run of its former definition is being ended")
		s.StartedAt = r.former.StartedAt
	case f.heldByAction(i):
	case !f.gate.Open && !f.leftOut(i):
		f.set(i, schemas.NodePending, f.gate.Reason, f.gate.Message)
	case f.p.When[i] != nil && r.last == nil && !f.whenHolds(i):
	case f.waitsForApproval(i):
	case (r.pauses || len(f.escalations) > 0) && f.waitsForHelp(i):
	case (r.pauses || len(r.questions) > 0) && f.waitsForAnswer(i):
	case f.waitsForPermission(i):
	case f.handingOff(i):
	case f.waitsForTime(i):
	case f.b.Human[i]:
		given, _ := f.counting(i, "")
		how := "approve it when it is done"
		if f.asksForAnswer(i) {
			how = fmt.Sprintf("reconcile approve %s %s --answer TEXT, in the form that the task asks for", f.Ref, n.Name)
		}
		f.set(i, schemas.NodeBlocked, settle.ReasonWaitsForPerson, fmt.Sprintf("waits for %s%s; %s", f.contact(n.Agent), f.howMany(f.approveOf(i), given), how))
	case !f.textsHold(i):
	case f.inputsUnread(i):
		f.set(i, schemas.NodePending, "", "its inputs are read in the next turn")
	default:
		f.queue(i)
	}
}

// inputsUnread reports whether node i was made from a result just now, so that no one has looked at its inputs.
func (f *fold) inputsUnread(i int32) bool {
	return f.inputs[i] == "" && len(f.p.Spec.Nodes[i].Inputs) > 0 && f.p.MadeOfResults()
}

// leftOut reports whether the node's condition was false before under its present key. That stands while nothing may start: otherwise a
// session that is complete would open again.
func (f *fold) leftOut(i int32) bool {
	was := f.was[i]
	return was.Reason == settle.ReasonWhenFalse && was.State == schemas.NodeSkipped && was.Key == f.b.Keys[i]
}

// queue lets a node wait for its place, or for its back-off. A failure that is yet to come was recorded under a clock
// that was wrong: waiting it out could take years, and retry.limit bounds the attempts anyway.
func (f *fold) queue(i int32) {
	r := &f.recs[i]
	if r.failures > 0 {
		due := r.failedAt.Add(f.limits[i].Wait(r.failures))
		if f.Now.Before(due) && !f.Now.Before(r.failedAt.Time) {
			f.set(i, schemas.NodeQueued, settle.ReasonBackOff, fmt.Sprintf("attempt %d of %d failed; the next one is due",
				r.failures, f.limits[i].Limit+1))
			f.next[i].RetryAt = schemas.NewTime(due)
			f.wake(due)
			return
		}
	}
	if f.waitsForLimit(i) {
		return
	}
	if f.pipelineOf(i) != nil && f.workspace(i) == nil {
		f.set(i, schemas.NodeBlocked, settle.ReasonNotVerifiable, fmt.Sprintf("its pipeline verifies a commit, and %s works in the tree itself; "+
			"give the agent workspace: clone, or remove the pipeline", f.p.Spec.Nodes[i].Agent))
		return
	}
	if why := f.notCommitted(i); why != "" && r.claim == nil {
		f.set(i, schemas.NodeBlocked, settle.ReasonNotCommitted, why)
		return
	}
	if f.lacksTool(i) || f.waitsForAgent(i) || f.overBudget(i, f.agentOf(i)) {
		return
	}
	if r.former != nil && r.claim == nil { // until it is withdrawn, or known to run
		f.set(i, schemas.NodeQueued, settle.ReasonReplacing, "the queued run of its former definition is being withdrawn")
		return
	}
	if r.again && !strings.HasPrefix(f.verbs[i], verbAgain) {
		f.set(i, schemas.NodeQueued, settle.ReasonOutputsMissing, f.againMessage(i))
	}
	f.want[i] = true
	f.next[i].QueuedAt = f.queuedAt(i)
}

// queuedAt returns since when the node waits for a place. A time that is yet to come was recorded under a clock that was wrong: until then
// the node would not age.
func (f *fold) queuedAt(i int32) schemas.Time {
	if was := f.was[i]; was.State == schemas.NodeQueued && was.Key == f.b.Keys[i] && !was.QueuedAt.IsZero() && !was.QueuedAt.After(f.Now) {
		return was.QueuedAt
	}
	return schemas.NewTime(f.Now)
}

// notCommitted says why the workspace of the node cannot be made yet. Where no one has asked git, the status stands.
func (f *fold) notCommitted(i int32) string {
	why, known := f.World.NotCommitted(f.Ref, f.p.Spec.Nodes[i].Name)
	if was := f.was[i]; !known && was.Reason == settle.ReasonNotCommitted && was.Key == f.b.Keys[i] {
		return was.Message
	}
	return why
}

// needsMet reports whether the needs of the node let it start; if not, it has set the state.
func (f *fold) needsMet(i int32) bool {
	if f.p.CleansUp(i) {
		return f.cleanupMet(i)
	}
	need, all := f.unmet(i)
	switch {
	case need >= 0:
		f.leaveOut(i, need)
	case !all:
		f.stop(i, schemas.NodePending, "", "")
	}
	return need < 0 && all
}

func (f *fold) contact(agent string) string {
	if a := f.b.Agent(f.p, agent); a != nil && a.Runner.Human != nil && a.Runner.Human.Contact != "" {
		return a.Runner.Human.Contact
	}
	return agent
}

func (f *fold) failureReason(i int32) string {
	switch last := f.recs[i].last; {
	case last == nil && f.was[i].Reason != "":
		return f.was[i].Reason
	case last != nil && last.Outcome == schemas.OutcomeTimedOut:
		return settle.ReasonTimedOut
	case last != nil && last.Limits != nil && last.Limits.Exceeded == schemas.LimitMemory:
		return settle.ReasonOutOfMemory
	case last != nil && last.Workspace != nil && last.Workspace.Reason == schemas.RunWroteOutside:
		return settle.ReasonWroteOutside
	}
	return settle.ReasonFailed
}

// leavesChange reports whether a run succeeded with a commit.
func leavesChange(run *schemas.Run) bool {
	return run.Outcome == schemas.OutcomeSucceeded && run.Workspace != nil && run.Workspace.Commit != ""
}

// takeRun takes a record of node i; verified are the verifications of its change, by step.
func (f *fold) takeRun(i int32, run *schemas.Run, lands map[string]*schemas.Run, verified map[string]map[string]*schemas.Run) {
	if f.overruled(i, run) && (f.recs[i].verify.tried != nil || !leavesChange(run)) {
		return
	}
	r, pauses := &f.recs[i], f.pauses(i, run)
	r.starts(run.StartedAt, f.known(i))
	unheard := !pauses && f.unheardAfter(i, run)
	if !pauses && f.verifies(i, run) && !f.lets(i, run, verified, lands[run.Key]) && !unheard {
		return
	}
	if unheard {
		r.reopen(run)
		r.verify.of = nil
		return
	}
	f.takeOrReject(r, run, pauses, f.endMark(i, run.Turn) > 0, lands)
}

// takeOrReject takes a record, unless it is a success whose commit could not land: then the node runs again, and gets the reason.
func (f *fold) takeOrReject(r *nodeRecord, run *schemas.Run, pauses, full bool, lands map[string]*schemas.Run) {
	land := lands[run.Key]
	if run.Outcome == schemas.OutcomeSucceeded && land != nil && land.Outcome == schemas.OutcomeFailed && !testsConflict(land) {
		r.verify.tried, r.verify.sentBack = land, nil // it is done anew
		if r.won, r.land.of, r.refused, r.kept = false, nil, nil, nil; reasonOf(land) == schemas.LandedRefused {
			r.refused = land
			r.before, r.failures, r.unlanded, r.failed = r.attempts()+1, 0, 0, nil
		} else {
			r.unlanded++
			r.failed = land
		}
		if r.last == nil || run.Seq > r.last.Seq {
			r.last, r.pauses = run, false
		}
		return
	}
	f.take(r, run, pauses, full)
	if run.Outcome == schemas.OutcomeSucceeded && !pauses {
		r.land.of = nil
		if w := run.Workspace; w != nil && w.Commit != "" && (land == nil || land.Outcome != schemas.OutcomeSucceeded) {
			r.land.of = run
		}
	}
}
