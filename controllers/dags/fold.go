package dags

import (
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// fold is the state of a decision about one DAG: the former status, the records, and the new status. Slices are by node, by
// position in the spec.
type fold struct {
	settle.In
	p      *plan.Plan
	b      *plan.Binding
	gate   sessions.Gate
	old    *schemas.DAGStatus
	was    []*schemas.NodeStatus // never nil; shared, not to be changed
	limits []schemas.Retry

	// What actions hold in force.
	gens  []int
	verbs []string
	hold  string
	// inputs are the digests of the declared inputs. Where the tree does not tell one, the last one stands: a run must
	// not start because something could not be looked at.
	inputs []string

	// questions are the requests that nodes of the DAG made, of all keys.
	questions []*clarifications.Question

	// restores are the missing outputs that are to be written back now.
	restores []settle.Restore
	reruns   bool // some node runs, or is to run, again for its outputs

	recs []record
	next []schemas.NodeStatus
	want []bool
	keys []string // of the former binding
	// start is when the present generation of work started: the first start after the DAG was new, or had ended and
	// was changed. Zero: not yet.
	start schemas.Time
	// active are the times that count for the DAG's time limit.
	active  []schemas.Span
	applied []schemas.AppliedAction
	acted   bool   // an action was applied now
	resumes string // limits.resume of the settings
	again   time.Time
	later   time.Time // as again, but a one-shot run does not wait for it
	history settle.History
}

// record has the claims and records of a node under its present key.
type record struct {
	claim    *state.Claim // the run that is under way or about to be
	other    bool         // a run under a former key has not ended yet
	won      bool         // one succeeded
	wonAt    int          // the number of the latest success on record
	again    bool         // and its outputs are missing and needed: it has to run again
	before   int          // attempts up to the latest success
	failures int          // attempts since then that are used up
	failedAt schemas.Time // When the last of these ended
	last     *schemas.Run // the latest record
	failed   *schemas.Run // the latest of these attempts; nil for none, or where its record was pruned
	limits   int          // runs that ended with a rate limit whose end is known; they use up no attempt
	limited  *schemas.Run // the latest run, if it is one of these
	asked    int          // runs that ended with a question; they use up no attempt
	// unpermitted counts the runs that ended because they waited for a permission; they use up no attempt.
	unpermitted int
	handoffs    int          // runs that handed the rest of the task off; they use up no attempt
	handoff     *schemas.Run // the latest of these; nil for none
	pauses      bool         // the latest one did
	// questions are the requests of the node under its present key, in the order of the runs that made them.
	questions []*clarifications.Question
	// unheard is the latest success after which a text of a person waited; the work goes on in its session.
	unheard *schemas.Run
	// unlanded counts the successes since the latest one on record whose commits could not land.
	unlanded int
	land     landing
	// since is the earliest start that the status does not have; zero without one.
	since schemas.Time
}

// attempts counts those that have ended.
func (r *record) attempts() int { return r.before + r.failures + r.unlanded }

// running reports whether a process runs for the node under its present key.
func (r *record) running() bool { return r.claim != nil && !r.claim.StartedAt.IsZero() }

func (f *fold) set(i int32, state, reason, message string) {
	s := &f.next[i]
	s.State, s.Reason, s.Message, s.QueuedAt = state, reason, message, schemas.Time{}
	f.want[i] = false
}

// stop gives the node a final state, once nothing runs for it any more.
func (f *fold) stop(i int32, final, reason, message string) {
	if r := &f.recs[i]; r.running() || r.other {
		f.set(i, schemas.NodeRunning, settle.ReasonEnding, "its run is being ended: "+message)
		return
	}
	f.set(i, final, reason, message)
}

func (f *fold) wake(at time.Time) {
	if f.again.IsZero() || at.Before(f.again) {
		f.again = at
	}
}

// ended reports whether a DAG in this phase has nothing left to do.
func ended(phase string) bool {
	return phase == schemas.DAGSucceeded || phase == schemas.DAGFailed || phase == schemas.DAGCancelled
}

// over reports whether a DAG has ended and nothing of it waits any more. A Failed one without an end has nodes that wait.
func over(st *schemas.DAGStatus) bool {
	return ended(st.Phase) && (st.Phase != schemas.DAGFailed || !st.FinishedAt.IsZero())
}

// reopened reports whether the DAG was over and something that decides about it has changed since.
func (f *fold) reopened() bool {
	if !over(f.old) {
		return false
	}
	if f.acted || f.reruns || f.old.ObservedDigest != f.Object.Digest {
		return true
	}
	for i, key := range f.b.Keys {
		if f.was[i].Key != key {
			return true
		}
	}
	return false
}

// verbCleanup is in force on a cleanup whose DAG was cancelled as a whole.
const verbCleanup = "cleanup"

// landing is how far the commit of a node's success is on its way to the branch. The node has succeeded when it has landed.
type landing struct {
	of     *schemas.Run // the success whose commit has yet to land; nil for none
	claim  *state.Claim // the landing that is under way or about to be
	last   *schemas.Run // the latest record of a landing under the node's present key
	wanted bool         // it is to land now
}

// effectKey names the effect of a DAG's node and the record of it.
func effectKey(dag, node, key string, seq int) string {
	return keys.OfEffect(schemas.DAGKind, dag, node, key, seq)
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
