package loop

import (
	"context"
	"maps"
	"slices"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Tools knows the versions of programs. The loop calls it in its turns, for the programs that nodes declare.
type Tools interface {
	// Version says which version a program has now. It is quick unless the program changed.
	Version(ctx context.Context, name string) settle.Tool
	// Save keeps what the calls of Version returned for the next process.
	Save() error
}

// tool implements settle.Decider.Tool.
func (s *run) tool(name string) (settle.Tool, bool) {
	is, asked := s.tools[name]
	if !asked {
		is.Why = "it is asked in the next turn"
	}
	return is, true
}

// noteTools keeps track of the DAGs that declare tools.
func (s *run) noteTools(ref schemas.Ref) {
	if s.loop.Tools == nil || ref.Kind != schemas.DAGKind.Name {
		return
	}
	var names []string
	if e := s.tree.Entry(ref); e != nil {
		names = schemas.ToolsOf(e.Object)
	}
	set(s.toolUsers, ref, names, len(names) > 0)
}

// findToolUsers looks for the DAGs that declare tools when a run begins.
func (s *run) findToolUsers() {
	for _, e := range s.tree.Active(schemas.DAGKind.Name) {
		s.noteTools(e.Ref)
	}
}

// askTools asks for the versions of the declared tools. It reports whether an answer changed: then the decision is made again.
func (s *run) askTools(ctx context.Context) (changed bool, err error) {
	if len(s.toolUsers) == 0 {
		return false, nil
	}
	users := map[string][]schemas.Ref{}
	for ref, names := range s.toolUsers {
		for _, name := range names {
			users[name] = append(users[name], ref)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(users)) {
		is := s.loop.Tools.Version(ctx, name)
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if was, asked := s.tools[name]; asked && was == is {
			continue
		}
		if s.tools[name], changed = is, true; is.Version == "" && s.loop.Warn != nil {
			s.loop.Warn("the version of " + name + " is not known, so that what depends on it does not start, and results on record stand: " + is.Why)
		}
		s.touch(users[name]...)
	}
	if !changed {
		return false, nil
	}
	return true, s.loop.Tools.Save()
}
