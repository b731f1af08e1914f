package controllers

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Decision is what was decided over a tree.
type Decision struct {
	// Tree has the new statuses.
	Tree *state.Tree
	// Outs holds the decisions, for the objects that were decided.
	Outs map[schemas.Ref]Out
	// Changed are the objects whose status differs from the one in the tree that was given, sorted.
	Changed []schemas.Ref
	// Removed are the entries, as given, of objects that had a status and are to have none any more: their spec is
	// gone, or (replies, observations) nothing is wrong with them now. Sorted. Tree need not know them.
	Removed []*state.Entry
}

// Decider decides over the trees of a run, one after the other. What it added up over one tree it keeps for the next, and
// adds up anew only what differs: what it decides never depends on that. Its zero value decides over any tree. It belongs to
// one goroutine.
type Decider struct {
	// Only is what the run was asked for; nil: everything. Where nodes were asked for, the missing outputs of these nodes and
	// of all that they need are brought back.
	Only *Selection

	sums  dagSums
	calls calls
}

// Settle is [Decider.Settle] for a single tree.
func Settle(t *state.Tree, now time.Time, dirty []schemas.Ref, told ...func(done, total int)) Decision {
	return new(Decider).Settle(t, now, dirty, told...)
}

// Settle decides until nothing changes any more. dirty are the objects that changed since the last decision over this
// tree; what they affect is decided too. With nil everything is decided, which is what a change of the settings needs.
//
// One round decides every object once. Three things can make another round necessary. The places of sessions (seats)
// depend on which sessions are completed, which is known after a round; a session is completed at most once in a Settle.
// A clarification that gets its number may have replies that call it by that; it gets one once. A node whose key moves
// leaves its question behind; keys depend on no question, so they move in the first round. So the number of rounds is
// bounded by the number of sessions and a constant.
//
// told, if there is one, is told of every object that is decided how many there are in its round, and how many were.
func (d *Decider) Settle(t *state.Tree, now time.Time, dirty []schemas.Ref, told ...func(done, total int)) Decision {
	s := &settler{now: now, only: d.Only, sums: &d.sums, given: t, tree: t, changed: map[schemas.Ref]bool{}, told: told}
	if dirty == nil {
		s.outs = make(map[schemas.Ref]Out, t.Len())
	} else {
		s.outs = make(map[schemas.Ref]Out, len(dirty))
		s.work = map[schemas.Ref]bool{}
		for _, ref := range dirty {
			s.touch(ref)
		}
	}
	for range extraRounds + len(t.Entries(schemas.SessionKind.Name)) {
		if !s.round() {
			break
		}
	}
	made := Decision{Tree: s.tree, Outs: s.outs}
	for ref := range s.changed {
		made.Changed = append(made.Changed, ref)
	}
	slices.SortFunc(made.Changed, schemas.Ref.Compare)
	for _, ref := range made.Changed {
		if out, old := made.Outs[ref], t.Entry(ref); out.Status == nil && old != nil && old.HasStatus() {
			made.Removed = append(made.Removed, old)
		}
	}
	return made
}

// extraRounds are those beside one for each session: the first, one for new numbers and moved keys, one for replies that
// this round lets through, and the last, in which nothing changes.
const extraRounds = 4

type settler struct {
	now     time.Time
	only    *Selection
	sums    *dagSums
	given   *state.Tree
	tree    *state.Tree
	work    map[schemas.Ref]bool // nil: everything
	outs    map[schemas.Ref]Out
	changed map[schemas.Ref]bool
	// ranking tells that places may have changed hands.
	ranking bool
	// workers tells that the working agents are marked, sessions that all sessions are.
	workers, sessions bool
	told              []func(done, total int)
	index             *matterIndex // of tree, shared with the worlds over it; nil until asked for
}

// touch marks an object, and what reads it, to be decided.
func (s *settler) touch(ref schemas.Ref) {
	if s.work == nil {
		return
	}
	e := s.tree.Entry(ref)
	s.add(ref)
	switch {
	case ref.Kind == schemas.SettingsKind.Name || ref.Kind == schemas.WorkflowKind.Name:
		s.work = nil // a workflow says who may ask whom
	case ref.Kind == schemas.SessionKind.Name:
		s.ranking = true
		s.addReferrers(ref, schemas.DAGKind.Name, schemas.ActionKind.Name)
	case ref.Kind == schemas.AgentKind.Name:
		s.touchAgent(ref, e)
	case ref.Kind == schemas.ClarificationRequestKind.Name:
		s.touchRequest(e)
	case ref.Kind == schemas.ReplyKind.Name:
		s.touchReply(ref, e)
	case ref.Kind == state.LedgerKind:
		s.touchLedger(ref)
	case ref.Kind == schemas.DAGKind.Name && e != nil:
		s.touchDAG(e)
	case ref.Kind == schemas.ActionKind.Name && e != nil:
		s.touchAction(e)
	case ref.Kind == schemas.DAGKind.Name || ref.Kind == schemas.ActionKind.Name:
		s.work = nil // nothing is left that would tell whom it affected
	}
}

