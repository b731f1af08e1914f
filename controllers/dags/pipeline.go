package dags

import (
	"fmt"
	"strings"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/preferences"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state"
)

// A node with a pipeline has succeeded when its commit was inspected and tested, and has landed. The inspector and the tester are
// effects of their own, in a checkout of the commit that the agent's run left; a verdict is about that commit and no other.
// Findings send the work back: the agent's session goes on in its workspace, and gets them. A landing that has other files
// than that commit, since the branch moved, is verified again.

// verifyKey is the key of the verifications of a node. It differs from the node's key, so that their records are not attempts.
func verifyKey(nodeKey string) string { return keys.Digest([]byte("verify " + nodeKey)) }

// verifications finds the records of verifications among those of node i, by the key of the run that was verified, and then by step.
func (f *fold) verifications(i int32, runs []*schemas.Run) map[string]map[string]*schemas.Run {
	if f.pipelineOf(i) == nil {
		return nil
	}
	found := map[string]map[string]*schemas.Run{}
	key := verifyKey(f.b.Keys[i])
	for _, r := range runs {
		if r.Verifies == "" || r.NodeKey != key {
			continue
		}
		v := &f.recs[i].verify
		if v.last == nil || v.last.Seq < r.Seq {
			v.last = r
		}
		if !f.isVerdict(v, r) {
			continue
		}
		of := found[r.Verifies]
		if of == nil {
			of = map[string]*schemas.Run{}
			found[r.Verifies] = of
		}
		if old := of[r.Step]; old == nil || old.Seq < r.Seq {
			of[r.Step] = r
		}
	}
	return found
}

// claimsVerification reports whether a claim is that of the next verification of node i's change.
func (f *fold) claimsVerification(i int32, c *state.Claim) bool {
	v := &f.recs[i].verify
	return v.of != nil && c.Step == v.step && c.Verifies == v.on.Key && c.NodeKey == verifyKey(f.b.Keys[i])
}

// takeVerified takes the verifications of a success with a commit, which land may have tried to land, and reports whether it counts as a success by now.
func (f *fold) takeVerified(i int32, run *schemas.Run, verified map[string]map[string]*schemas.Run, land *schemas.Run) bool {
	p, v, of := f.pipelineOf(i), &f.recs[i].verify, verified[run.Key]
	v.of, v.sentBack, v.held, v.doubts, v.verdicts, v.commit = nil, v.returned[run.Workspace.Tree], "", "", of, run.Workspace.Commit
	v.change, v.seq, v.tried, v.tests, v.proofs, v.fault = run.Workspace, run.Seq, nil, nil, nil, ""
	v.undecided, v.asks = nil, ""
	if v.sentBack != nil && f.ignoring(i, run.Workspace, v.sentBack.Step) != nil {
		v.sentBack = nil
	}
	if v.sentBack != nil {
		v.held = fmt.Sprintf("it is the same as a change that the %s sent back before: %s", stepAgent(v.sentBack.Step), shorten.Text(oneLine(checks.EvidenceOf(v.sentBack).Summary), 300))
		if v.verdicts == nil {
			v.verdicts = map[string]*schemas.Run{v.sentBack.Step: v.sentBack} // of the same files
		}
		return true
	}
	for _, step := range stepsOf(p) {
		record := of[step]
		if f.ignoring(i, run.Workspace, step) != nil {
			continue
		}
		if record == nil {
			v.awaits(run, run, step)
			return false
		}
		if step == schemas.StepWrite && testsOf(record) != nil {
			v.written = record
		}
		e := checks.EvidenceOf(record)
		if f.openQuestions(i, run, record, e) {
			return v.held != ""
		}
		switch {
		case record.Agent != "" && e.Outcome == checks.Unknown: // that is no fault of who made the change
			return f.asksAgain(i, run, record, "came to no verdict", e.Summary)
		case step == schemas.StepWrite:
			return f.takeTests(i, run, record, verified, land)
		case len(e.NotInstalled()) > 0: // its agent could not change that
			v.held = strings.Join(e.NotInstalled(), " and ") + " would have to be installed in its checkout; let workspaces.setup of the settings do that, and retry it"
			return true
		case e.Lets(p.AllowsNone(step)), step == schemas.StepTest && p.Tester != "" && e.Untested():
		default:
			return f.sendsBack(i, run, record)
		}
	}
	f.doubt(i, run.Workspace.Doubts)
	return true
}

