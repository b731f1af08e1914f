package agents

import (
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Sandbox is how the programs of an agent are confined; nil: nothing does. An agent that works in a clone is confined unless its spec
// says otherwise; one that works in the tree, or in a work tree of the repository, only if its spec asks for it.
func Sandbox(a *schemas.AgentSpec, p *schemas.Profile, w *settle.Workspace) *settle.Sandbox {
	s := settle.Sandbox{}
	switch {
	case a == nil:
		return nil
	case a.Sandbox != nil:
		s.Sandbox = *a.Sandbox
	case w == nil:
		return nil
	case w.Kind == schemas.WorkspaceWorktree:
		s.Level = schemas.SandboxNone
	default:
		s.Default = true
	}
	if p != nil {
		s.Folders, s.FolderVars, s.Confined = p.Folders, p.PassEnv, p.Confined
	}
	return &s
}