func (s *settler) add(ref schemas.Ref) {
	if s.work != nil && s.tree.Entry(ref) != nil {
		s.work[ref] = true
	}
}

// addReferrers adds the referrers of the given kinds; a DAG or a request brings its own readers along.
func (s *settler) addReferrers(ref schemas.Ref, kinds ...string) {
	for _, kind := range kinds {
		for _, r := range s.tree.ReferrersOf(ref, kind) {
			if s.work == nil || s.work[r] {
				continue
			}
			s.work[r] = true
			switch kind {
			case schemas.DAGKind.Name:
				s.touchDAG(s.tree.Entry(r))
			case schemas.ClarificationRequestKind.Name:
				s.touchRequest(s.tree.Entry(r))
			}
		}
	}
}

// touchDAG adds what reads a DAG: its session, the actions on it, and its agents; those of before too. Of one that was broken
// nothing tells which session its file named.
func (s *settler) touchDAG(e *state.Entry) {
	if e.Brief().StalledReason == ReasonInvalidSpec && !s.sessions {
		s.sessions = true
		for _, session := range s.tree.Entries(schemas.SessionKind.Name) {
			s.addSession(session.Name)
		}
	}
	if st, ok := e.Status().(*schemas.DAGStatus); ok && st.Session != "" {
		s.addSession(st.Session)
	}
	refs := e.Refs
	if e.Object != nil {
		refs = e.Object.Refs
	}
	for _, r := range refs {
		if r.To.Kind == schemas.SessionKind.Name {
			s.addSession(r.To.Name)
		} else {
			s.add(r.To)
		}
	}
	s.addAgents(e)
	s.addReferrers(e.Ref, schemas.ActionKind.Name, schemas.ClarificationRequestKind.Name)
}

// addAgents adds the agents that work for an object, or did.
func (s *settler) addAgents(e *state.Entry) {
	for i := range e.Claims {
		s.add(agentRef(e.Claims[i].Agent))
	}
	for _, r := range e.Runs() {
		if r.Agent != "" {
			s.add(agentRef(r.Agent))
		}
	}
	if !s.workers {
		s.workers = true
		s.addWorking()
	}
}

// addWorking adds the agents that are said to work: what they worked on may be gone.
func (s *settler) addWorking() {
	for _, e := range s.tree.Entries(schemas.AgentKind.Name) {
		if st, ok := e.Status().(*schemas.AgentStatus); ok && len(st.Running) > 0 {
			s.add(e.Ref)
		}
	}
}

// addSession adds a session that a DAG belongs to. One that is to be completed may give its place away.
func (s *settler) addSession(name string) {
	e := s.tree.Entry(sessionRef(name))
	if e == nil {
		return
	}
	s.add(e.Ref)
	if spec := sessionSpec(e); spec != nil && spec.Phase == schemas.SessionCompleted {
		s.ranking = true
	}
}

// touchAction adds the target: the present one and the one that it was applied to.
func (s *settler) touchAction(e *state.Entry) {
	if st, ok := e.Status().(*schemas.ActionStatus); ok && st.Target != "" {
		if ref, err := targetKinds.ParseRef(st.Target); err == nil {
			s.touchTarget(ref)
			if ref.Kind == schemas.SessionKind.Name && e.Gone() {
				s.touchHolders(e.Name)
			}
		}
	}
	if spec := schemas.SpecAs[*schemas.ActionSpec](e.Object); spec != nil {
		if ref, err := spec.TargetRef(); err == nil {
			s.touchTarget(ref)
		}
	}
}

// touchHolders adds the DAGs that remember an action on a session. They may have moved to another session since.
func (s *settler) touchHolders(action string) {
	for _, e := range s.tree.Entries(schemas.DAGKind.Name) {
		st, ok := e.Status().(*schemas.DAGStatus)
		if ok && slices.ContainsFunc(st.Actions, func(a schemas.AppliedAction) bool { return a.Name == action }) {
			s.touch(e.Ref)
		}
	}
}

var targetKinds = schemas.Kinds{schemas.DAGKind, schemas.SessionKind}

func (s *settler) touchTarget(ref schemas.Ref) {
	if s.work != nil && s.tree.Entry(ref) != nil {
		s.touch(ref)
	}
}