// verifies reports whether the pipeline of node i has to see a run before it counts.
func (f *fold) verifies(i int32, run *schemas.Run) bool {
	w := run.Workspace
	return run.Outcome == schemas.OutcomeSucceeded && w != nil && w.Kind != schemas.WorkspaceInPlace && f.pipelineOf(i) != nil
}

// lets reports whether a success under a pipeline goes on to its landing, or has landed; if not, it has been taken.
func (f *fold) lets(i int32, run *schemas.Run, verified map[string]map[string]*schemas.Run, land *schemas.Run) bool {
	r, w := &f.recs[i], run.Workspace
	switch {
	case land != nil && land.Outcome == schemas.OutcomeSucceeded: // perhaps before there was a pipeline
		v := &r.verify
		of := verified[run.Key]
		if v.of, v.sentBack, v.change, v.seq, v.tried, v.held, v.doubts, v.verdicts, v.undecided = nil, nil, w, run.Seq, land, "", "", of, nil; len(of)+len(v.loops) > 0 {
			v.commit = w.Commit
		}
		if wrote := of[schemas.StepWrite]; wrote != nil && tookTests(wrote, verified[wrote.Key]) {
			v.tests, v.proofs = wrote, verified[wrote.Key]
		}
		return true
	case w.Commit == "" && r.verify.sentBack == nil:
		r.verify.of = nil
		return true // there was nothing to do
	case w.Commit == "":
		failed := *run
		failed.Message = "it took back its change after the " + stepAgent(r.verify.sentBack.Step) + " had sent it back"
		r.failures, r.failed, r.failedAt, r.last = r.failures+1, &failed, schemas.Later(r.failedAt, run.FinishedAt), &failed
		return false
	case f.takeVerified(i, run, verified, land):
		return true
	}
	r.reopen(run)
	return false
}

// judgeVerifying finds the state of a node whose work is done, and whose change is not verified yet.
func (f *fold) judgeVerifying(i int32) {
	v := &f.recs[i].verify
	v.wanted = false
	reason, what := settle.ReasonInspecting, "inspected"
	if stepAgent(v.step) == schemas.RoleTester {
		reason, what = settle.ReasonTesting, "tested"
	}
	if v.on != v.of {
		reason, what = settle.ReasonTesting, what+" with the tests of agent/"+v.on.Agent
	} else if agent := verifier(f.pipelineOf(i), v.step); agent != "" {
		what = map[string]string{schemas.StepReview: "reviewed", schemas.StepWrite: "given tests"}[v.step] + " by agent/" + agent
	}
	switch {
	case v.claim != nil:
		f.set(i, schemas.NodeRunning, reason, "its change is being "+what)
		v.wanted = f.gate.Keep
	case f.heldByAction(i):
	case !f.gate.Open:
		f.set(i, schemas.NodePending, f.gate.Reason, f.gate.Message)
	case v.asks != "":
		f.set(i, schemas.NodePending, reason, "its change waits for "+v.asks)
	case f.waitsForVerifier(i):
	default:
		f.set(i, schemas.NodeQueued, reason, "its change waits until it can be "+what)
		v.wanted = true
	}
}

