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
	a := archiver{ended: endedThreads(t)}
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

// archiver finds when specs had their effect.
type archiver struct {
	ended map[string]time.Time // threads, by the name and the id of their requests
}

// endedThreads are the threads that ended, and when.
func endedThreads(t *state.Tree) map[string]time.Time {
	ended := map[string]time.Time{}
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		st, ok := e.Status().(*schemas.ClarificationRequestStatus)
		if !ok || e.Broken() {
			continue
		}
		at := st.ResolvedAt.Time
		if st.Phase == schemas.ClarificationAbandoned {
			at = conditionSince(st)
		}
		if !at.IsZero() && (st.Phase == schemas.ClarificationResolved || st.Phase == schemas.ClarificationAbandoned) {
			ended[e.Name], ended[st.ID] = at, at
		}
	}
	return ended
}

// isRefused reports whether a reply could not be taken when it came: nothing more becomes of it.
func isRefused(st schemas.Status) bool {
	c := st.Base().Condition(schemas.Ready)
	return c != nil && c.Reason == ReasonRefused
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
	switch spec := e.Object.Spec().(type) {
	case *schemas.ActionSpec:
		st, applied := e.Status().(*schemas.ActionStatus)
		if !applied || st.Phase != schemas.ActionApplied || st.ObservedDigest != e.Object.Digest {
			return at, false
		}
		at = conditionSince(st)
	case *schemas.ReplySpec:
		if !e.HasStatus() || isRefused(e.Status()) {
			at = a.ended[spec.Clarification]
		}
	case *schemas.ObservationSpec:
		if !e.HasStatus() && (e.Accepted == "" || e.Accepted == e.Object.Digest) {
			at = spec.Timestamp.Time
		}
	}
	return at, !at.IsZero()
}
