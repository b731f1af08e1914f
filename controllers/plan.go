package controllers

import (
	"fmt"
	"slices"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Verbs of a step.
const (
	StepRestore = "restore" // missing outputs of a success would be written back
	StepRun     = "run"     // a node would run, now or after others succeeded
	StepSkip    = "skip"    // a node would be skipped
	StepCancel  = "cancel"  // a node would be cancelled, or its run ended
	StepWrite   = "write"   // the status would change
	StepRemove  = "remove"  // the status and the records would go
)

// Step is one thing that a run would do, and why.
type Step struct {
	Ref  schemas.Ref
	Node string
	Verb string
	Why  string
}

// Plan lists what a run over the tree would do. The results of commands are unknown, so nodes after others are listed
// as if those succeeded. Work that no run can start now is not listed: nodes of a paused session or DAG, and nodes
// after a blocked one; [Why] explains them.
func Plan(t *state.Tree, now time.Time) []Step {
	d := Settle(t, now, nil)
	var steps []Step
	for _, k := range TableOf(t) {
		for _, e := range t.Entries(k.Name) {
			out, decided := d.Outs[e.Ref]
			if !decided {
				continue
			}
			changed := slices.Contains(d.Changed, e.Ref)
			steps = append(steps, objectSteps(&k, e, out, changed)...)
		}
	}
	return steps
}

func objectSteps(k *Kind, e *state.Entry, out Out, changed bool) []Step {
	var steps []Step
	switch {
	case out.Status == nil && e.HasStatus() && e.Gone():
		return []Step{{Ref: e.Ref, Verb: StepRemove, Why: "its spec is gone"}}
	case out.Status == nil && e.HasStatus():
		return []Step{{Ref: e.Ref, Verb: StepRemove, Why: "nothing is wrong with it any more"}}
	case changed && !e.HasStatus():
		steps = []Step{{Ref: e.Ref, Verb: StepWrite, Why: "it is new"}}
	case changed:
		steps = []Step{{Ref: e.Ref, Verb: StepWrite, Why: whyWrite(e, out.Status)}}
	}
	for _, r := range out.Restore {
		steps = append(steps, Step{Ref: e.Ref, Node: r.Node, Verb: StepRestore, Why: r.why()})
	}
	if k.Steps != nil {
		return append(steps, k.Steps(e, out)...)
	}
	for i := range out.Effects {
		if f := &out.Effects[i]; claimOf(e, f.Key) == nil {
			steps = append(steps, Step{Ref: e.Ref, Node: f.Node, Verb: StepRun, Why: "has not run yet"})
		}
	}
	return steps
}

// askSteps lists the run of the agent that would be asked, now or when the time of a failure is over.
func askSteps(e *state.Entry, out Out) []Step {
	spec := requestSpec(e)
	st, ok := out.Status.(*schemas.ClarificationRequestStatus)
	if spec == nil || !ok {
		return nil
	}
	asks := Step{Ref: e.Ref, Verb: StepRun, Node: fmt.Sprintf("round_%d", st.Round),
		Why: fmt.Sprintf("asks %s for %s: %s", spec.To, spec.From, spec.Topic)}
	for i := range out.Effects {
		if asks.Node = out.Effects[i].Node; claimOf(e, out.Effects[i].Key) == nil {
			return []Step{asks}
		}
	}
	if out.Await && len(out.Effects) == 0 {
		asks.Why += "; the next attempt is due at " + out.Again.Format(time.RFC3339)
		return []Step{asks}
	}
	return nil
}

func whyWrite(e *state.Entry, now schemas.Status) string {
	was, is := e.Status().Base(), now.Base()
	switch {
	case was.Phase != is.Phase:
		return fmt.Sprintf("it becomes %s, from %s", is.Phase, was.Phase)
	case was.ObservedDigest != is.ObservedDigest:
		return "its spec changed"
	}
	if a, b := was.Condition(schemas.Ready), is.Condition(schemas.Ready); a != nil && b != nil && a.Reason != b.Reason {
		return fmt.Sprintf("%s: %s", b.Reason, b.Message)
	}
	return "its status changed"
}

// nodeSteps lists what would become of the nodes that are not at their end, in execution order.
func nodeSteps(e *state.Entry, out Out) []Step {
	st, ok := out.Status.(*schemas.DAGStatus)
	if !ok || e.Object == nil {
		return nil
	}
	p := planOf(e.Object)
	var was map[string]schemas.NodeStatus
	if old, ok := e.Status().(*schemas.DAGStatus); ok {
		was = old.Nodes
	}
	runs, waits := map[string]bool{}, map[string]bool{}
	shut := letsNothingStart(st.Nodes)
	var steps []Step
	for _, i := range p.order {
		n := &p.spec.Nodes[i]
		s := st.Nodes[n.Name]
		step := Step{Ref: e.Ref, Node: n.Name}
		if waits[n.Name] = keepsWaiting(n, s, shut, waits); waits[n.Name] {
			continue
		}
		switch s.State {
		case schemas.NodePending, schemas.NodeQueued:
			runs[n.Name] = true
			step.Verb, step.Why = StepRun, whyRun(n, s, was, runs, st.Nodes, p.retries[i].Limit)
		case schemas.NodeRunning:
			if s.Reason != ReasonEnding {
				continue
			}
			step.Verb, step.Why = StepCancel, s.Message
		case schemas.NodeSkipped, schemas.NodeCancelled:
			if was[n.Name].State == s.State {
				continue
			}
			step.Verb, step.Why = StepSkip, s.Message
			if s.State == schemas.NodeCancelled {
				step.Verb = StepCancel
			}
		default:
			continue
		}
		steps = append(steps, step)
	}
	return steps
}

// letsNothingStart reports whether the DAG or its session is paused, say: only then is a node pending with a reason.
func letsNothingStart(nodes map[string]schemas.NodeStatus) bool {
	for _, s := range nodes {
		if s.State == schemas.NodePending && s.Reason != "" {
			return true
		}
	}
	return false
}

// keepsWaiting reports whether no run can start the node now: it is blocked, or pending in a paused DAG, or after a
// node in waits.
func keepsWaiting(n *schemas.Node, s schemas.NodeStatus, shut bool, waits map[string]bool) bool {
	switch s.State {
	case schemas.NodeBlocked:
		return true
	case schemas.NodePending:
		return shut || slices.ContainsFunc(n.Needs, func(need string) bool { return waits[need] })
	}
	return false
}

// whyRun explains why a node has to run: which part of its key changed, or which node runs first.
func whyRun(n *schemas.Node, s schemas.NodeStatus, was map[string]schemas.NodeStatus, runs map[string]bool,
	now map[string]schemas.NodeStatus, retries int) string {
	old, known := was[n.Name]
	why := ""
	switch {
	case !known || old.Key == "":
		why = "never ran"
	case old.Generation != s.Generation:
		why = "retried by an action"
	case old.Key == s.Key && s.Reason == ReasonOutputsMissing:
		why = s.Message
	case old.Key == s.Key && old.State == schemas.NodeSucceeded:
		why = "runs again: outputs of its success are not here"
	case old.Key == s.Key && s.Attempts > 0:
		why = fmt.Sprintf("retry %d of %d", s.Attempts, retries)
	case old.Key == s.Key:
		why = "has not run yet"
	case old.Inputs != s.Inputs:
		why = "inputs changed"
	default:
		why = whyKey(n, was, now)
	}
	if !s.RetryAt.IsZero() {
		return why + "; the next attempt is due at " + s.RetryAt.Format(time.RFC3339)
	}
	for _, need := range n.Needs {
		switch {
		case !runs[need]:
		case why == changedNeed(need):
			return why + " and runs first"
		default:
			return why + "; needs " + need + ", which runs first"
		}
	}
	return why
}

func changedNeed(need string) string { return "needs " + need + ", which changed" }

// whyKey finds what changed a key where neither the generation nor the inputs did.
func whyKey(n *schemas.Node, was, now map[string]schemas.NodeStatus) string {
	for _, need := range n.Needs {
		if was[need].Key != now[need].Key {
			return changedNeed(need)
		}
	}
	if n.Agent != "" {
		return "definition or agent changed"
	}
	return "definition changed"
}
