// Package dags decides DAGs: which nodes run, by their keys, records, needs, actions, questions and time. model.go has the state
// of a decision, fold.go judges the nodes, decide.go makes the status of the DAG, and the other files have parts: the states of
// nodes, actions, outputs, the time limit, questions of nodes, and the tasks. Package plan has the keys of nodes (decision 1).
package dags

import (
	"cmp"
	"fmt"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/research"
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
	if p.Spec.Template {
		return keepStatus(in, schemas.DAGStatus{Common: schemas.Common{Phase: schemas.DAGSucceeded, Conditions: old.Conditions, History: old.History},
			Session: p.Spec.Session}, settle.Judgement{Class: settle.ClassReady, Reason: settle.ReasonTemplate,
			Message: "a template: it runs only where other DAGs call it"}, in.Object.Digest)
	}
	if j, ok := unusable(in, p); ok {
		st := *old
		st.Phase = cmp.Or(st.Phase, schemas.DAGPending)
		out := keepStatus(in, st, j, in.Object.Digest)
		if j.Reason == settle.ReasonAgentInvalid {
			tellNodes(out.Status.(*schemas.DAGStatus), j)
		}
		return out
	}
	f := goOn(in, p, old)
	if f == nil {
		f = newFold(in, p, old)
		f.run()
	}
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
		} else if why := profiles.Check(in.Tree.Settings().Profiles, &schemas.SpecAs[*schemas.AgentSpec](e.Object).Runner); why != "" {
			return settle.Judgement{Class: settle.ClassWaiting, Reason: settle.ReasonAgentInvalid,
				Message: fmt.Sprintf("waits until %s is put right: %s", schemas.AgentKind.Ref(name), why)}, true
		}
	}
	return settle.Judgement{}, false
}

// finish puts the status together.
func (f *fold) finish() settle.Out {
	st := &schemas.DAGStatus{Common: f.old.Common, Layers: f.p.Layers, Session: f.p.Spec.Session, Hold: f.hold,
		Actions: f.old.Actions}
	st.Nodes = f.nodes()
	n := f.counts()
	st.Progress = schemas.Progress{Done: n.done, Total: len(f.next)}
	st.Running, st.IssueStatus = n.running, f.issueStatus()
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
	f.leaveGroup(st)
	if f.timed != nil {
		f.closeSchedule(over(st))
		st.Schedule = f.timed
	}
	if over(st) {
		st.Advised = research.Advised(f.Tree, f.Entry)
	}
	notices, due := f.notify(st)
	out := settle.Out{Status: st, Effects: f.effects(notices), Restore: f.restores}
	if !over(st) && !f.again.IsZero() {
		out.Again, out.Await = f.again, true
	} else if !over(st) && !f.later.IsZero() {
		out.Again = f.later
	}
	if !due.IsZero() {
		out.Again, out.Await = due, true
	}
	f.wakeForSchedule(&out)
	f.keep(st, n)
	return out
}

// nodes returns the statuses by name, with the former ones where they do not differ.
func (f *fold) nodes() *schemas.NodeStatuses {
	if f.goesOn != nil {
		return f.goesOn.statuses(f)
	}
	sorted := make([]*schemas.NodeStatus, len(f.next))
	for k, i := range f.p.ByName {
		if sameNode(f.was[i], f.next[i]) {
			f.next[i] = f.was[i]
		}
		sorted[k] = f.next[i]
	}
	return f.old.Nodes.Next(f.p.Names, sorted)
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

// remind adds the records' news to the history.
func (f *fold) remind(st *schemas.DAGStatus) {
	runs := f.fresh
	if f.goesOn == nil {
		runs = f.Runs()
	}
	for _, r := range runs {
		f.history.AddRun("", r)
	}
	st.History = f.history.Entries()
}
