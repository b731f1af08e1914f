package controllers

import (
	"path"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Archivable lists the spec files that programs wrote and that have had their effect for longer than archive.after:
// applied actions, replies of ended threads, and observations that the memory holds. They go to the archive, where they are
// read as before. next is when another one is due; zero means never.
func Archivable(t *state.Tree, now time.Time) (moves []state.Move, next time.Time) {
	after := t.Settings().Archive.After.Std()
	if after == 0 {
		return nil, time.Time{}
	}
	folders := t.Settings().Folders
	a := archiver{matterIndex{tree: t}}
	for _, k := range []schemas.Kind{schemas.ActionKind, schemas.ReplyKind, schemas.ObservationKind} {
		for _, e := range t.Entries(k.Name) {
			if e.Object == nil || !strings.HasPrefix(e.Object.Path, folders.Specs+"/") {
				continue
			}
			at, ok := a.doneAt(e)
			if !ok {
				continue
			}
			if due := at.Add(after); due.After(now) {
				if next.IsZero() || due.Before(next) {
					next = due
				}
				continue
			}
			to := state.ArchivePath(folders.State, k.Plural, at, path.Base(e.Object.Path))
			moves = append(moves, state.Move{From: e.Object.Path, To: to})
		}
	}
	return moves, next
}

// archiver finds when specs had their effect. Of most it decodes nothing: a tree may have tens of thousands.
type archiver struct{ matters matterIndex }

// endedAt is when the thread that a reply calls by name or number has ended; zero where it has not.
func (a *archiver) endedAt(clarification string) time.Time {
	e := a.matters.request(clarification)
	if e == nil || e.Broken() {
		return time.Time{}
	}
	switch st := requestStatusOf(e); st.Phase {
	case schemas.ClarificationResolved:
		return st.ResolvedAt.Time
	case schemas.ClarificationAbandoned:
		return conditionSince(st)
	}
	return time.Time{}
}

// conditionSince is when the Ready condition of an object became what it is.
func conditionSince(st schemas.Status) time.Time {
	if c := st.Base().Condition(schemas.Ready); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// doneAt is when a spec had its effect; ok is false while it has not, or something is wrong with it. It follows from files
// alone, so that all clones agree.
func (a *archiver) doneAt(e *state.Entry) (at time.Time, ok bool) {
	switch e.Kind {
	case schemas.ActionKind.Name:
		if b := e.Brief(); b.Phase != schemas.ActionApplied || b.ObservedDigest != e.Object.Digest {
			return at, false
		}
		at = conditionSince(e.Status())
	case schemas.ReplyKind.Name:
		if !e.HasStatus() || RefusedReply(e) {
			at = a.endedAt(textIn(e.Object.Canonical(), "clarification"))
		}
	case schemas.ObservationKind.Name:
		if !e.HasStatus() && (e.Accepted == "" || e.Accepted == e.Object.Digest) {
			// One that cannot be read so is not due.
			at, _ = time.Parse(time.RFC3339, textIn(e.Object.Canonical(), "timestamp"))
		}
	}
	return at, !at.IsZero()
}
