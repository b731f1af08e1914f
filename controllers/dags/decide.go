// Package dags decides DAGs: which nodes run, by their keys, records, needs, actions, questions and time. decide.go has the
// decision, fold.go its state, and the other files its parts: the states of nodes, actions, outputs, the time limit, questions of
// nodes, and the tasks. Package plan has the keys of nodes (decision 1).
package dags

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// decide decides which nodes run: every node whose needs are met and that has no recorded success under its key,
// within the limits of session, actions, attempts and time.
func decide(in settle.In) settle.Out {
	if in.Gone() {
		return settle.Out{}
	}
	old, _ := in.Status().(*schemas.DAGStatus)
	if old == nil {
		old = new(schemas.DAGStatus)
	}
	if in.Broken() {
		out := keepStatus(in, *old, settle.JudgeBroken(in, old.Phase), old.ObservedDigest)
		if st := out.Status.(*schemas.DAGStatus); st.Session == "" {
			st.Session = sessions.SessionOfBroken(in.Entry) // which is decided when this one is put right, or goes
		}
		return out
	}
	p := plan.Of(in.Object)
	if j, ok := unusable(in, p); ok {
		st := *old
		st.Phase = cmp.Or(st.Phase, schemas.DAGPending)
		return keepStatus(in, st, j, in.Object.Digest)
	}
	f := newFold(in, p, old)
	f.run()
	return f.finish()
}

// keepStatus keeps a status as it is, but for the judgement and what began and ended since, and lets run what runs, and
// only that.
func keepStatus(in settle.In, st schemas.DAGStatus, j settle.Judgement, digest string) settle.Out {
	freeze(in.Entry, &st)
	j.Phase = st.Phase
	st.Actions = actions.Kept(in.Tree, st.Actions)
	j.Settle(&st.Common, digest, in.Now)
	return settle.Out{Status: &st, Effects: frozen(in.Tree, in.Entry, st.Session)}
}

// unusable says why the DAG cannot be decided although its file is right. The phase is left open.
func unusable(in settle.In, p *plan.Plan) (settle.Judgement, bool) {
	if p.Fault != "" {
		return settle.Judgement{Class: settle.ClassInvalid, Reason: settle.ReasonInvalidSpec,
			Message: in.Object.Path + ": " + p.Fault}, true
	}
	for _, name := range p.Agents {
		if e := in.Tree.Entry(schemas.AgentKind.Ref(name)); e == nil || e.Object == nil {
			return settle.Judgement{Class: settle.ClassWaiting, Reason: settle.ReasonAgentInvalid,
				Message: fmt.Sprintf("waits until %s is put right", schemas.AgentKind.Ref(name))}, true
		} else if why := profiles.Check(in.Tree.Settings().Profiles, schemas.SpecAs[*schemas.AgentSpec](e.Object).Runner.AsCommand()); why != "" {
			return settle.Judgement{Class: settle.ClassWaiting, Reason: settle.ReasonAgentInvalid,
				Message: fmt.Sprintf("waits until %s is put right: %s", schemas.AgentKind.Ref(name), why)}, true
		}
	}
	return settle.Judgement{}, false
}

func newFold(in settle.In, p *plan.Plan, old *schemas.DAGStatus) *fold {
	n := len(p.Spec.Nodes)
	f := &fold{In: in, p: p, old: old, hold: old.Hold, resumes: in.Tree.Settings().Limits.Resume,
		was: p.NodesOf(old), limits: p.Retries, gens: make([]int, n),
		verbs: make([]string, n), recs: make([]record, n), next: make([]schemas.NodeStatus, n), want: make([]bool, n),
		keys: make([]string, n), inputs: make([]string, n), history: settle.History{Old: old.History}}
	if len(p.Agents) > 0 {
		f.questions = clarifications.Of(in.World).Index.QuestionsOf(in.Name)
	}
	for i := range f.was {
		f.gens[i], f.verbs[i], f.keys[i] = f.was[i].Generation, f.was[i].Verb, f.was[i].Key
		if node := &p.Spec.Nodes[i]; len(node.Inputs) > 0 {
			f.inputs[i] = inputsOf(in, node.Name, f.was[i].Inputs)
		}
	}
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
	f.judgeAll()
	for _, a := range f.newActs(f.applied) {
		done := a.Record(schemas.NewTime(f.Now))
		f.applied = append(f.applied[:len(f.applied):len(f.applied)], done)
		if a.Spent {
			continue
		}
		done.Moot = !f.apply(a.Spec)
		f.applied[len(f.applied)-1] = done
		f.acted = f.acted || !schemas.IsMessage(a.Spec.Verb)
		f.history.Add(done.At, settle.ReasonApplied, actions.Message(done, f.Ref))
		f.judgeAll()
	}
	f.old = withActions(f.old, f.applied)
}

