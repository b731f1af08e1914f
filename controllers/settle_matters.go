package controllers

import (
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// matters is the index of the present tree.
func (s *settler) matters() *matterIndex {
	if s.index == nil {
		s.index = &matterIndex{tree: s.tree}
	}
	return s.index
}

// touchRequest adds what reads a request: its two agents, the DAG whose node asks, and the replies to it. Of one that was
// edited, broken or removed, nothing tells any more whom it affected.
func (s *settler) touchRequest(e *state.Entry) {
	if e == nil || e.Object == nil || e.HasStatus() && e.Status().Base().ObservedDigest != e.Object.Digest {
		s.work = nil
	}
	if s.work == nil {
		return
	}
	s.addAgents(e)
	for _, r := range s.matters().repliesTo(e.Name, requestStatusOf(e).ID) {
		s.add(r.Ref)
	}
	for _, r := range e.Object.Refs {
		dag := s.tree.Entry(r.To)
		switch {
		case r.To.Kind != schemas.DAGKind.Name:
			s.add(r.To)
		case dag != nil && s.work != nil && !s.work[r.To]:
			s.work[r.To] = true
			s.touchDAG(dag)
		}
	}
}

// touchReply adds the request that a reply is to, and those that took or refused it.
func (s *settler) touchReply(ref schemas.Ref, e *state.Entry) {
	x := s.matters()
	if spec := replySpec(e); spec != nil {
		s.addRequest(x.request(spec.Clarification))
	}
	h := x.heardBy(ref.Name)
	s.addRequest(s.tree.Entry(requestRef(h.took)))
	s.addRequest(s.tree.Entry(requestRef(h.refused)))
}

// addRequest adds a request with what reads it.
func (s *settler) addRequest(e *state.Entry) {
	if e == nil || s.work == nil || s.work[e.Ref] {
		return
	}
	s.work[e.Ref] = true
	s.touchRequest(e)
}

// touchAgent adds the DAGs of an agent, and its questions that are open. An agent that comes or goes may be one that
// somebody asks for.
func (s *settler) touchAgent(ref schemas.Ref, e *state.Entry) {
	if e == nil || e.Gone() || !e.HasStatus() {
		s.work = nil
		return
	}
	s.addReferrers(ref, schemas.DAGKind.Name)
	for _, r := range s.tree.ReferrersOf(ref, schemas.ClarificationRequestKind.Name) {
		if q := s.tree.Entry(r); schemas.ClarificationOpen(requestStatusOf(q).Phase) {
			s.addRequest(q)
		}
	}
}

// touchLedger adds the requests about an issue.
func (s *settler) touchLedger(ref schemas.Ref) {
	issue, err := strconv.Atoi(strings.TrimPrefix(ref.Name, ledgerPrefix))
	if err != nil {
		return
	}
	for _, e := range s.tree.Entries(schemas.ClarificationRequestKind.Name) {
		of, _, ok := clarify.ParseID(requestStatusOf(e).ID)
		if spec := requestSpec(e); !ok && spec != nil {
			of = spec.Issue
		}
		if of == issue {
			s.addRequest(e)
		}
	}
}

// ledgerPrefix begins the names of ledgers, before the number of the issue.
const ledgerPrefix = "issue-"

// addOrdered adds the requests that are to be escalated because of those which are decided now.
func (s *settler) addOrdered(w *World) {
	if s.work == nil || !s.decidesRequests() {
		return
	}
	for name := range w.orders() {
		s.addRequest(s.tree.Entry(requestRef(name)))
	}
	w.work = s.work
}

func (s *settler) decidesRequests() bool {
	for ref := range s.work {
		if ref.Kind == schemas.ClarificationRequestKind.Name {
			return true
		}
	}
	return false
}

// touchMoved touches the requests that got a number in the last round, and those whose nodes have another key now, or were
// skipped.
func (s *settler) touchMoved(was *state.Tree, changed []*state.Entry) {
	for _, e := range changed {
		old := was.Entry(e.Ref)
		switch e.Kind {
		case schemas.ClarificationRequestKind.Name:
			if requestStatusOf(e).ID != requestStatusOf(old).ID {
				s.touch(e.Ref)
			}
		case schemas.DAGKind.Name:
			s.touchLeft(old, e)
		}
	}
}

// touchLeft touches the open requests of nodes whose key moved, or that were skipped.
func (s *settler) touchLeft(was, is *state.Entry) {
	for _, r := range s.tree.ReferrersOf(is.Ref, schemas.ClarificationRequestKind.Name) {
		e := s.tree.Entry(r)
		spec := requestSpec(e)
		if spec == nil || !schemas.ClarificationOpen(requestStatusOf(e).Phase) {
			continue
		}
		_, node, ok := schemas.SplitRunKey(spec.Run)
		if ok && (nodeKeyOf(was, node) != nodeKeyOf(is, node) || skipped(was, node) != skipped(is, node)) {
			s.touch(r)
		}
	}
}
