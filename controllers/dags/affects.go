package dags

import (
	"strings"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// affects adds what reads a DAG: its session and its agents, those of before too. Of one that is gone nothing says whom it
// affected, and of one that was broken nothing says which session its file named.
func affects(c *settle.Change) {
	e := c.Entry
	if c.Ref.Kind == state.CheckpointKind {
		addNodeOf(c)
		return
	}
	if e == nil {
		c.AddAll()
		return
	}
	if e.Brief().StalledReason == settle.ReasonInvalidSpec && c.Note("all sessions") {
		for _, session := range c.Tree().Entries(schemas.SessionKind.Name) {
			sessions.AddOwner(c.Worklist, session.Name)
		}
	}
	if st, ok := e.Status().(*schemas.DAGStatus); ok && st.Session != "" {
		sessions.AddOwner(c.Worklist, st.Session)
	}
	refs := e.Refs
	if e.Object != nil {
		refs = e.Object.Refs
	}
	for _, r := range refs {
		switch r.To.Kind {
		case schemas.SessionKind.Name:
			sessions.AddOwner(c.Worklist, r.To.Name)
		case schemas.WorkflowKind.Name:
			c.AddWithReaders(r.To) // its starts wait for the DAG
		default:
			c.Add(r.To)
		}
	}
	for _, caller := range c.Tree().ReferrersOf(c.Ref, schemas.DAGKind.Name) {
		c.Add(caller)
	}
	if e.Object == nil || e.Brief().ObservedDigest != e.Object.Digest {
		sessions.NoteWork(c)
		addFormerWorkflow(c)
	}
	agents.AddWorking(c.Worklist, e)
}

// addFormerWorkflow adds all workflows, whose starts may begin now: nothing says of which one a DAG was a run before it was removed or edited.
func addFormerWorkflow(c *settle.Change) {
	if c.Entry.HasStatus() && c.Note("all workflows") {
		for _, e := range c.Tree().Entries(schemas.WorkflowKind.Name) {
			c.AddWithReaders(e.Ref)
		}
	}
}

// addNodeOf adds the DAG that a checkpoint is about: it is part of the prompt of its node.
func addNodeOf(c *settle.Change) {
	for _, k := range c.Tree().Checkpoints() {
		if k.Name() == c.Ref.Name {
			dag, _, _ := strings.Cut(strings.TrimPrefix(k.Node, "dag/"), ":")
			c.Add(schemas.DAGKind.Ref(dag))
		}
	}
}
