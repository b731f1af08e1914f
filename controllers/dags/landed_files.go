package dags

import (
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// LandedFiles lists the files that the nodes of a session changed, by the records of the runs that landed: paths below the root of the
// repository, sorted, each once. more is the number of changes of files that the records only count.
func LandedFiles(t *state.Tree, session string) (files []string, more int) {
	files = []string{}
	for _, e := range t.Entries(schemas.DAGKind.Name) {
		if spec := state.SpecOf[*schemas.DAGSpec](e); spec == nil || spec.Session != session {
			continue
		}
		runs := e.Runs()
		landed := map[string]bool{}
		for _, r := range runs {
			if r.Lands != "" && r.Outcome == schemas.OutcomeSucceeded {
				landed[r.Lands] = true
			}
		}
		for _, r := range runs {
			if w := r.Workspace; r.IsWork() && w != nil && landed[r.Key] {
				files = append(files, w.Files...)
				more += max(0, w.Changed-len(w.Files))
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files), more
}
