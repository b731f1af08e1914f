package sessions

import (
	"iter"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// LandedFiles lists the files that the nodes of a session changed, by the records of the runs that landed: paths below the root of the
// repository, sorted, each once. more is the number of changes of files that the records only count.
func LandedFiles(t *state.Tree, session string) (files []string, more int) {
	files = []string{}
	for r := range landedRuns(t, session) {
		files = append(files, r.Workspace.Files...)
		more += max(0, r.Workspace.Changed-len(r.Workspace.Files))
	}
	slices.Sort(files)
	return slices.Compact(files), more
}

// landedRuns yields the runs of a session whose commits landed.
func landedRuns(t *state.Tree, session string) iter.Seq[*schemas.Run] {
	return func(yield func(*schemas.Run) bool) {
		for _, e := range dagsOf(t, schemas.SessionKind.Ref(session)) {
			runs := e.Runs()
			landed := map[string]bool{}
			for _, r := range runs {
				if r.Lands != "" && r.Outcome == schemas.OutcomeSucceeded {
					landed[r.Lands] = true
				}
			}
			for _, r := range runs {
				if r.IsWork() && r.Workspace != nil && landed[r.Key] && !yield(r) {
					return
				}
			}
		}
	}
}

// changedBy says which agent of a session changed each file last, by the landed commits.
func changedBy(t *state.Tree, session string) map[string]string {
	last, at := map[string]string{}, map[string]schemas.Time{}
	for r := range landedRuns(t, session) {
		for _, f := range r.Workspace.Files {
			if was, ok := at[f]; !ok || was.Before(r.FinishedAt.Time) {
				last[f], at[f] = r.Agent, r.FinishedAt
			}
		}
	}
	return last
}

// baseOf is the commit that the first task of a session began with, of those that landed; "" for none.
func baseOf(t *state.Tree, session string) (base string) {
	var at schemas.Time
	for r := range landedRuns(t, session) {
		if base == "" || r.StartedAt.Before(at.Time) {
			base, at = r.Workspace.Base, r.StartedAt
		}
	}
	return base
}

// inPlace reports whether an agent of a session worked in the tree itself.
func inPlace(t *state.Tree, session string) bool {
	for _, e := range dagsOf(t, schemas.SessionKind.Ref(session)) {
		if e.RunsHave(state.OfAgent) && slices.ContainsFunc(e.Runs(), func(r *schemas.Run) bool {
			return r.Agent != "" && r.IsWork() && (r.Workspace == nil || r.Workspace.Kind == schemas.WorkspaceInPlace)
		}) {
			return true
		}
	}
	return false
}
