package dags

import (
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

func newFold(in settle.In, p *plan.Plan, old *schemas.DAGStatus) *fold {
	n := len(p.Spec.Nodes)
	f := &fold{In: in, p: p, old: old, hold: old.Hold, resumes: in.Tree.Settings().Limits.Resume,
		was: p.NodesOf(old), limits: p.Retries, gens: make([]int, n),
		verbs: make([]string, n), recs: make([]nodeRecord, n), next: make([]*schemas.NodeStatus, n), want: make([]bool, n),
		keys: make([]string, n), inputs: make([]string, n), tools: make([]map[string]string, n), history: settle.History{Old: old.History}}
	if len(p.Agents) > 0 {
		f.questions = clarifications.RequestsOf(in.World).Index.QuestionsOf(in.Name)
	}
	f.escalations = planchanges.EscalationsOf(in.World, in.Name)
	for i := range f.was {
		f.next[i] = new(schemas.NodeStatus) // each on its own: one that stays for long does not hold the others of its decision
		f.gens[i], f.verbs[i], f.keys[i] = f.was[i].Generation, f.was[i].Verb, f.was[i].Key
		if node := &p.Spec.Nodes[i]; len(node.Inputs) > 0 {
			f.inputs[i] = inputsOf(in, node.Name, f.was[i].Inputs)
		}
		f.findTools(int32(i))
	}
	f.inheritVerbs()
	return f
}

func inputsOf(in settle.In, node, last string) string {
	if now, ok := in.Inputs[node]; ok {
		return now
	}
	return last
}

// run judges all nodes, then applies new actions one by one, and judges again after each.
func (f *fold) run() {
	f.applied = actions.Kept(f.Tree, f.old.Actions)
	f.noteDelivered()
	if f.p.Spec.Answers != "" {
		f.late = planchanges.Late(f.World, f.p.Spec.Answers, f.Name)
	}
	f.findRounds()
	f.openSchedule()
	f.joinGroup()
	f.judgeAll()
	if f.restarts() {
		f.judgeAll()
	}
	for _, a := range f.newActs(f.applied) {
		if f.unproved(a) {
			continue
		}
		done := a.Record(schemas.NewTime(f.Now))
		if schemas.IsMessage(done.Verb) {
			done.Delivery = f.deliveryOf(&done) // to a run before the status of the DAG was lost
		}
		f.applied = append(f.applied[:len(f.applied):len(f.applied)], done)
		if a.Spent {
			f.judgeAll() // a run of its namesake may have had a text
			continue
		}
		done.Moot = !f.apply(a, &done)
		if a.Spec.Verb == schemas.VerbRetry && done.Refused == "" {
			f.restartLoops(a.Spec.All)
		}
		if done.Refused == "" {
			f.beginScheduled(a.Entry.Name, a.Spec)
		}
		f.applied[len(f.applied)-1] = done
		f.acted = f.acted || !schemas.IsMessage(a.Spec.Verb)
		f.history.Add(done.At, settle.ReasonApplied, actions.Message(done, f.Ref))
		f.judgeAll()
	}
	f.cancelForGroup()
	f.old = withActions(f.old, f.applied)
}

// cancelForGroup cancels the rest of the DAG for a later one of its group.
func (f *fold) cancelForGroup() {
	if f.cancels == "" {
		return
	}
	for i := range f.next {
		f.applyTo(int32(i), schemas.VerbCancel, false)
	}
	f.judgeAll()
}

func withActions(old *schemas.DAGStatus, applied []schemas.AppliedAction) *schemas.DAGStatus {
	st := *old
	st.Actions = applied
	return &st
}

// judgeAll finds the state of every node.
func (f *fold) judgeAll() {
	f.gate = sessions.SlotsOf(f.World).GateOf(f.p.Spec.Session)
	if f.hold == schemas.VerbPause && f.gate.Open {
		f.gate = sessions.Gate{Keep: true, Reason: settle.ReasonPausedByAction, Message: "an action paused the DAG; resume it to go on"}
	}
	f.groupGate()
	for next := true; next; next = f.nextRounds() {
		f.rebind()
		f.records()
		f.keepCallsOver()
		f.judgeRound()
	}
	f.readClock()
	for f.callsEnd() {
		f.judgeRound()
		f.readClock()
	}
	if f.expired() {
		f.expire()
	}
	f.failFast()
	for i := range f.next {
		f.next[i].Landed, f.next[i].Pipeline = f.landed(int32(i)), f.pipelineStatus(int32(i))
		f.closeHandoff(int32(i))
	}
}

// judgeRound finds the state of every node in the present rounds.
func (f *fold) judgeRound() {
	f.again, f.later = time.Time{}, time.Time{}
	for again := true; again; again = f.bringBack() {
		for _, i := range f.p.Order {
			f.judge(i)
		}
	}
}

// rebind makes keys for the present generations. An approval was given for one key and ends with it, and so does what the
// cancellation of a DAG left to clean up.
func (f *fold) rebind() {
	f.bind()
	for i, key := range f.b.Keys {
		if (f.verbs[i] == schemas.VerbApprove || f.verbs[i] == verbCleanup) && f.keys[i] != key {
			f.verbs[i] = ""
		}
		if f.approved != nil && f.keys[i] != key {
			delete(f.approved, int32(i))
		}
		if f.handoffs != nil && f.keys[i] != key {
			delete(f.handoffs, int32(i))
		}
	}
	f.keys = f.b.Keys
}

// expire ends the nodes that have not started. The runner ends running ones, since it knows the deadline, and records
// them as timed out.
func (f *fold) expire() {
	message := fmt.Sprintf("the DAG's timeout of %s is over", f.p.Spec.Policy.Timeout)
	for i := range f.next {
		if !f.p.CleansUp(int32(i)) {
			f.expireNode(int32(i), settle.ReasonDAGTimeout, message)
		}
	}
	for _, i := range f.p.Order { // a cleanup may need another one
		if !f.p.CleansUp(i) {
			continue
		}
		f.judge(i)
		if need, all := f.unmet(i); all && need < 0 {
			f.expireNode(i, settle.ReasonDAGTimeout, message)
		}
	}
}

// failFast ends everything else once a node failed, if the policy says so.
func (f *fold) failFast() {
	if !f.p.Spec.Policy.FailsFast() {
		return
	}
	culprit := f.culprit(nil)
	if culprit == "" {
		return
	}
	for i := range f.next {
		switch s := f.next[i]; {
		case f.p.CleansUp(int32(i)), f.recs[i].land.of != nil, f.recs[i].verify.of != nil:
		case s.State == schemas.NodePending, s.State == schemas.NodeQueued, s.State == schemas.NodeBlocked,
			s.State == schemas.NodeRunning, s.State == schemas.NodeSkipped && !readiness.NodeMet(s):
			s.RetryAt = schemas.Time{}
			f.stop(int32(i), schemas.NodeCancelled, settle.ReasonFailFast, culprit+" failed, and the policy is to fail fast")
		}
	}
	f.judgeCleanups()
}

// judgeCleanups judges the cleanups again after other nodes were ended.
func (f *fold) judgeCleanups() {
	if len(f.p.Cleanup) == 0 {
		return
	}
	for _, i := range f.p.Order {
		if f.p.CleansUp(i) {
			f.judge(i)
		}
	}
}
