package controllers

import (
	"path"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
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
	for _, k := range settle.TableOf(t) {
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
