package sessions

import (
	"bytes"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Gate says whether the nodes of a session may start and whether those that run may go on.
type Gate struct {
	Open    bool // new work may start
	Keep    bool // running work goes on
	Kill    bool // running work that does not go on is killed
	Reason  string
	Message string
}

// slot is the admission of a session among all sessions.
type slot struct {
	Gate
	desired string            // the phase that the spec and the actions on the session ask for
	hold    string            // the verb of an action that is in force, new actions included
	idle    bool              // it is active and has no work, so it takes no place
	Acts    []actions.Pending // new actions on the session, in order
}

// transitions lists the desired phases that a session follows in each phase. A session that has not ended follows any.
// A completed one can only be reopened with Active.
var transitions = map[string]map[string]bool{
	"":                       anyPhase,
	schemas.SessionCreated:   anyPhase,
	schemas.SessionActive:    anyPhase,
	schemas.SessionPaused:    anyPhase,
	schemas.SessionSuspended: anyPhase,
	schemas.SessionFailed:    anyPhase,
	schemas.SessionCompleted: {schemas.SessionActive: true, schemas.SessionCompleted: true},
}

var anyPhase = map[string]bool{
	schemas.SessionActive: true, schemas.SessionPaused: true, schemas.SessionSuspended: true,
	schemas.SessionCompleted: true,
}

// Slots is what decisions about sessions and their DAGs share over one tree in one round. Each part is made when it is first
// asked for.
type Slots struct {
	world     *settle.World
	tree      *state.Tree
	bySession map[string]*slot // by session
	// sums are those of all sessions; summed is set once they are as decided in this round.
	sums   *dagSums
	summed bool
	// invalid are the broken DAGs by session, in a round that decides everything.
	invalid map[string][]*state.Entry
}

// SlotsOf returns what decisions over a world share about sessions.
func SlotsOf(w *settle.World) *Slots {
	return settle.Shared(&w.OfRound, func() *Slots {
		return &Slots{world: w, tree: w.Tree, sums: settle.Shared(w.OfRun, func() *dagSums { return new(dagSums) })}
	})
}

// SlotOf returns the slot of a session; nil without a usable spec.
func (w *Slots) SlotOf(session string) *slot {
	if w.bySession == nil {
		w.bySession = assignSlots(w.tree, w.sums)
	}
	s := w.bySession[session]
	if ref := schemas.SessionKind.Ref(session); s == nil && w.tree.IsDormant(ref) {
		e := w.tree.Entry(ref)
		s = newSlot(w.tree, e)
		s.Gate = new(freeSlots).place(w.tree, e, s)
		w.bySession[session] = s
	}
	return s
}

// GateOf says what the DAGs of a session may do. What runs goes on while the session's file is missing or broken.
func (w *Slots) GateOf(session string) Gate {
	if s := w.SlotOf(session); s != nil {
		return s.Gate
	}
	ref := schemas.SessionKind.Ref(session)
	if e := w.tree.Entry(ref); e != nil && e.Broken() {
		return Gate{Keep: true, Reason: settle.ReasonSessionInvalid, Message: fmt.Sprintf("waits until %s is put right", ref)}
	}
	return Gate{Keep: true, Reason: settle.ReasonSessionMissing, Message: fmt.Sprintf("waits for %s, which does not exist", ref)}
}

// assignSlots assigns slots to sessions by rank: priority, then name (decision 6). It uses specs, actions, which sessions have work and
// which statuses are Completed, so that two processes decide the same. It takes linear time. Dormant sessions take no place and are left out. Where there may be more sessions
// than places, sums follow the tree.
func assignSlots(t *state.Tree, sums *dagSums) map[string]*slot {
	entries := t.Active(schemas.SessionKind.Name)
	dormant, _ := t.CountDormant(schemas.SessionKind.Name)
	bySession := make(map[string]*slot, len(entries))
	var ranks [lowestRank + 1][]*state.Entry
	for _, e := range entries {
		if spec := state.SpecOf[*schemas.SessionSpec](e); spec != nil {
			r := spec.Priority.Rank()
			ranks[r] = append(ranks[r], e)
		}
	}
	room := freeSlots{limit: t.Settings().Limits.Sessions, owners: map[string]string{}}
	if len(entries)+dormant > room.limit {
		sums.follow(t)
		room.sums, room.asked = sums, openQuestions(t)
	}
	for _, rank := range ranks {
		for _, e := range rank {
			s := newSlot(t, e)
			s.Gate = room.place(t, e, s)
			bySession[e.Name] = s
		}
	}
	if room.taken >= room.limit {
		for _, s := range bySession {
			if s.idle {
				s.Gate = room.full() // should it get work
			}
		}
	}
	return bySession
}

func newSlot(t *state.Tree, e *state.Entry) *slot {
	spec := state.SpecOf[*schemas.SessionSpec](e)
	s := &slot{desired: spec.Phase}
	var applied []schemas.AppliedAction
	if st, ok := e.Status().(*schemas.SessionStatus); ok {
		s.hold, applied = st.Hold, st.Actions
	}
	s.Acts = actions.Unapplied(t, e, applied)
	for _, a := range s.Acts {
		if !a.Spent && a.Distrusted() == "" {
			s.hold = heldBy(a.Spec, s.hold, e.Brief().Phase)
		}
	}
	switch s.hold {
	case schemas.VerbPause:
		if s.desired != schemas.SessionSuspended {
			s.desired = schemas.SessionPaused
		}
	case schemas.VerbCancel, holdKill, holdEnd:
		s.desired = schemas.SessionSuspended
	}
	return s
}

// Holds of a session by modes of cancel.
const (
	holdKill = "kill" // what runs is killed
	holdEnd  = "end"  // what runs ends by itself
)

// heldBy is the verb in force on a session after another verb was applied. A completed session cannot be held, and a pause does not let
// go on what a cancel ends.
func heldBy(a *schemas.ActionSpec, hold, phase string) string {
	switch a.Verb {
	case schemas.VerbPause, schemas.VerbCancel:
		switch {
		case phase == schemas.SessionCompleted, a.Verb == schemas.VerbPause && hold != "":
			return hold
		case a.Mode == schemas.CancelImmediate:
			return holdKill
		case a.Mode == schemas.CancelWait:
			return holdEnd
		}
		return a.Verb
	case schemas.VerbResume:
		return ""
	case schemas.VerbRetry:
		if hold != schemas.VerbPause {
			return ""
		}
	}
	return hold
}

// freeSlots are the slots that are left.
type freeSlots struct {
	taken, limit int
	owners       map[string]string         // owner → the session that is active
	broken       map[string][]*state.Entry // see brokenDAGs; nil until asked for
	sums         *dagSums                  // nil where there are enough places for all sessions
	asked        func(issue int) bool      // reports whether an issue has an open question
}

const completedMessage = "the session is completed; set its spec.phase to Active to open it again"

// place judges one session, the higher ranks having been judged before.
func (r *freeSlots) place(t *state.Tree, e *state.Entry, s *slot) Gate {
	phase, spec := e.Brief().Phase, state.SpecOf[*schemas.SessionSpec](e)
	if !transitions[phase][s.desired] {
		return Gate{Keep: true, Reason: settle.ReasonInvalidTransition, Message: fmt.Sprintf(
			"a completed session cannot become %s; set spec.phase to Active to open it again, or back to Completed", s.desired)}
	}
	switch {
	case s.desired == schemas.SessionPaused && s.hold != "":
		return Gate{Keep: true, Reason: settle.ReasonPausedByAction, Message: "an action paused the session; resume it to go on"}
	case s.desired == schemas.SessionPaused:
		return Gate{Keep: true, Reason: settle.ReasonPaused, Message: "the session is paused, as its spec.phase says"}
	case s.desired == schemas.SessionSuspended && s.hold != "":
		return Gate{Keep: s.hold == holdEnd, Kill: s.hold == holdKill, Reason: settle.ReasonSuspendedByAction,
			Message: "an action suspended the session; resume it to go on"}
	case s.desired == schemas.SessionSuspended:
		return Gate{Reason: settle.ReasonSuspended, Message: "the session is suspended, as its spec.phase says"}
	case s.desired == schemas.SessionActive && spec.WhenDone == schemas.WhenDoneComplete && r.allDone(t, e) && hasDAGs(t, e) && !scheduled(t, e) &&
		(spec.Quality == nil || verifiedAs(t, e)):
		s.desired = schemas.SessionCompleted
		return Gate{Keep: true, Reason: settle.ReasonCompleted, Message: "its DAGs are done; it opens again when one has to run"}
	case s.desired == schemas.SessionCompleted && (phase == schemas.SessionCompleted || r.allDone(t, e) && (spec.Quality == nil || verifiedAs(t, e) || !hasResults(t, e))):
		return Gate{Keep: true, Reason: settle.ReasonCompleted, Message: completedMessage}
	}
	return r.take(e, s)
}

// take assigns a slot to a session that wants to work, or explains why it cannot.
func (r *freeSlots) take(e *state.Entry, s *slot) Gate {
	spec := state.SpecOf[*schemas.SessionSpec](e)
	owner := spec.Owner
	if first, ok := r.owners[owner]; ok && owner != "" {
		return Gate{Keep: true, Reason: settle.ReasonAnotherSessionActive, Message: fmt.Sprintf(
			"session %s of owner %s is active and ranks higher; %q makes this one the active one", first, owner,
			"reconcile resume "+e.Name+" --exclusive")}
	}
	if s.idle = r.sums != nil && !r.sums.haveWork(e.Name) && !r.asked(spec.Issue) && !r.sums.toVerify(e); !s.idle {
		if r.taken >= r.limit {
			return r.full()
		}
		r.taken++
	}
	r.owners[owner] = e.Name
	return Gate{Open: true, Keep: true, Reason: settle.ReasonActive}
}

// openQuestions returns what reports whether an issue has a question that is not resolved: it is work of the issue's sessions, also without a
// DAG.
func openQuestions(t *state.Tree) func(issue int) bool {
	known := map[int]bool{0: false}
	for _, e := range t.Active(schemas.ClarificationRequestKind.Name) {
		spec := schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object)
		if spec != nil && spec.Issue > 0 && schemas.ClarificationOpen(e.Brief().Phase) {
			known[spec.Issue] = true
		}
	}
	return func(issue int) bool {
		is, ok := known[issue]
		if !ok {
			is = dormantOpen(t, issue)
			known[issue] = is
		}
		return is
	}
}

