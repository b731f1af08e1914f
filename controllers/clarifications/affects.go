package clarifications

import (
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// affects adds what reads a request: its two agents, the DAG whose node asks, and the replies to it. Of one that was
// edited, broken or removed, nothing says whom it affected. The change of a ledger affects the requests about its issue.
func affects(c *settle.Change) {
	e := c.Entry
	switch {
	case c.Ref.Kind == state.LedgerKind:
		addRequestsAbout(c.Worklist, c.Ref)
		return
	case e == nil || e.Object == nil || e.HasStatus() && e.Status().Base().ObservedDigest != e.Object.Digest:
		c.AddAll()
		return
	}
	agents.AddWorking(c.Worklist, e)
	sessions.NoteWork(c)
	for _, r := range indexOf(c.OfTree(), c.Tree()).repliesTo(e.Name, Status(e).ID) {
		c.Add(r.Ref)
	}
	for _, r := range e.Object.Refs {
		if r.To.Kind == schemas.DAGKind.Name {
			c.AddWithReaders(r.To)
		} else {
			c.Add(r.To)
		}
	}
}

// addRequestsAbout adds the requests about the issue of a ledger.
func addRequestsAbout(w settle.Worklist, ledger schemas.Ref) {
	issue, err := strconv.Atoi(strings.TrimPrefix(ledger.Name, ledgerPrefix))
	if err != nil {
		return
	}
	for _, e := range w.Tree().Entries(schemas.ClarificationRequestKind.Name) {
		of, _, ok := clarify.ParseID(Status(e).ID)
		if spec := Spec(e); !ok && spec != nil {
			of = spec.Issue
		}
		if of == issue {
			w.AddWithReaders(e.Ref)
		}
	}
}

// ledgerPrefix begins the names of ledgers, before the number of the issue.
const ledgerPrefix = "issue-"

// replyAffects adds the request that a reply is to, and those that took or refused it.
func replyAffects(c *settle.Change) {
	if !c.Itself {
		return
	}
	x := indexOf(c.OfTree(), c.Tree())
	if spec := replySpec(c.Entry); spec != nil {
		if e := x.request(spec.Clarification); e != nil {
			c.AddWithReaders(e.Ref)
		}
	}
	h := x.outcomeOf(c.Ref.Name)
	c.AddWithReaders(schemas.ClarificationRequestKind.Ref(h.took))
	c.AddWithReaders(schemas.ClarificationRequestKind.Ref(h.refused))
}

// addOrdered adds the requests that must be escalated because of requests that are decided now.
func addOrdered(r *settle.Round) {
	if r.Everything() || !r.HasKind(schemas.ClarificationRequestKind.Name) {
		return
	}
	for name := range RequestsOf(r.World).orders() {
		r.AddWithReaders(schemas.ClarificationRequestKind.Ref(name))
	}
}

// addNumbered adds the requests that got a number in the round.
func addNumbered(r *settle.Round) {
	r.EachChanged(schemas.ClarificationRequestKind.Name, func(was, is *state.Entry) {
		if Status(is).ID != Status(was).ID {
			r.AddChanged(is.Ref)
		}
	})
}

// AddMovedQuestions adds the open requests of nodes whose key moved in the round, or that it skipped.
func AddMovedQuestions(r *settle.Round) {
	r.EachChanged(schemas.DAGKind.Name, func(was, is *state.Entry) {
		for _, ref := range r.Tree().ReferrersOf(is.Ref, schemas.ClarificationRequestKind.Name) {
			e := r.Tree().Entry(ref)
			spec := Spec(e)
			if spec == nil || !schemas.ClarificationOpen(Status(e).Phase) {
				continue
			}
			_, node, ok := schemas.SplitRunKey(spec.Run)
			if ok && (nodeKeyOf(was, node) != nodeKeyOf(is, node) || skippedTask(was, node) != skippedTask(is, node)) {
				r.AddChanged(ref)
			}
		}
	})
}
