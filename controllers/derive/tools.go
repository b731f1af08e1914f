package derive

import (
	"maps"
	"slices"

	"reconcile.dev/reconcile/controllers/research"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// tools adds the DAGs that ask which tools to use, where changes of a DAG wait for that, and the preferences that such a DAG led to.
func (d *deriver) tools(e *state.Entry) {
	if e.Object == nil || e.RunCount() == 0 {
		return
	}
	if all := schemas.UndecidedOf(e.Brief(), e.Status); len(all) > 0 {
		d.askTools(sessionWith(e), all)
	}
	if research.IsDAG(e.Name) {
		found := research.Preferences(d.tree, e)
		for _, name := range slices.Sorted(maps.Keys(found)) {
			d.add(schemas.PreferenceKind, name, found[name])
		}
	}
}

// research adds the DAGs that ask which tools to use, where the verification of a session waits for that.
func (d *deriver) research(e *state.Entry) {
	if st, ok := e.Status().(*schemas.SessionStatus); ok && e.Object != nil && st.Quality != nil {
		d.askTools(e.Name, st.Quality.Undecided)
	}
}

func (d *deriver) askTools(session string, all []schemas.ToolQuestion) {
	found := research.DAGs(d.tree, session, all)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		d.add(schemas.DAGKind, name, found[name])
	}
}