// dormantOpen reports whether a dormant question of an issue is open.
func dormantOpen(t *state.Tree, issue int) bool {
	for o := range t.Dormant(schemas.ClarificationRequestKind.Name) {
		if of, _, ok := clarify.ParseID(o.Brief.ID); ok && of == issue && schemas.ClarificationOpen(o.Brief.Phase) {
			return true
		}
	}
	return false
}

// full is the gate of a session that finds no place.
func (r *freeSlots) full() Gate {
	return Gate{Keep: true, Reason: settle.ReasonSessionLimit, Message: fmt.Sprintf(
		"the session waits for a place: limits.sessions (%d) have work and rank higher", r.limit)}
}

// scheduled reports whether a DAG of a session has a schedule: then the session is never done on its own.
func scheduled(t *state.Tree, session *state.Entry) bool {
	for _, dag := range dagsOf(t, session.Ref) {
		if dag.Object == nil || !bytes.Contains(dag.Object.Canonical(), []byte(`"schedule":`)) {
			continue // of most, without decoding them
		}
		if spec := state.SpecOf[*schemas.DAGSpec](dag); spec != nil && len(spec.Schedule) > 0 {
			return true
		}
	}
	return false
}

// allDone reports whether every DAG of the session has ended well, by statuses that are about the present specs.
func (r *freeSlots) allDone(t *state.Tree, session *state.Entry) bool {
	if r.broken == nil {
		r.broken = brokenDAGs(t)
	}
	for _, dag := range dagsOf(t, session.Ref) {
		st := dag.Brief()
		if dag.Object == nil || st.ObservedDigest != dag.Object.Digest || !endedWell(st.Phase) {
			return false
		}
	}
	return len(r.broken[session.Name]) == 0
}

