package dags

import (
	"encoding/json"
	"time"

	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/planchanges"
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
	// rounds are those of the nodes in loops; nil for a DAG without a loop. turning are the loops whose next round begins.
	rounds  []int
	turning []*plan.Loop
	began   schemas.Time // the first start in rounds that have ended, if the status does not have it
	// approved are the approvals of nodes that got one now, given the answers of people that came now.
	approved map[int32][]schemas.Approval
	given    map[int32]json.RawMessage
	// handoffs are those of nodes about which people said something now.
	handoffs map[int32]*schemas.Handoffs
	// late says that the answer of the DAG is not waited for any more; "" if it is.
	late string
	// inputs are the digests of the declared inputs. Where the tree does not tell one, the last one stands: a run must
	// not start because something could not be looked at.
	inputs []string
	// tools are the versions of the declared tools, in the same way; untold says why one is not known, by node.
	tools  []map[string]string
	untold map[int32]string

	// questions are the requests that nodes of the DAG made, of all keys.
	questions []*clarifications.Question
	// escalations are the blockers of nodes of the DAG.
	escalations []planchanges.Escalation

	// restores are the missing outputs that are to be written back now.
	restores []settle.Restore
	reruns   bool // some node runs, or is to run, again for its outputs

	goesOn *kept            // the decision that this one goes on from; nil where all nodes are judged
	fresh  []*schemas.Run   // the records that are new since then
	wants  []*settle.Effect // by node; nil for one that does not want to run

	recs []nodeRecord
	next []*schemas.NodeStatus
	want []bool
	keys []string // of the former binding
	// start is when the present generation of work started: the first start after the DAG was new, or had ended and
	// was changed. Zero: not yet.
	start schemas.Time
	// active are the times that count for the DAG's time limit, callTimes those of each call with one. callsOver are the calls whose
	// time is over, by the nodes that end for that and those that call.
	active    []schemas.Span
	callTimes [][]schemas.Span
	callsOver map[int32]*plan.Call
	applied   []schemas.AppliedAction
	acted     bool   // an action was applied now
	resumes   string // limits.resume of the settings
	again     time.Time
	later     time.Time // as again, but a one-shot run does not wait for it
	history   settle.History
	// choices has who works on a node, where that is not simply the agent that it names; nil for none.
	choices map[int32]choice
	group   *schemas.GroupStatus    // the new one; nil without a concurrency group
	cancels string                  // the DAG of the group that cancels this one; "" for none
	timed   *schemas.ScheduleStatus // the new one; nil without a schedule
}

// kept is what a decision leaves for the next one.
type kept struct {
	fold *fold
	// from is the status before the decision, and made the one that it made: the tree has either, if they are equal.
	from, made *schemas.DAGStatus
	counts     nodeCounts
	effects    []*settle.Effect // by node; nil for one that does not want to run
	runs       []*schemas.Run
	claimed    []string  // the nodes with claims
	moved      []int32   // the nodes whose statuses changed in the last decision that went on
	neededBy   [][]int32 // the nodes that need a node
}

// nodeCounts counts nodes by what matters to the phase.
type nodeCounts struct {
	done, running, queued, pending, blocked, failed, cancelled int

	firstBlocked, firstFailed int // positions, in execution order; -1: none
	timedOut                  bool
}

// choice is the agent of a node, where that is not simply the one that it names.
type choice struct {
	agent   string
	instead *schemas.Instead // nil: it is the agent that the node names
	probe   bool             // it is the one run that is tried while a breaker is half open
}

// nodeRecord has the claims and records of a node under its present key.
type nodeRecord struct {
	claim    *state.Claim // the run that is under way or about to be
	former   *state.Claim // a run under a former key that has not ended, or is about to start
	won      bool         // one succeeded
	wonAt    int          // the number of the latest success on record
	again    bool         // and its outputs are missing and needed: it has to run again
	before   int          // attempts up to the latest success
	failures int          // attempts since then that are used up
	failedAt schemas.Time // When the last of these ended
	last     *schemas.Run // the latest record that counts
	seq      int          // the number of the latest record
	failed   *schemas.Run // the latest of these attempts; nil for none, or where its record was pruned
	limits   int          // runs that ended with a rate limit whose end is known; they use up no attempt
	limited  *schemas.Run // the latest run, if it is one of these
	asked    int          // runs that ended with a question; they use up no attempt
	// unpermitted counts the runs that ended because they waited for a permission; they use up no attempt.
	unpermitted int
	handoffs    int          // runs that handed the rest of the task off; they use up no attempt
	handoff     *schemas.Run // the latest of these; nil for none
	handed      []*schemas.Run
	pauses      bool // the latest one did
	// questions are the requests of the node under its present key, in the order of the runs that made them.
	questions []*clarifications.Question
	// kept is the latest run that waits for a permission, or handed the rest off: its changes are committed, and the work continues there.
	kept *schemas.Run
	// reopened is the latest success that does not count, since a text of a person waited, or its change was sent back; the work goes
	// on in its session.
	reopened *schemas.Run
	// unlanded counts the successes since the latest one on record whose commits could not land.
	unlanded int
	// refused is the landing of the latest success, if it was refused: that waits for a person, and uses up no attempt.
	refused *schemas.Run
	land    landing
	verify  verifying
	// since is the earliest start that the status does not have; zero without one.
	since schemas.Time
}

// attempts counts those that have ended.
func (r *nodeRecord) attempts() int { return r.before + r.failures + r.unlanded }

