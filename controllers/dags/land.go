package dags

import (
	"cmp"
	"fmt"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/preferences"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// landRetries is how often a node is run again because its commit could not land, unless its retry limit is larger.
const landRetries = 3

// landKey is the key of the landings of a node. It differs from the node's key, so that their records are not attempts.
func landKey(nodeKey string) string { return keys.Digest([]byte("land " + nodeKey)) }

// landings finds the records of landings among those that begin with the node's, by the key of the run that was landed.
func (f *fold) landings(i int32, runs []*schemas.Run) map[string]*schemas.Run {
	if len(f.p.Agents) == 0 {
		return nil // only agents have workspaces
	}
	var found map[string]*schemas.Run
	key := ""
	for _, r := range runs {
		if r.Node != f.p.Spec.Nodes[i].Name {
			break
		}
		if r.Lands == "" {
			continue
		}
		if key == "" {
			key = landKey(f.b.Keys[i])
		}
		if r.NodeKey != key {
			continue
		}
		if found == nil {
			found = map[string]*schemas.Run{}
		}
		if old := found[r.Lands]; old == nil || old.Seq < r.Seq {
			found[r.Lands] = r
		}
		if last := f.recs[i].land.last; last == nil || last.Seq < r.Seq {
			f.recs[i].land.last = r
		}
	}
	return found
}

// claimsLanding reports whether a claim is that of the node's landing.
func (f *fold) claimsLanding(i int32, c *state.Claim) bool {
	return f.recs[i].land.of != nil && c.NodeKey == landKey(f.b.Keys[i])
}

// judgeLanding finds the state of a node whose work is done, and whose commit has yet to land.
func (f *fold) judgeLanding(i int32) {
	r, was := &f.recs[i], f.was[i]
	why, known := f.World.NotCommitted(f.Ref, f.p.Spec.Nodes[i].Name)
	if !known && was.Reason == settle.ReasonTreeDirty && was.Key == f.b.Keys[i] {
		why = was.Message
	}
	r.land.wanted = false
	switch {
	case r.land.claim != nil:
		f.set(i, schemas.NodeRunning, settle.ReasonLanding, "its commit is being landed")
		r.land.wanted = f.gate.Keep
	case f.heldByAction(i):
	case !f.gate.Open:
		f.set(i, schemas.NodePending, f.gate.Reason, f.gate.Message)
	case why != "":
		f.set(i, schemas.NodeBlocked, settle.ReasonTreeDirty, why)
	default:
		f.set(i, schemas.NodeQueued, settle.ReasonLanding, "its commit waits until it can land")
		r.land.wanted = true
	}
}

// landed is the state of the commit of the node's latest success in the status.
func (f *fold) landed(i int32) *schemas.Landed {
	r := &f.recs[i]
	switch last := r.land.last; {
	case r.land.of != nil && f.next[i].Reason == settle.ReasonTreeDirty:
		return &schemas.Landed{Status: schemas.False, Reason: schemas.LandedDirty}
	case r.land.of != nil && f.next[i].Reason == settle.ReasonWaitsForApproval:
		return &schemas.Landed{Status: schemas.False, Reason: schemas.LandedHeld}
	case r.land.of != nil:
		return &schemas.Landed{Status: schemas.False, Reason: schemas.LandedSoon}
	case r.refused != nil:
		return &schemas.Landed{Status: schemas.False, Reason: schemas.LandedRefused}
	case r.unlanded > 0:
		return &schemas.Landed{Status: schemas.False, Reason: reasonOf(last)}
	case r.last == nil:
		if was := f.was[i]; was.Key == f.b.Keys[i] {
			return was.Landed // its records were pruned
		}
	case !r.won || r.last.Workspace == nil || r.last.Workspace.Kind == schemas.WorkspaceInPlace:
	case r.last.Workspace.Commit == "":
		return &schemas.Landed{Status: schemas.True, Reason: schemas.LandedNoChange}
	case last != nil && last.Workspace != nil:
		return &schemas.Landed{Status: schemas.True, Reason: reasonOf(last), Commit: last.Workspace.Commit}
	}
	return nil
}

// refusal says why the commit of node i was refused, and what a person can do.
func (f *fold) refusal(i int32) string {
	n := f.p.Spec.Nodes[i].Name
	return fmt.Sprintf("%s; to have it done again: reconcile retry %s %s, after reconcile task %s:%[3]s prompt TEXT; or take what is right from the branch "+
		"%[5]s yourself, then reconcile skip %[2]s %[3]s", f.recs[i].refused.Message, f.Ref, n, f.Ref, f.branch(n))
}

func reasonOf(land *schemas.Run) string {
	if land == nil || land.Workspace == nil {
		return schemas.LandedRefused
	}
	return cmp.Or(land.Workspace.Reason, schemas.LandedRefused)
}

// landEffect is the effect that lands the commit of node i.
func (f *fold) landEffect(i int32) settle.Effect {
	n, r := &f.p.Spec.Nodes[i], &f.recs[i]
	session := f.b.SessionSpec()
	e := f.b.Effect(f.p, i, f.agentOf(i))
	e.NodeKey, e.Seq, e.Agent, e.Touches, e.Holds = landKey(f.b.Keys[i]), 1, "", nil, e.Touches
	e.Groups = []settle.Group{{Name: settle.LandGroup + session.Branch, Limit: 1}}
	if r.land.claim != nil {
		e.Key, e.Seq = r.land.claim.Key, r.land.claim.Seq
		return e
	}
	if r.land.last != nil {
		e.Seq = r.land.last.Seq + 1
	}
	e.Key = effectKey(f.p.Name, n.Name, e.NodeKey, e.Seq)
	w, c := r.land.of.Workspace, f.b.Command(f.p, i, f.agentOf(i))
	confined := f.confinement(i, r.verify.tests)
	land := &settle.Land{Sandbox: confined, Run: r.land.of.Key, Workspace: w.Name, Base: w.Base, Commit: w.Commit, Target: session.Branch, Files: w.Files,
		Whole: len(w.Files) == w.Changed, Checks: f.landChecks(n), EnvFrom: c.EnvFrom,
		Env:    preferences.WithTools(c.Env, f.Tree, f.p.Spec.Session),
		Bounds: agents.Bounds(f.Tree, f.Entry, n.Name, f.agentOf(i))}
	if f.p.Spec.Fixes != "" {
		land.Within = n.Touches
	}
	if p := f.pipelineOf(i); p != nil && r.verify.held == "" {
		if land.Tree, land.Tests = w.Tree, testsOf(r.verify.tests); land.Tests != nil {
			land.Tree, land.Whole = r.verify.tests.Workspace.Tree, false
		}
		for _, step := range []string{schemas.StepInspect, schemas.StepTest} {
			v := settle.Verification{Step: step, Args: settle.VerifyArgs(p, step), AllowNone: p.AllowsNone(step)}
			if record := r.verify.verdicts[step]; record != nil && f.ignoring(i, w, step) != nil {
				v.Taken, _ = checks.EvidenceOf(record).Objections()
			}
			land.Verify = append(land.Verify, v)
		}
	}
	e.Task = land
	return e
}

// landChecks are the checks of the node, else of its session.
func (f *fold) landChecks(n *schemas.Node) [][]string {
	switch session := f.b.SessionSpec(); {
	case n.Land != nil:
		return n.Land.Checks
	case session.Land != nil:
		return session.Land.Checks
	}
	return nil
}

// workspace is where the agent of node i works; nil for the tree itself.
func (f *fold) workspace(i int32) *settle.Workspace {
	n := &f.p.Spec.Nodes[i]
	kind, declared := f.b.Agent(f.p, f.agentOf(i)).WorkspaceKind()
	if kind == schemas.WorkspaceInPlace {
		return nil
	}
	before := f.b.BeforeRetry(f.p, i)
	if before != "" {
		before = keys.OfRuns(f.p.Name, n.Name, before)
	}
	spec := f.Object.Path
	if f.p.Spec.Fixes != "" {
		spec = "" // reconcile has just written it
	}
	return &settle.Workspace{Measure: f.previewOf(i) != nil, Verified: f.pipelineOf(i) != nil, Before: before, Kind: kind, Declared: declared || f.pipelineOf(i) != nil, Target: f.b.SessionSpec().Branch, Spec: spec, Inputs: n.Inputs,
		Branch: f.branch(n.Name), Attempts: keys.OfRuns(f.p.Name, n.Name, f.b.Keys[i])}
}

// branch is where the commits of a node are before they land.
func (f *fold) branch(node string) string {
	return "reconcile/" + f.p.Spec.Session + "/" + f.p.Name + "/" + node
}

// confinement is how the tools are confined that run what the agent of node i wrote, and a run of another one, which may be nil: as the
// agent of node i is, and if it is not, as the other one.
func (f *fold) confinement(i int32, other *schemas.Run) *settle.Sandbox {
	c := agents.Sandbox(f.b.Agent(f.p, f.agentOf(i)), nil, f.workspace(i))
	if (c == nil || c.Level == schemas.SandboxNone) && other != nil && other.Verifies != "" {
		return agents.Sandbox(f.b.Agent(f.p, other.Agent), nil, &settle.Workspace{Kind: schemas.WorkspaceClone})
	}
	return c
}