func withActions(old *schemas.DAGStatus, applied []schemas.AppliedAction) *schemas.DAGStatus {
	st := *old
	st.Actions = applied
	return &st
}

// judgeAll finds the state of every node.
func (f *fold) judgeAll() {
	f.rebind()
	f.records()
	f.again, f.later = time.Time{}, time.Time{}
	f.gate = sessions.Of(f.World).GateOf(f.p.Spec.Session)
	if f.hold == schemas.VerbPause && f.gate.Open {
		f.gate = sessions.Gate{Keep: true, Reason: settle.ReasonPausedByAction, Message: "an action paused the DAG; resume it to go on"}
	}
	for again := true; again; again = f.bringBack() {
		for _, i := range f.p.Order {
			f.judge(i)
		}
	}
	f.start = f.startOf()
	f.active = f.clock()
	if f.expired() {
		f.expire()
	}
	f.failFast()
	for i := range f.next {
		f.next[i].Landed = f.landed(int32(i))
	}
}

// rebind makes keys for the present generations. An approval was given for one key and ends with it, and so does what the
// cancellation of a DAG left to clean up.
func (f *fold) rebind() {
	ready := f.old.Condition(schemas.Ready)
	same := f.old.ObservedDigest == f.Object.Digest && ready != nil && ready.Reason != settle.ReasonAgentInvalid
	f.b = plan.Bind(f.In, f.p, f.gens, f.inputs).Keeping(f.p, f.was, same, f.Runs)
	for i, key := range f.b.Keys {
		if (f.verbs[i] == schemas.VerbApprove || f.verbs[i] == verbCleanup) && f.keys[i] != key {
			f.verbs[i] = ""
		}
	}
	f.keys = f.b.Keys
}

// startOf is the start of the present generation of work, from the status or else from the claims and records that the
// status does not know.
func (f *fold) startOf() schemas.Time {
	if !f.old.StartedAt.IsZero() && !f.reopened() {
		return f.old.StartedAt
	}
	var first schemas.Time
	for i := range f.recs {
		if at := f.recs[i].since; !at.IsZero() && (first.IsZero() || at.Before(first.Time)) {
			first = at
		}
	}
	return first
}

// expire ends the nodes that have not started. The runner ends running ones, since it knows the deadline, and records
// them as timed out.
func (f *fold) expire() {
	for i := range f.next {
		if !f.p.CleansUp(int32(i)) {
			f.expireNode(int32(i))
		}
	}
	f.judgeCleanups()
	for _, i := range f.p.Cleanup {
		if need, all := f.unmet(i); all && need < 0 {
			f.expireNode(i)
		}
	}
}

func (f *fold) expireNode(i int32) {
	if f.recs[i].land.of != nil {
		return // its work is done
	}
	message := fmt.Sprintf("the DAG's timeout of %s is over", f.p.Spec.Policy.Timeout)
	switch s := &f.next[i]; s.State {
	case schemas.NodePending, schemas.NodeQueued, schemas.NodeBlocked:
		s.RetryAt = schemas.Time{}
		if f.recs[i].failures > 0 {
			f.set(i, schemas.NodeFailed, settle.ReasonDAGTimeout, message)
		} else {
			f.stop(i, schemas.NodeCancelled, settle.ReasonDAGTimeout, message)
		}
	}
}

