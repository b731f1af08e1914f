package controllers

import (
	"path"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Archivable lists the spec files that were retired longer ago than archive.after. They go to the archive, where they are read
// as before. They are sorted by their paths. next is when another one is due; zero means never.
func Archivable(t *state.Tree, now time.Time) (moves []state.Move, next time.Time) {
	after := t.Settings().Archive.After.Std()
	if after == 0 {
		return nil, time.Time{}
	}
	folders := t.Settings().Folders
	for _, k := range TableOf(t) {
		if k.Retired == nil {
			continue
		}
		retired := k.Retired(t)
		for _, e := range t.Entries(k.Name) {
			if e.Object == nil || !strings.HasPrefix(e.Object.Path, folders.Specs+"/") {
				continue
			}
			at := retired(e)
			if at.IsZero() {
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
	slices.SortFunc(moves, func(a, b state.Move) int { return strings.Compare(a.From, b.From) })
	return moves, next
}

// The functions that follow decode few specs: a tree may have tens of thousands. Their results depend on files alone, so all
// clones agree.

// replyRetired is when the thread of a reply ended.
func replyRetired(t *state.Tree) func(*state.Entry) time.Time {
	index := &clarificationIndex{tree: t}
	return func(e *state.Entry) time.Time {
		if e.HasStatus() && !isRefusedReply(e) {
			return time.Time{}
		}
		request := index.request(textIn(e.Object.Canonical(), "clarification"))
		if request == nil || request.Broken() {
			return time.Time{}
		}
		switch st := requestStatusOf(request); st.Phase {
		case schemas.ClarificationResolved:
			return st.ResolvedAt.Time
		case schemas.ClarificationAbandoned:
			return conditionSince(st)
		}
		return time.Time{}
	}
}

// actionRetired is when an action was applied.
func actionRetired(*state.Tree) func(*state.Entry) time.Time {
	return func(e *state.Entry) time.Time {
		if b := e.Brief(); b.Phase != schemas.ActionApplied || b.ObservedDigest != e.Object.Digest {
			return time.Time{}
		}
		return conditionSince(e.Status())
	}
}

// observationRetired is when an observation was made that the memory holds.
func observationRetired(*state.Tree) func(*state.Entry) time.Time {
	return func(e *state.Entry) time.Time {
		if e.HasStatus() || e.Accepted != "" && e.Accepted != e.Object.Digest {
			return time.Time{}
		}
		at, err := time.Parse(time.RFC3339, textIn(e.Object.Canonical(), "timestamp"))
		if err != nil {
			return time.Time{} // one that cannot be read so is not due
		}
		return at
	}
}

// conditionSince returns when the Ready condition of an object got its present status.
func conditionSince(st schemas.Status) time.Time {
	if c := st.Base().Condition(schemas.Ready); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}