// verifyEffect is the effect that does the next step for the change of node i.
func (f *fold) verifyEffect(i int32) settle.Effect {
	v, p := &f.recs[i].verify, f.pipelineOf(i)
	e := f.b.Effect(f.p, i, verifier(p, v.step))
	e.NodeKey, e.Seq, e.Touches, e.Holds = verifyKey(f.b.Keys[i]), 1, nil, e.Touches
	if v.claim != nil {
		e.Key, e.Seq = v.claim.Key, v.claim.Seq
		return e
	}
	if v.last != nil {
		e.Seq = v.last.Seq + 1
	}
	e.Seq = max(e.Seq, v.other+1)
	e.Key = effectKey(f.p.Name, e.Node, e.NodeKey, e.Seq)
	if e.Agent != "" {
		f.review(i, &e)
		return e
	}
	c, w := f.b.Command(f.p, i, f.agentOf(i)), v.on.Workspace
	task := &settle.Verify{Run: v.on.Key, Step: v.step, Commit: w.Commit, Args: append(settle.VerifyArgs(p, v.step), "--base", w.Base),
		Env: preferences.WithTools(c.Env, f.Tree, f.p.Spec.Session), EnvFrom: c.EnvFrom, Sandbox: f.confinement(i, v.on)}
	if v.on != v.of && v.step == schemas.StepTest {
		task.Args = append(settle.VerifyArgs(p, v.step), "--diagnose", "--base", v.of.Workspace.Base)
	}
	e.Task = task
	return e
}

// feedback describes a change that was sent back, for the agent of node i.
func (f *fold) feedback(i int32) *agentio.Feedback {
	v := &f.recs[i].verify
	if v.sentBack == nil {
		return nil
	}
	e := checks.EvidenceOf(v.sentBack)
	by := stepAgent(v.sentBack.Step)
	return &agentio.Feedback{From: by, Loop: f.loops(i, by), Most: f.pipelineOf(i).Loops(), Summary: e.Summary, Text: e.Text()}
}

// loops is how often a role has sent the change of node i back. Once that is the most, a person decides in its place.
func (f *fold) loops(i int32, role string) int {
	return min(f.recs[i].verify.loops[role], f.pipelineOf(i).Loops())
}

// pipelineStatus says how far the pipeline of node i is; nil without one.
func (f *fold) pipelineStatus(i int32) *schemas.PipelineStatus {
	if f.pipelineOf(i) == nil {
		return nil
	}
	v, s, was := &f.recs[i].verify, f.next[i], f.was[i]
	if v.last == nil && v.of == nil && was.Key == s.Key && was.Pipeline != nil && s.State == was.State {
		return was.Pipeline // its records were pruned
	}
	out := &schemas.PipelineStatus{State: schemas.PipelineRunning, InspectorLoops: f.loops(i, schemas.RoleInspector), TesterLoops: f.loops(i, schemas.RoleTester), Commit: v.commit}
	shown := map[string]*string{schemas.StepInspect: &out.Inspected, schemas.StepReview: &out.Reviewed, schemas.StepTest: &out.Tested, schemas.StepWrite: &out.Written}
	for _, step := range stepsOf(f.pipelineOf(i)) {
		record, to := v.verdicts[step], shown[step]
		if with := v.proofs[step]; with != nil && step == schemas.StepTest {
			record = with
		}
		if record != nil {
			e := checks.EvidenceOf(record)
			*to = strings.TrimSpace(string(e.Outcome) + ": " + e.Summary)
		}
		if v.change != nil {
			*to = strings.TrimPrefix(*to+"; "+ignoredBy(f.ignoring(i, v.change, step)), "; ")
			*to = strings.TrimSuffix(*to, "; ")
		}
	}
	switch {
	case s.State == schemas.NodeFailed, s.State == schemas.NodeCancelled:
		out.State = schemas.PipelineFailed
	case v.of != nil && (v.on != v.of || stepAgent(v.step) == schemas.RoleTester):
		out.State = schemas.PipelineTesting
	case v.of != nil:
		out.State = schemas.PipelineInspecting
	case s.Reason == settle.ReasonWaitsForApproval && v.held+v.doubts != "":
		out.State = schemas.PipelineWaiting
	case s.State == schemas.NodeSucceeded && v.commit == "":
		return nil // it changed nothing, or had landed before there was a pipeline
	case s.State == schemas.NodeSucceeded, f.recs[i].land.of != nil:
		out.State = schemas.PipelineCompleted
	case v.commit == "" && f.recs[i].last == nil && f.recs[i].claim == nil:
		return nil // it has not begun
	}
	if v.change != nil && !v.landed() && out.State != schemas.PipelineCompleted && out.State != schemas.PipelineFailed {
		out.Digest, out.Undecided = f.shownCommit(v.change), v.undecided
	}
	return out
}
