package dags

import (
	"fmt"
	"maps"
	"slices"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// findTools finds the versions of the tools that node i declares. Where one is not known, the last one stands: a run must not start
// because something could not be looked at.
func (f *fold) findTools(i int32) {
	names := f.p.Spec.Nodes[i].Tools
	if len(names) == 0 {
		return
	}
	found := make(map[string]string, len(names))
	for _, name := range names {
		is, known := f.World.Tool(name)
		if is.Version == "" {
			if known {
				f.noteUntold(i, name, is)
			}
			is.Version = f.was[i].Tools[name]
		}
		if is.Version != "" {
			found[name] = is.Version
		}
	}
	f.tools[i] = found
}

// noteUntold notes why the version of a tool is not known.
func (f *fold) noteUntold(i int32, name string, is settle.Tool) {
	if f.untold[i] != "" {
		return
	}
	if f.untold == nil {
		f.untold = map[int32]string{}
	}
	f.untold[i] = fmt.Sprintf("the version of %s is not known: %s", name, is.Why)
}

// lacksTool reports whether node i waits since the version of a tool is not known; then it has set the state.
func (f *fold) lacksTool(i int32) bool {
	why := f.untold[i]
	if was := f.was[i]; !f.World.AsksTools() && was.Reason == settle.ReasonToolUnknown && was.Key == f.b.Keys[i] {
		why = was.Message // unknown; the status stands
	}
	if why == "" || f.recs[i].claim != nil {
		return false
	}
	f.set(i, schemas.NodeBlocked, settle.ReasonToolUnknown, why)
	return true
}

// changedTool says which version of a tool differs between two sets of them; "" if none does.
func changedTool(was, is map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(is)) {
		switch old, had := was[name]; {
		case !had || old == is[name]:
		case is[name] == settle.ToolUnasked:
			return fmt.Sprintf("the file of %s changed since it told %q; a run asks it again", name, old)
		default:
			return fmt.Sprintf("the version of %s changed from %q to %q", name, old, is[name])
		}
	}
	return ""
}