// hasResults reports whether there is work of a session that can be verified, be it of a DAG that was cancelled then.
func hasResults(t *state.Tree, session *state.Entry) bool {
	return slices.ContainsFunc(dagsOf(t, session.Ref), func(dag *state.Entry) bool {
		b := dag.Brief()
		return b.Phase == schemas.DAGSucceeded || b.Progress.Done > 0
	})
}

func endedWell(dagPhase string) bool {
	return dagPhase == schemas.DAGSucceeded || dagPhase == schemas.DAGCancelled
}

// lowestRank is the rank of background work.
const lowestRank = 4

// shownBy reports whether a session's status describes this slot already.
func (s *slot) shownBy(status schemas.Status) bool {
	if status == nil {
		return false
	}
	base := status.Base()
	c := base.Condition(schemas.Ready)
	switch {
	case c == nil:
		return false
	case s.Open, s.idle:
		return base.Phase == schemas.SessionActive || base.Phase == schemas.SessionFailed
	}
	return c.Reason == s.Reason && c.Message == s.Message
}

// dagSum sums the DAGs of a session, each as decided now. Callers must not change it.
func (w *Slots) dagSum(session string) *dagSum {
	if !w.world.Everything() {
		if !w.summed {
			w.sums.follow(w.tree)
			w.summed = true
			for e := range w.world.Decided(schemas.DAGKind.Name) {
				w.sums.decided(e, w.world.Brief(e))
			}
		}
		return w.sums.session(session)
	}
	if w.invalid == nil {
		w.invalid = brokenDAGs(w.tree)
	}
	sum := new(dagSum)
	for _, e := range dagsOf(w.tree, schemas.SessionKind.Ref(session)) {
		p := partOf(session, w.world.Brief(e))
		sum.add(e.Name, &p)
	}
	for _, e := range w.invalid[session] {
		sum.add(e.Name, &part{session: session, broken: true})
	}
	return sum
}