// running reports whether a process runs for the node under its present key.
func (r *nodeRecord) running() bool { return r.claim != nil && !r.claim.StartedAt.IsZero() }

// formerRuns reports whether a process runs for the node under a former key.
func (r *nodeRecord) formerRuns() bool { return r.former != nil && !r.former.StartedAt.IsZero() }

func (f *fold) set(i int32, state, reason, message string) {
	s := f.next[i]
	s.State, s.Reason, s.Message, s.QueuedAt = state, reason, message, schemas.Time{}
	f.want[i] = false
}

// stop gives the node a final state, once nothing runs for it any more.
func (f *fold) stop(i int32, final, reason, message string) {
	r, why := &f.recs[i], ""
	if message != "" {
		why = ": " + message
	}
	switch {
	case (r.running() || r.formerRuns()) && f.verbs[i] == verbKill:
		f.set(i, schemas.NodeRunning, settle.ReasonKilling, "its run is being killed"+why)
	case r.running() || r.formerRuns():
		f.set(i, schemas.NodeRunning, settle.ReasonEnding, "its run is being ended"+why)
	default:
		f.set(i, final, reason, message)
	}
}

// heldByAction reports whether an action holds back the next step of node i; if so, it has set the state.
func (f *fold) heldByAction(i int32) bool {
	if f.verbs[i] != schemas.VerbHold {
		return false
	}
	f.set(i, schemas.NodeBlocked, settle.ReasonHeld, "an action holds it; approve it to go on")
	return true
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

// lastEnd is when the last run of a node ended.
func (f *fold) lastEnd() schemas.Time {
	var at schemas.Time
	for i := range f.next {
		at = schemas.Later(at, f.next[i].FinishedAt)
	}
	return at
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

// Verbs in force on nodes that no action has.
const (
	verbCleanup = "cleanup" // on a cleanup whose DAG was cancelled as a whole
	verbKill    = "kill"    // cancelled, and what runs is killed
	verbEnd     = "end"     // cancelled, and what runs ends by itself
	verbAgain   = "again-"  // begins the verb of a node that runs again under its key, after its success of the number that follows
)

// landing is how far the commit of a node's success is on its way to the branch. The node has succeeded when it has landed.
type landing struct {
	of     *schemas.Run // the success whose commit has yet to land; nil for none
	claim  *state.Claim // the landing that is under way or about to be
	last   *schemas.Run // the latest record of a landing under the node's present key
	wanted bool         // it is to land now
}

// verifying is how far the change of a node's latest success is verified.
type verifying struct {
	of     *schemas.Run // the success whose commit has yet to be verified; nil for none
	on     *schemas.Run // the run whose commit the next step is about: that one, or the one that wrote tests of its commit
	step   string       // the step that comes next
	claim  *state.Claim // the verification that is under way or about to be
	last   *schemas.Run // the latest record of one under the node's present key
	wanted bool         // it is to be done now
	// loops count how often the inspector and the tester sent a change back, and sentBack is the verification that did so with the latest
	// change; nil for none. back are all that did so.
	loops    map[string]int
	sentBack *schemas.Run
	back     []*schemas.Run
	returned map[string]*schemas.Run // why changes were sent back, by the digests of their files
	held     string                  // why a person has to decide about the change
	doubts   string                  // the same, for one that passed
	// undecided are the questions about tools that the change waits for, and asks names the DAG that asks them; "" if only a person can answer.
	undecided []schemas.ToolQuestion
	asks      string
	// verdicts are the latest of each step, about commit.
	verdicts map[string]*schemas.Run
	commit   string
	// asked count the verifications by agents, by agent and run, and limits those that met a rate limit.
	asked  map[string]int
	limits int
	// tests are the run that wrote the tests of the latest change, as far as they land with it, and proofs what verified them, by step. fault says
	// why they are to be written again; "" if they are not.
	tests  *schemas.Run
	proofs map[string]*schemas.Run
	fault  string
	// written is the latest run that wrote tests of any change, and given those whose tests the agent that makes the changes has seen run.
	written *schemas.Run
	given   []*schemas.Run
	// change is the latest change for verification, of the run with the number seq; nil for none.
	change *schemas.RunWorkspace
	seq    int
	// tried is the landing of change that has ended; nil for none.
	tried *schemas.Run
	// other is the greatest number of a verification that runs and is not wanted any more.
	other int
}

// landed reports whether the latest change is on the branch.
func (v *verifying) landed() bool {
	return v.tried != nil && v.tried.Outcome == schemas.OutcomeSucceeded
}

// reopen takes a success that does not count.
func (r *nodeRecord) reopen(run *schemas.Run) {
	r.won, r.land.of, r.reopened = false, nil, run
	if r.last == nil || run.Seq > r.last.Seq {
		r.last, r.pauses, r.limited = run, false, nil
	}
}

// testsSuffix ends the branch that has the tests of the commit of a node.
const testsSuffix = ".tests"

// testsOf are the tests that a run wrote; nil for none.
func testsOf(r *schemas.Run) *settle.Tests {
	if r == nil || r.Workspace == nil || r.Workspace.Commit == "" {
		return nil
	}
	return &settle.Tests{Run: r.Key, Agent: r.Agent, Base: r.Workspace.Base, Commit: r.Workspace.Commit}
}

// effectKey names the effect of a DAG's node and the record of it.
func effectKey(dag, node, key string, seq int) string {
	return keys.OfEffect(schemas.DAGKind, dag, node, key, seq)
}
