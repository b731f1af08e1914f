package dags

import (
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/spans"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// The time limit of a DAG counts the moments at which a node of it runs, backs off or waits for a place. They are found
// from records, claims and the times of actions, united with what the status remembers, so it does not matter in how
// many turns all that came in, nor that old records are pruned. Only where nothing tells when work stopped or went on
// (the phase in a session's spec, an edit), the time of the decision that notices it counts.

// readClock finds the times that count for the limits of the DAG and its calls.
func (f *fold) readClock() {
	f.start = f.startOf()
	f.active, f.callTimes = nil, make([][]schemas.Span, len(f.p.Timed))
	if !f.p.TimeLimited() || f.start.IsZero() {
		return
	}
	var known []schemas.Span
	if f.start == f.old.StartedAt {
		known = f.old.Active
	}
	h := f.halts()
	f.dropHalts(&h)
	var runs, waits []schemas.Span
	ofNodes := map[int32][]schemas.Span{} // of those in calls with a limit
	note := func(all *[]schemas.Span) func(int32, schemas.Span) {
		return func(i int32, s schemas.Span) {
			if *all = append(*all, s); len(f.p.TimedOf[i]) > 0 {
				ofNodes[i] = append(ofNodes[i], s)
			}
		}
	}
	f.runSpans(note(&runs))
	f.waitSpans(h, note(&waits))
	still := spans.Gaps(known)
	if len(known) > 0 {
		still = append(still, schemas.Span{From: f.start, To: known[0].From})
	}
	f.active = f.united(h, known, runs, spans.Without(waits, spans.Unite(still)))
	if len(f.active) == 0 && len(runs) > 0 { // which took no time; without any span, what waits now would count from the start
		f.active = []schemas.Span{{From: f.start, To: f.start}}
	}
	f.timeCalls(h, ofNodes)
}

// dropHalts drops the halts of actions that still last by them, where something else ended them: an edit of the session's phase or of a
// node. What they halted until then is a gap of the known times.
func (f *fold) dropHalts(h *halts) {
	last := func(set []schemas.Span) []schemas.Span {
		if spans.IsOpen(set) {
			return set[:len(set)-1]
		}
		return set
	}
	if f.gate.Open {
		h.pauses = last(h.pauses)
	}
	for i, set := range h.holds {
		if works(f.next[i]) {
			h.holds[i] = last(set)
		}
	}
}

// works reports whether a node runs or waits for its place.
func works(s *schemas.NodeStatus) bool {
	return s.State == schemas.NodeRunning || s.State == schemas.NodeQueued
}

// united are the times that count for the DAG: those known before, and those of runs and waits.
func (f *fold) united(h halts, known, runs, waits []schemas.Span) []schemas.Span {
	working := slices.ContainsFunc(f.next, works)
	if n := len(known); n > 0 && !spans.IsOpen(known) {
		last := known[n-1].To
		resumed := f.firstAfter(last, runs, waits, h.times)
		waits = spans.Without(waits, []schemas.Span{{From: last, To: resumed}})
		known = append(slices.Clone(known), runs...)
		if known = spans.Unite(append(known, waits...)); working && !spans.IsOpen(known) {
			known = spans.Unite(append(known, schemas.Span{From: resumed}))
		}
		return known
	}
	return f.continued(known, spans.Unite(append(runs, waits...)), working, spans.IsOpen(h.pauses))
}

// StopClocks returns those of the given DAGs that have no claims and a running time limit, with the limit stopped: no
// process continues with them now. The next decision starts it again. Time that a run since the given time counted for
// a DAG that it did not work on is dropped, so that the DAG does not change.
func StopClocks(t *state.Tree, now time.Time, dags []schemas.Ref, since time.Time, worked map[schemas.Ref]bool) []*state.Entry {
	var out []*state.Entry
	start, at := schemas.NewTime(since), schemas.NewTime(now)
	for _, ref := range dags {
		e := t.Entry(ref)
		if e == nil || len(e.Claims) > 0 {
			continue
		}
		st, ok := e.Status().(*schemas.DAGStatus)
		if !ok || !spans.IsOpen(st.Active) {
			continue
		}
		n := len(st.Active) - 1
		stopped := append(slices.Clone(st.Active[:n]), schemas.Span{From: st.Active[n].From, To: at})
		switch idle := !worked[ref] && !stopped[n].From.Before(start.Time); {
		case n > 0 && (idle || spans.Empty(stopped[n])):
			stopped = stopped[:n]
		case spans.Empty(stopped[n]):
			continue // Without any span, it would count from the start
		}
		status, entry := *st, *e
		status.Active = stopped
		entry.SetStatus(&status)
		out = append(out, &entry)
	}
	return out
}

// firstAfter is the first recorded moment after the given one, else now.
func (f *fold) firstAfter(at schemas.Time, runs, waits []schemas.Span, times []schemas.Time) schemas.Time {
	first := schemas.NewTime(f.Now)
	sooner := func(t schemas.Time) {
		if t.After(at.Time) && t.Before(first.Time) {
			first = t
		}
	}
	for _, s := range slices.Concat(runs, waits) {
		sooner(s.From)
	}
	for _, t := range times {
		sooner(t)
	}
	return schemas.Later(first, at)
}

// continued unites the known spans, the last of which is open, with the recorded ones. Without a record, the open span
// continues while the DAG works, and otherwise ends now, if the cause of the halt has no time.
func (f *fold) continued(known, told []schemas.Span, working, paused bool) []schemas.Span {
	now := schemas.NewTime(f.Now)
	if n := len(known); n > 0 {
		open := known[n-1].From
		known = slices.Clone(known[:n-1])
		halted := !working && !f.gate.Open && !paused
		i := slices.IndexFunc(told, func(s schemas.Span) bool { return s.To.IsZero() || s.To.After(open.Time) })
		switch {
		case i >= 0:
			known = append(known, schemas.Span{From: open, To: told[i].From})
			if end := told[len(told)-1].To; halted && !end.IsZero() {
				known = append(known, schemas.Span{From: end, To: now})
			}
		case working:
			known = append(known, schemas.Span{From: open})
		case halted:
			known = append(known, schemas.Span{From: open, To: now})
		}
	}
	all := spans.Unite(append(known, told...))
	if working && !spans.IsOpen(all) {
		all = spans.Unite(append(all, schemas.Span{From: now}))
	}
	return all
}

// runSpans finds the times in which nodes ran, under whatever key; -1 is a node that is gone.
func (f *fold) runSpans(found func(i int32, s schemas.Span)) {
	add := func(node string, from, to schemas.Time) {
		if from.IsZero() || from.Before(f.start.Time) {
			return
		}
		i, ok := f.p.Index[node]
		if !ok {
			i = -1
		}
		found(i, schemas.Span{From: from, To: to})
	}
	for _, r := range f.Runs() {
		if !r.FinishedAt.IsZero() {
			add(r.Node, r.StartedAt, r.FinishedAt)
		}
	}
	for i := range f.Claims {
		c := &f.Claims[i]
		if at, ok := f.p.Index[c.Node]; !ok || f.next[at].State == schemas.NodeRunning { // else it is about to be ended
			add(c.Node, c.StartedAt, schemas.Time{})
		}
	}
	for i := range f.next {
		if s := f.next[i]; f.recs[i].last == nil && !s.FinishedAt.IsZero() { // its records were pruned
			add(f.p.Spec.Nodes[i].Name, s.StartedAt, s.FinishedAt)
		}
	}
}

// halts tells from actions when nothing might start.
type halts struct {
	pauses []schemas.Span           // of the DAG or its session
	holds  map[int32][]schemas.Span // of nodes: held, skipped or cancelled
	// retried is when a node was last retried, and approvals are those since then, except those that released a held
	// node.
	retried   map[int32]schemas.Time
	approvals map[int32][]schemas.AppliedAction
	times     []schemas.Time // of all actions
}

// halts reads the actions that were applied to the DAG and its session.
func (f *fold) halts() halts {
	h := halts{holds: map[int32][]schemas.Span{}, retried: map[int32]schemas.Time{}, approvals: map[int32][]schemas.AppliedAction{}}
	for _, a := range f.applied {
		if a.Refused != "" {
			continue
		}
		h.times = append(h.times, a.At)
		switch {
		case a.Verb == schemas.VerbPause && a.Node == "":
			h.pauses = begin(h.pauses, a.At)
		case a.Verb == schemas.VerbResume && a.Node == "":
			h.pauses = end(h.pauses, a.At)
		default:
			h.node(f, a)
		}
	}
	var phase []schemas.Span
	for _, a := range f.sessionActions() {
		h.times = append(h.times, a.At)
		switch a.Verb {
		case schemas.VerbPause, schemas.VerbCancel:
			phase = begin(phase, a.At)
		case schemas.VerbResume, schemas.VerbRetry:
			phase = end(phase, a.At)
		}
	}
	h.pauses = spans.Unite(append(h.pauses, phase...))
	return h
}

// node notes an action about one node and those that it joins, or about all.
func (h *halts) node(f *fold, a schemas.AppliedAction) {
	meant := map[int32]bool{}
	if i, ok := f.p.Index[a.Node]; ok {
		f.addParts(meant, i)
	}
	for i := range f.next {
		at := int32(i)
		if a.Node != "" && !meant[at] {
			continue
		}
		switch a.Verb {
		case schemas.VerbHold, schemas.VerbPause, schemas.VerbSkip, schemas.VerbCancel:
			h.holds[at] = begin(h.holds[at], a.At)
		case schemas.VerbApprove:
			if !spans.IsOpen(h.holds[at]) {
				h.approvals[at] = append(h.approvals[at], a)
			}
			h.holds[at] = end(h.holds[at], a.At)
		case schemas.VerbResume:
			h.holds[at] = end(h.holds[at], a.At)
		case schemas.VerbRetry:
			h.holds[at] = end(h.holds[at], a.At)
			h.retried[at], h.approvals[at] = a.At, nil
		}
	}
}

// begin opens a span, if none is open.
func begin(set []schemas.Span, at schemas.Time) []schemas.Span {
	if spans.IsOpen(set) {
		return set
	}
	return append(set, schemas.Span{From: at})
}

// end ends the open span, if there is one.
func end(set []schemas.Span, at schemas.Time) []schemas.Span {
	if spans.IsOpen(set) {
		set[len(set)-1].To = at
	}
	return set
}

// waitSpans finds the times from when nodes could start to when they ended, without those in which they were halted or
// waited for an answer. They include runs, back-off and waits for a place.
func (f *fold) waitSpans(h halts, found func(i int32, s schemas.Span)) {
	ends := make([]schemas.Time, len(f.next)) // zero: not ended
	for _, i := range f.p.Order {
		ready := f.readyAt(i, ends, h)
		if ready.IsZero() {
			continue
		}
		s := f.next[i]
		ends[i] = f.endOf(i, ready, h)
		span := schemas.Span{From: ready}
		if s.State == schemas.NodeSucceeded || s.State == schemas.NodeFailed {
			span.To = ends[i]
		}
		if f.b.Human[i] || spans.Empty(span) {
			continue
		}
		waits := spans.Without([]schemas.Span{span}, spans.Unite(slices.Concat(h.pauses, h.holds[i], f.askSpans(i), f.permissionSpans(i), f.gateSpan(i, ready), f.commitSpan(i))))
		if n := len(waits); n > 0 && spans.IsOpen(waits) && !works(s) {
			waits = waits[:n-1] // nothing tells until when
		}
		for _, s := range waits {
			found(i, s)
		}
	}
}

// readyAt is when the needs of node i had ended; zero while one has not.
func (f *fold) readyAt(i int32, ends []schemas.Time, h halts) schemas.Time {
	ready := f.start
	for _, to := range f.p.Needs[i] {
		if ends[to].IsZero() {
			return schemas.Time{}
		}
		ready = schemas.Later(ready, ends[to])
	}
	if first := f.firstStart(i); f.gens[i] > 0 && (first.IsZero() || !h.retried[i].After(first.Time)) {
		ready = schemas.Later(ready, h.retried[i]) // it waits under a key that a retry made
	}
	return ready
}

// firstStart is when the first run under the present key started that is known; zero: none has.
func (f *fold) firstStart(i int32) schemas.Time {
	first := f.next[i].StartedAt
	for _, r := range f.runsOf(i) {
		if first.IsZero() || r.StartedAt.Before(first.Time) {
			first = r.StartedAt
		}
	}
	return first
}

// endOf is when node i ended, if known; zero while it has not.
func (f *fold) endOf(i int32, ready schemas.Time, h halts) schemas.Time {
	s := f.next[i]
	switch s.State {
	case schemas.NodeSucceeded, schemas.NodeFailed:
		if s.Reason == settle.ReasonApproved {
			for _, a := range h.approvals[i] {
				if a.Node != "" || !a.At.Before(ready.Time) { // one about the whole DAG is about what waits then
					return schemas.Later(ready, a.At)
				}
			}
			return ready
		}
		return schemas.Later(ready, s.FinishedAt)
	case schemas.NodeSkipped, schemas.NodeCancelled:
		at := schemas.Later(ready, s.FinishedAt)
		if holds := h.holds[i]; spans.IsOpen(holds) {
			at = schemas.Later(at, holds[len(holds)-1].From)
		}
		return at
	}
	return schemas.Time{}
}

// permissionSpans are the times between a run that waited for a permission and the next one.
func (f *fold) permissionSpans(i int32) (out []schemas.Span) {
	runs := f.runsOf(i)
	for k, r := range runs {
		if r.Outcome != schemas.OutcomeNotPermitted {
			continue
		}
		span := schemas.Span{From: r.FinishedAt}
		switch c := f.recs[i].claim; {
		case k+1 < len(runs):
			span.To = runs[k+1].StartedAt
		case c != nil && !c.StartedAt.IsZero():
			span.To = c.StartedAt
		case f.next[i].State != schemas.NodeBlocked:
			continue
		}
		out = append(out, span)
	}
	return out
}

// answeredAt is when the last word fell on a question of node i after the given time and not after next; zero: none did.
func (f *fold) answeredAt(i int32, after, next schemas.Time) schemas.Time {
	var at schemas.Time
	for _, q := range f.recs[i].questions {
		for _, turn := range settle.StatusAs[schemas.ClarificationRequestStatus](f.World, q.Entry).Thread {
			if t := turn.Timestamp; t.After(after.Time) && (next.IsZero() || !t.After(next.Time)) {
				at = schemas.Later(at, t)
			}
		}
	}
	return at
}

// deadline is when the DAG's time is up if it goes on working; zero where it has no limit, and while it stands still.
// Before the first start the time runs from now.
func (f *fold) deadline() time.Time {
	limit := f.p.Spec.Policy.Timeout
	switch {
	case limit == nil:
		return time.Time{}
	case f.start.IsZero():
		return f.Now.Add(limit.Std())
	}
	return spans.Reached(f.active, limit.Std())
}

// expired reports whether the DAG's time is up. Nothing is ended by that while the DAG may not run anyway, and how a DAG
// ended stands.
func (f *fold) expired() bool {
	switch {
	case f.p.Spec.Policy.Timeout == nil || f.start.IsZero():
		return false
	case over(f.old) && !f.reopened():
		return slices.ContainsFunc(f.was, func(s *schemas.NodeStatus) bool { return s.Reason == settle.ReasonDAGTimeout })
	case !f.gate.Open:
		return false
	}
	at := f.deadline()
	if at.IsZero() || f.Now.Before(at) && !spans.IsOpen(f.active) {
		return false
	}
	if f.Now.Before(at) {
		f.wake(at)
		return false
	}
	return true
}

// startOf is the start of the present generation of work, from the status or else from the claims and records that the
// status does not know.
func (f *fold) startOf() schemas.Time {
	if !f.old.StartedAt.IsZero() && !f.reopened() {
		return f.old.StartedAt
	}
	first := f.began
	for i := range f.recs {
		first = schemas.Earlier(first, f.recs[i].since)
	}
	return first
}

// sessionActions are the actions on the DAG's session, those that it applies now included.
func (f *fold) sessionActions() []schemas.AppliedAction {
	var out []schemas.AppliedAction
	if e := f.Tree.Entry(schemas.SessionKind.Ref(f.p.Spec.Session)); e != nil {
		if st, ok := e.Status().(*schemas.SessionStatus); ok {
			out = slices.Clone(actions.Kept(f.Tree, st.Actions)) // as the session is about to keep them
		}
	}
	if s := sessions.SlotsOf(f.World).SlotOf(f.p.Spec.Session); s != nil {
		for _, a := range s.Acts {
			out = append(out, a.Record(schemas.NewTime(f.Now)))
		}
	}
	return out
}

// askSpans are the times between a run that ended with a question and the answer, or the next run.
func (f *fold) askSpans(i int32) []schemas.Span {
	if f.recs[i].asked == 0 {
		return nil
	}
	var out []schemas.Span
	runs := f.runsOf(i)
	for k, r := range runs {
		if !f.pauses(i, r) {
			continue
		}
		var next schemas.Time
		if k+1 < len(runs) {
			next = runs[k+1].StartedAt
		} else if c := f.recs[i].claim; c != nil {
			next = c.StartedAt
		}
		answered := f.answeredAt(i, r.FinishedAt, next)
		switch {
		case !answered.IsZero():
			next = answered
		case next.IsZero() && f.next[i].State == schemas.NodeQueued:
			continue
		}
		if f.next[i].State == schemas.NodeBlocked && k+1 == len(runs) {
			next = schemas.Time{}
		}
		out = append(out, schemas.Span{From: r.FinishedAt, To: next})
	}
	return spans.Unite(out)
}

// timeCalls finds the times that count for each call with a limit. all are those of nodes, by position.
func (f *fold) timeCalls(h halts, all map[int32][]schemas.Span) {
	still := spans.Gaps(f.active)
	if n := len(f.active); n > 0 && !spans.IsOpen(f.active) {
		still = append(still, schemas.Span{From: f.active[n-1].To})
	}
	for k := range f.p.Timed {
		c := &f.p.Timed[k]
		var retried, first schemas.Time
		for _, i := range c.Nodes {
			retried = schemas.Later(retried, h.retried[i])
		}
		for _, i := range c.Nodes {
			if at := f.firstStart(i); !at.IsZero() && !at.Before(schemas.Later(retried, f.start).Time) {
				first = schemas.Earlier(first, at)
			}
		}
		if first.IsZero() {
			continue
		}
		var times []schemas.Span
		for _, i := range c.Nodes {
			for _, s := range all[i] {
				times = append(times, schemas.Span{From: schemas.Later(s.From, first), To: s.To})
			}
		}
		f.callTimes[k] = spans.Without(spans.Unite(times), still)
	}
}
