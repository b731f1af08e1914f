package dags

import (
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// affects adds what reads a DAG: its session and its agents, those of before too. Of one that is gone nothing says whom it
// affected, and of one that was broken nothing says which session its file named.
func affects(c *settle.Change) {
	e := c.Entry
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
		if r.To.Kind == schemas.SessionKind.Name {
			sessions.AddOwner(c.Worklist, r.To.Name)
		} else {
			c.Add(r.To)
		}
	}
	agents.AddWorking(c.Worklist, e)
}
