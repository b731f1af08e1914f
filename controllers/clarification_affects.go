package controllers

import (
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// requestAffects adds what reads a request: its two agents, the DAG whose node asks, and the replies to it. Of one that was
// edited, broken or removed, nothing says whom it affected. The change of a ledger affects the requests about its issue.
func requestAffects(c *Change) {
	e := c.Entry
	switch {
	case c.Ref.Kind == state.LedgerKind:
		addRequestsAbout(c.Worklist, c.Ref)
		return
	case e == nil || e.Object == nil || e.HasStatus() && e.Status().Base().ObservedDigest != e.Object.Digest:
		c.AddAll()
		return
	}
	addAgents(c.Worklist, e)
	for _, r := range indexOf(c.OfTree(), c.Tree()).repliesTo(e.Name, requestStatusOf(e).ID) {
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
func addRequestsAbout(w Worklist, ledger schemas.Ref) {
	issue, err := strconv.Atoi(strings.TrimPrefix(ledger.Name, ledgerPrefix))
	if err != nil {
		return
	}
	for _, e := range w.Tree().Entries(schemas.ClarificationRequestKind.Name) {
		of, _, ok := clarify.ParseID(requestStatusOf(e).ID)
		if spec := requestSpec(e); !ok && spec != nil {
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
func replyAffects(c *Change) {
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
	c.AddWithReaders(requestRef(h.took))
	c.AddWithReaders(requestRef(h.refused))
}

// addOrdered adds the requests that must be escalated because of requests that are decided now.
func addOrdered(r *Round) {
	if r.Everything() || !r.HasKind(schemas.ClarificationRequestKind.Name) {
		return
	}
	for name := range requestsOf(r.World).orders() {
		r.AddWithReaders(requestRef(name))
	}
}

// addNumbered adds the requests that got a number in the round.
func addNumbered(r *Round) {
	r.changed(schemas.ClarificationRequestKind.Name, func(was, is *state.Entry) {
		if requestStatusOf(is).ID != requestStatusOf(was).ID {
			r.AddChanged(is.Ref)
		}
	})
}
