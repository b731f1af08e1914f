package dags

import (
	"fmt"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/workflows"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Origin says where the result of a node is from.
type Origin struct {
	Node string `json:"node"`
	// Reused says that the node did not run in the present work of the DAG: Run, an earlier one, has the same key.
	Reused bool         `json:"reused,omitempty"`
	Run    string       `json:"run"`
	At     schemas.Time `json:"at"`
	// Why is why the node ran at that time; "" for its first run.
	Why string `json:"why,omitempty"`
}

// String describes the origin in a line.
func (o *Origin) String() string {
	if o.Reused {
		return fmt.Sprintf("%s was reused: its key is that of %s of %s", o.Node, o.Run, o.At.Format(time.RFC3339))
	}
	return o.Node + " ran again: " + o.Why
}

// Origins are the nodes of a DAG that were reused, or ran again, by the records and the status, in execution order.
func Origins(e *state.Entry) (out []Origin) {
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return nil
	}
	var needs map[string][]string
	if e.Object != nil {
		needs = map[string][]string{}
		for _, n := range plan.Of(e.Object).Spec.Nodes {
			needs[n.Name] = n.Needs
		}
	}
	for _, name := range nodes.NodeNames(e) {
		if o := originOf(e, st, name, needs[name]); o != nil {
			out = append(out, *o)
		}
	}
	return out
}

// originOf is the origin of one node; nil where it has not run, or ran for the first time.
func originOf(e *state.Entry, st *schemas.DAGStatus, name string, needs []string) *Origin {
	all, fits := workAt(e, name)
	if fits == 0 || st.Nodes.Of(name).State == schemas.NodeQueued || st.Nodes.Of(name).State == schemas.NodePending {
		return nil
	}
	last := all[len(all)-1]
	o := &Origin{Node: name, Run: last.Key, At: last.StartedAt}
	if last.Done() && last.StartedAt.Before(st.StartedAt.Time) {
		o.At, o.Reused = last.FinishedAt, true
		return o
	}
	if o.Why = whyAgain(e, st, all, fits, needs); o.Why == "" {
		return nil
	}
	return o
}

// workAt are the attempts at a node as nodes.Attempts lists them, without the landings and verifications of what they left.
func workAt(e *state.Entry, node string) (list []*schemas.Run, fits int) {
	list, fits = nodes.Attempts(e, node)
	return slices.DeleteFunc(list, func(r *schemas.Run) bool { return !r.IsWork() }), fits
}

// whyAgain says why the last attempt of a node was made; "" if it was the first.
func whyAgain(e *state.Entry, st *schemas.DAGStatus, all []*schemas.Run, fits int, needs []string) string {
	last := all[len(all)-1]
	if fits > 1 {
		switch before := all[len(all)-2]; before.Outcome {
		case schemas.OutcomeFailed, schemas.OutcomeTimedOut:
			return fmt.Sprintf("run %d failed, and it is tried again", before.Seq)
		case schemas.OutcomeSucceeded:
			return fmt.Sprintf("run %d succeeded, and %s", before.Seq, whyNotDone(e, before, last))
		default:
			return fmt.Sprintf("run %d ended %s, and the work goes on", before.Seq, before.Outcome)
		}
	}
	if len(all) == fits {
		return ""
	}
	before := all[len(all)-fits-1]
	if a := retriedBy(st, last, before); a != "" {
		return a
	}
	if before.Outcome == schemas.OutcomeInterrupted { // its record has a key of its own
		return "a run of it was interrupted, and the work goes on"
	}
	if round := st.Nodes.Of(last.Node).Round; round > 1 {
		return fmt.Sprintf("round %d of its loop began", round)
	}
	for _, need := range needs {
		runs, present := workAt(e, need)
		if present > 0 && runs[len(runs)-1].StartedAt.After(before.StartedAt.Time) && len(runs) > present {
			return "its need " + need + " has another key"
		}
	}
	switch {
	case changedTool(before.Tools, last.Tools) != "":
		return changedTool(before.Tools, last.Tools)
	case namedAgent(before) != namedAgent(last):
		return fmt.Sprintf("its agent was %q and is %q", namedAgent(before), namedAgent(last))
	case st.Nodes.Of(last.Node).Inputs != "":
		return "a declared input or its definition changed"
	case last.Agent != "":
		return "its prompt, another part of its definition, or its agent changed"
	}
	return "its definition changed"
}

// namedAgent is the agent that the node named for a run; another one may have worked in its place.
func namedAgent(r *schemas.Run) string {
	if r.Instead != nil {
		return r.Instead.Of
	}
	return r.Agent
}

// whyNotDone says why a node ran once more after a success.
func whyNotDone(e *state.Entry, before, last *schemas.Run) string {
	for _, r := range e.Runs() {
		switch {
		case r.Verifies == before.Key && r.Done() && !checks.EvidenceOf(r).Lets(true):
			return "the " + stepAgent(r.Step) + " sent its change back"
		case r.Lands == before.Key && r.Outcome == schemas.OutcomeFailed:
			return "its commit did not land"
		}
	}
	heard := func(action string) bool { return receipt(action, before) != nil }
	if slices.ContainsFunc(last.Messages, func(action string) bool { return !heard(action) }) {
		return "a person wrote after that"
	}
	return "its outputs were missing"
}

// retriedBy names the action that asked for a run after an earlier one; "" if none did.
func retriedBy(st *schemas.DAGStatus, last, before *schemas.Run) string {
	found := ""
	for _, a := range st.Actions {
		if a.Verb == schemas.VerbRetry && (a.Node == "" || a.Node == last.Node) && !a.At.After(last.StartedAt.Time) && a.At.After(before.StartedAt.Time) {
			found = "action/" + a.Name + " retried it"
			if a.By != "" {
				found += ", asked for by " + schemas.Acting(a.By, a.Proof)
			}
		}
	}
	return found
}

// fileOrigin is the origin of the files of DAGs: what plan changes left, and what starts of workflows made, belongs to the program.
func fileOrigin(t *state.Tree) func(*state.Entry) settle.Origin {
	changed, started := planchanges.DAGOrigin(t), workflows.Origin(t)
	if started == nil {
		return changed
	}
	return func(e *state.Entry) settle.Origin {
		if is := changed(e); is != settle.OriginUser {
			return is
		}
		return started(e)
	}
}