// failFast ends everything else once a node failed, if the policy says so.
func (f *fold) failFast() {
	if !f.p.Spec.Policy.FailsFast() {
		return
	}
	culprit := ""
	for i := range f.next {
		if f.next[i].State == schemas.NodeFailed {
			culprit = f.p.Spec.Nodes[i].Name
			break
		}
	}
	if culprit == "" {
		return
	}
	for i := range f.next {
		switch s := &f.next[i]; {
		case f.p.CleansUp(int32(i)), f.recs[i].land.of != nil:
		case s.State == schemas.NodePending, s.State == schemas.NodeQueued, s.State == schemas.NodeBlocked,
			s.State == schemas.NodeRunning, s.State == schemas.NodeSkipped && !readiness.NodeMet(s):
			s.RetryAt = schemas.Time{}
			f.stop(int32(i), schemas.NodeCancelled, settle.ReasonFailFast, culprit+" failed, and the policy is to fail fast")
		}
	}
	f.judgeCleanups()
}

// finish puts the status together.
func (f *fold) finish() settle.Out {
	st := &schemas.DAGStatus{Common: f.old.Common, Layers: f.p.Layers, Session: f.p.Spec.Session, Hold: f.hold,
		Actions: f.old.Actions, Nodes: f.nodes()}
	n := f.count()
	st.Progress = schemas.Progress{Done: n.done, Total: len(f.next)}
	st.Running = n.running
	j := f.judgement(n)
	f.times(st, j.Phase, n)
	if ended(j.Phase) {
		j.Since = cmp.Or(st.FinishedAt, f.lastEnd()).Time
	}
	f.remind(st)
	j.Settle(&st.Common, f.Object.Digest, f.Now)
	budgets.Warn(f.In, &st.Common)
	if !over(st) {
		st.Active = f.active
	}
	f.p.Remember(st, f.next)
	out := settle.Out{Status: st, Effects: f.effects(), Restore: f.restores}
	if !over(st) && !f.again.IsZero() {
		out.Again, out.Await = f.again, true
	} else if !over(st) && !f.later.IsZero() {
		out.Again = f.later
	}
	return out
}

// nodes returns the states by name: the former map itself where none differs.
func (f *fold) nodes() map[string]schemas.NodeStatus {
	if len(f.old.Nodes) == len(f.next) {
		var out map[string]schemas.NodeStatus
		for i := range f.next {
			if !sameNode(f.was[i], &f.next[i]) {
				if out == nil {
					out = maps.Clone(f.old.Nodes)
				}
				out[f.p.Spec.Nodes[i].Name] = f.next[i]
			}
		}
		switch len(out) {
		case 0:
			return f.old.Nodes
		case len(f.next): // otherwise the names differ
			return out
		}
	}
	out := make(map[string]schemas.NodeStatus, len(f.next))
	for i := range f.next {
		out[f.p.Spec.Nodes[i].Name] = f.next[i]
	}
	return out
}

// times sets when the work started and ended. A DAG that was changed but has nothing to run keeps its times.
func (f *fold) times(st *schemas.DAGStatus, phase string, n nodeCounts) {
	st.StartedAt = f.start
	if !ended(phase) || n.waiting() > 0 {
		return
	}
	if f.start.IsZero() {
		st.StartedAt = f.old.StartedAt
	}
	if ended(f.old.Phase) && st.StartedAt == f.old.StartedAt && !f.old.FinishedAt.IsZero() {
		st.FinishedAt = f.old.FinishedAt
		return
	}
	st.FinishedAt = f.lastEnd()
	switch {
	case n.timedOut:
		st.FinishedAt = schemas.Later(st.FinishedAt, schemas.NewTime(f.deadline()))
	case st.FinishedAt.IsZero():
		st.FinishedAt = schemas.NewTime(f.Now)
	}
}

// lastEnd is when the last run of a node ended.
func (f *fold) lastEnd() schemas.Time {
	var at schemas.Time
	for i := range f.next {
		at = schemas.Later(at, f.next[i].FinishedAt)
	}
	return at
}

// remind adds the records' news to the history.
func (f *fold) remind(st *schemas.DAGStatus) {
	for _, r := range f.Runs() {
		if f.history.Admits(r.FinishedAt) {
			f.history.Add(r.FinishedAt, r.Outcome, settle.RunMessage(r))
		}
	}
	st.History = f.history.Entries()
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
