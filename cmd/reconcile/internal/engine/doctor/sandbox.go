package doctor

import (
	"context"
	"fmt"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/schemas"
)

// checkSandbox tries each level of a sandbox out, and looks for agents that would have another one than they need.
func checkSandbox(_ context.Context, e *Patient) (all []Finding) {
	best := e.Sandbox.Best()
	var lines []string
	for _, level := range sandbox.Levels {
		s := e.Sandbox.Support(level)
		switch {
		case s.Missing != "":
			lines = append(lines, level+": not available: "+s.Missing)
		case s.Network:
			lines = append(lines, level+": works; connections can be limited")
		default:
			lines = append(lines, level+": works; connections cannot be limited, the network is open")
		}
	}
	all = ok(fmt.Sprintf("best level: %s (%s)", best.Level, strings.Join(lines, "; ")))
	if e.tree == nil {
		return all
	}
	for _, entry := range e.tree.Entries(schemas.AgentKind.Name) {
		spec := schemas.SpecAs[*schemas.AgentSpec](entry.Object)
		if spec == nil {
			continue
		}
		s := spec.Sandbox
		if s == nil {
			s = &schemas.Sandbox{}
			if kind, _ := spec.WorkspaceKind(); kind != schemas.WorkspaceClone {
				continue
			}
		}
		found, err := e.Sandbox.Choose(s)
		switch {
		case err != nil:
			all = append(all, Finding{Level: Warn, Detail: fmt.Sprintf("%s: its runs fail: %v", entry.Ref, err),
				Fix: "make the level available, or change spec.sandbox"})
		case found.Level == schemas.SandboxNone && s.Level == "":
			all = append(all, Finding{Level: Warn, Detail: fmt.Sprintf("%s: nothing confines it; what it writes outside of its workspace is only found afterwards", entry.Ref),
				Fix: "install bubblewrap, or use Linux with Landlock"})
		}
	}
	return all
}
