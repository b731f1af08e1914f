package controllers

import (
	"fmt"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// gate says whether the nodes of a session may start and whether those that run may go on.
type gate struct {
	open    bool // new work may start
	keep    bool // running work goes on
	reason  string
	message string
}

// seat is where a session stands among all sessions.
type seat struct {
	gate
	wish string // the phase that the spec and the actions on the session ask for
	hold string // the verb of an action that is in force, new actions included
	acts []act  // new actions on the session, in order
}

// wishTable says which wishes a session follows in which phase. Whatever has not ended follows any wish; what was
// completed can only be opened again, by asking for Active.
var wishTable = map[string]map[string]bool{
	"":                       anyWish,
	schemas.SessionCreated:   anyWish,
	schemas.SessionActive:    anyWish,
	schemas.SessionPaused:    anyWish,
	schemas.SessionSuspended: anyWish,
	schemas.SessionFailed:    anyWish,
	schemas.SessionCompleted: {schemas.SessionActive: true, schemas.SessionCompleted: true},
}

var anyWish = map[string]bool{
	schemas.SessionActive: true, schemas.SessionPaused: true, schemas.SessionSuspended: true,
	schemas.SessionCompleted: true,
}

// slots is what decisions about sessions and their DAGs share over one tree in one round. Each part is made when it is first
// asked for.
type slots struct {
	world *World
	tree  *state.Tree
	seats map[string]*seat // by session
	// sums are those of all sessions; summed is set once they are as decided in this round.
	sums   *dagSums
	summed bool
	// invalid are the broken DAGs by session, in a round that decides everything.
	invalid map[string][]*state.Entry
}

func slotsOf(w *World) *slots {
	return Shared(&w.OfRound, func() *slots {
		return &slots{world: w, tree: w.Tree, sums: Shared(w.OfRun, func() *dagSums { return new(dagSums) })}
	})
}

// seatOf returns the seat of a session; nil when there is no such spec that can be used.
func (w *slots) seatOf(session string) *seat {
	if w.seats == nil {
		w.seats = takeSeats(w.tree)
	}
	return w.seats[session]
}

// gateOf says what the DAGs of a session may do. What runs goes on while the session's file is missing or broken.
func (w *slots) gateOf(session string) gate {
	if s := w.seatOf(session); s != nil {
		return s.gate
	}
	ref := sessionRef(session)
	if e := w.tree.Entry(ref); e != nil && e.Broken() {
		return gate{keep: true, reason: ReasonSessionInvalid, message: fmt.Sprintf("waits until %s is put right", ref)}
	}
	return gate{keep: true, reason: ReasonSessionMissing, message: fmt.Sprintf("waits for %s, which does not exist", ref)}
}

// takeSeats gives places to sessions by rank: priority, then name (decision 6). It looks at specs, at actions, and at
// what statuses say has been completed, so that two deciders over one tree agree. It takes linear time.
func takeSeats(t *state.Tree) map[string]*seat {
	entries := t.Entries(schemas.SessionKind.Name)
	seats := make(map[string]*seat, len(entries))
	var ranks [lowestRank + 1][]*state.Entry
	for _, e := range entries {
		if spec := sessionSpec(e); spec != nil {
			r := spec.Priority.Rank()
			ranks[r] = append(ranks[r], e)
		}
	}
	room := rows{limit: t.Settings().Limits.Sessions, owners: map[string]string{}}
	for _, rank := range ranks {
		for _, e := range rank {
			s := newSeat(t, e)
			s.gate = room.place(t, e, s)
			seats[e.Name] = s
		}
	}
	return seats
}

func newSeat(t *state.Tree, e *state.Entry) *seat {
	spec := sessionSpec(e)
	s := &seat{wish: spec.Phase}
	var applied []schemas.AppliedAction
	if st, ok := e.Status().(*schemas.SessionStatus); ok {
		s.hold, applied = st.Hold, st.Actions
	}
	s.acts = newActs(t, e, applied)
	for _, a := range s.acts {
		if !a.spent {
			s.hold = heldBy(a.spec.Verb, s.hold, phaseOf(e))
		}
	}
	switch s.hold {
	case schemas.VerbPause:
		s.wish = schemas.SessionPaused
	case schemas.VerbCancel:
		s.wish = schemas.SessionSuspended
	}
	return s
}

// heldBy is the verb that is in force on a session after another one was applied. What is completed cannot be held.
func heldBy(verb, hold, phase string) string {
	switch verb {
	case schemas.VerbPause, schemas.VerbCancel:
		if phase == schemas.SessionCompleted {
			return hold
		}
		return verb
	case schemas.VerbResume:
		return ""
	case schemas.VerbRetry:
		if hold == schemas.VerbCancel {
			return ""
		}
	}
	return hold
}

func phaseOf(e *state.Entry) string {
	if !e.HasStatus() {
		return ""
	}
	return e.Brief().Phase
}

// rows are the places that are left.
type rows struct {
	taken, limit int
	owners       map[string]string         // owner → the session that is active
	broken       map[string][]*state.Entry // see brokenDAGs; nil until asked for
}

const completedMessage = "the session is completed; set its spec.phase to Active to open it again"

// place judges one session, the higher ranks having been judged before.
func (r *rows) place(t *state.Tree, e *state.Entry, s *seat) gate {
	phase := phaseOf(e)
	if !wishTable[phase][s.wish] {
		return gate{keep: true, reason: ReasonInvalidTransition, message: fmt.Sprintf(
			"a completed session cannot become %s; set spec.phase to Active to open it again, or back to Completed", s.wish)}
	}
	switch {
	case s.wish == schemas.SessionPaused && s.hold != "":
		return gate{keep: true, reason: ReasonPausedByAction, message: "an action paused the session; resume it to go on"}
	case s.wish == schemas.SessionPaused:
		return gate{keep: true, reason: ReasonPaused, message: "the session is paused, as its spec.phase says"}
	case s.wish == schemas.SessionSuspended && s.hold != "":
		return gate{reason: ReasonSuspendedByAction, message: "an action suspended the session; resume it to go on"}
	case s.wish == schemas.SessionSuspended:
		return gate{reason: ReasonSuspended, message: "the session is suspended, as its spec.phase says"}
	case s.wish == schemas.SessionCompleted && (phase == schemas.SessionCompleted || r.allDone(t, e)):
		return gate{keep: true, reason: ReasonCompleted, message: completedMessage}
	}
	return r.take(e)
}

// take gives a place to a session that wants to work, or says what it waits for.
func (r *rows) take(e *state.Entry) gate {
	owner := sessionSpec(e).Owner
	if first, ok := r.owners[owner]; ok && owner != "" {
		return gate{keep: true, reason: ReasonAnotherSessionActive, message: fmt.Sprintf(
			"session %s of owner %s is active and ranks higher; %q makes this one the active one", first, owner,
			"reconcile resume "+e.Name+" --exclusive")}
	}
	if r.taken >= r.limit {
		return gate{keep: true, reason: ReasonSessionLimit, message: fmt.Sprintf(
			"the session waits for a place: limits.sessions (%d) are active and rank higher", r.limit)}
	}
	r.taken++
	r.owners[owner] = e.Name
	return gate{open: true, keep: true, reason: ReasonActive}
}

// allDone reports whether every DAG of the session has ended well, by statuses that are about the present specs.
func (r *rows) allDone(t *state.Tree, session *state.Entry) bool {
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

func endedWell(dagPhase string) bool {
	return dagPhase == schemas.DAGSucceeded || dagPhase == schemas.DAGCancelled
}

// lowestRank is the rank of background work.
const lowestRank = 4

// slotsMayChange is noted when sessions may get or lose their slots in the round.
const slotsMayChange = "slots"

// sessionAffects notes that slots may change.
func sessionAffects(c *Change) { c.Note(slotsMayChange) }

// addReassigned adds the sessions whose status does not show the slot that they have, and what depends on them.
func addReassigned(r *Round) {
	if r.Everything() || !r.Noted(slotsMayChange) {
		return
	}
	for _, e := range r.Tree().Entries(schemas.SessionKind.Name) {
		if s := slotsOf(r.World).seatOf(e.Name); s != nil && !s.shownBy(e.Status()) {
			r.Add(e.Ref)
			r.AddDependents(e.Ref)
		}
	}
}

// addAdmitted adds the sessions whose slot is another one after the round.
func addAdmitted(r *Round) {
	given := slotsOf(r.World).seats
	if given == nil {
		return
	}
	for name, is := range takeSeats(r.Tree()) {
		if was := given[name]; was == nil || was.gate != is.gate {
			r.AddChanged(sessionRef(name))
		}
	}
}

// shownBy reports whether a session's status describes this slot already.
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