// round decides once, puts the statuses into the tree, and reports whether another round is needed.
func (s *settler) round() bool {
	w := newWorld(s.tree, s.now, s.work)
	w.only, w.matters, w.sums = s.only, s.matters(), s.sums
	if s.work != nil && s.ranking {
		s.addReseated(w)
	}
	s.addOrdered(w)
	changed := s.decide(w)
	if len(changed) == 0 {
		return false
	}
	was := s.tree
	s.tree, s.index = s.tree.With(changed...), nil
	s.work, s.ranking, s.sessions = map[schemas.Ref]bool{}, false, false
	s.touchMoved(was, changed)
	if w.seats == nil {
		return s.work == nil || len(s.work) > 0
	}
	for name, now := range takeSeats(s.tree) {
		if was := w.seats[name]; was == nil || was.gate != now.gate {
			s.touch(sessionRef(name))
		}
	}
	return s.work == nil || len(s.work) > 0
}

// addReseated adds the sessions whose status does not show the seat that they have, and their DAGs.
func (s *settler) addReseated(w *World) {
	for _, e := range s.tree.Entries(schemas.SessionKind.Name) {
		seat := w.seatOf(e.Name)
		if seat != nil && !seat.shownBy(e.Status()) {
			s.work[e.Ref] = true
			s.addReferrers(e.Ref, schemas.DAGKind.Name, schemas.ActionKind.Name)
		}
	}
}

// shownBy reports whether a session's status tells of this seat already.
func (s *seat) shownBy(status schemas.Status) bool {
	if status == nil {
		return false
	}
	base := status.Base()
	c := base.Condition(schemas.Ready)
	switch {
	case c == nil:
		return false
	case s.open:
		return base.Phase == schemas.SessionActive || base.Phase == schemas.SessionFailed
	}
	return c.Reason == s.reason && c.Message == s.message
}

// decide decides what is to be decided and returns the entries whose status changed.
func (s *settler) decide(w *World) []*state.Entry {
	var changed []*state.Entry
	done, total := 0, len(s.work)
	if s.work == nil {
		total = s.tree.Len()
	}
	w.tell = func() {
		for _, tell := range s.told {
			tell(min(done, total), total)
		}
		done++
	}
	for _, k := range Kinds {
		if k.Decide == nil {
			continue
		}
		for _, e := range s.pending(k.Name) {
			out := w.decide(e, k.Decide)
			s.outs[e.Ref] = out
			if e.Status() == out.Status {
				continue
			}
			next := *e
			next.SetStatus(out.Status)
			changed = append(changed, &next)
			if old := s.given.Entry(e.Ref); old != nil && sameStatus(old.Status(), out.Status) {
				delete(s.changed, e.Ref)
			} else {
				s.changed[e.Ref] = true
			}
		}
	}
	return changed
}

// pending lists what is to be decided of a kind, sorted by name.
func (s *settler) pending(kind string) []*state.Entry {
	if s.work == nil {
		return s.tree.Entries(kind)
	}
	var some []*state.Entry
	for ref := range s.work {
		if ref.Kind != kind {
			continue
		}
		if e := s.tree.Entry(ref); e != nil {
			some = append(some, e)
		}
	}
	slices.SortFunc(some, func(a, b *state.Entry) int { return strings.Compare(a.Name, b.Name) })
	return some
}

// sameStatus compares two statuses of one kind.
func sameStatus(a, b schemas.Status) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	x, ok := a.(*schemas.DAGStatus)
	y, ok2 := b.(*schemas.DAGStatus)
	if !ok || !ok2 {
		return reflect.DeepEqual(a, b)
	}
	return sameDAG(x, y)
}

// sameDAG is reflect.DeepEqual for the status that can be large; results are compared as JSON.
func sameDAG(a, b *schemas.DAGStatus) bool {
	if len(a.Nodes) != len(b.Nodes) || a.Progress != b.Progress || a.Running != b.Running || a.Session != b.Session ||
		a.Hold != b.Hold || a.StartedAt != b.StartedAt || a.FinishedAt != b.FinishedAt ||
		!reflect.DeepEqual(a.Common, b.Common) || !slices.Equal(a.Actions, b.Actions) || !slices.Equal(a.Active, b.Active) ||
		!slices.EqualFunc(a.Layers, b.Layers, slices.Equal) {
		return false
	}
	if reflect.ValueOf(a.Nodes).Pointer() == reflect.ValueOf(b.Nodes).Pointer() {
		return true // no node differed, so the decision kept the map
	}
	for name, x := range a.Nodes {
		y, ok := b.Nodes[name]
		if !ok || !sameNode(&x, &y) {
			return false
		}
	}
	return true
}
