package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// nodeRef names a node of an object.
type nodeRef struct {
	owner schemas.Ref
	node  string
}

// heldWorkspace is a workspace that cannot be made yet.
type heldWorkspace struct {
	workspace *settle.Workspace
	why       string
}

// pollCommits is how often a watcher asks git whether a workspace can be made by now: a commit changes no file of the tree.
const pollCommits = 2 * time.Second

// whyNotCommitted implements settle.Decider.NotCommitted.
func (s *run) whyNotCommitted(owner schemas.Ref, node string) string {
	return s.notCommitted[nodeRef{owner, node}].why
}

// checkCommitted asks whether the workspaces can be made of the nodes that are about to start, and of those that wait for
// it. It reports whether an answer changed: then the decision is made again.
func (s *run) checkCommitted(ctx context.Context) (changed bool, err error) {
	if s.loop.NotCommitted == nil {
		return false, nil
	}
	asked := map[nodeRef]*settle.Workspace{}
	for node, held := range s.notCommitted {
		asked[node] = held.workspace
	}
	for _, e := range s.wanted() {
		if c := e.Command(); c != nil && c.Workspace != nil && c.Workspace.Declared && s.mine[e.Key].Key == "" {
			asked[nodeRef{e.Owner, e.Node}] = c.Workspace
		}
	}
	answers := map[string]string{}
	for node, w := range asked {
		key := w.Target + "\x00" + w.Spec + "\x00" + strings.Join(w.Inputs, "\x00")
		why, known := answers[key]
		if !known {
			if why, err = s.loop.NotCommitted(ctx, w); err != nil {
				return false, fmt.Errorf("ask git for the commit that %s of %s starts at: %w", node.node, node.owner, err)
			}
			answers[key] = why
		}
		if why == s.notCommitted[node].why {
			continue
		}
		changed = true
		s.touch(node.owner)
		if why == "" {
			delete(s.notCommitted, node)
		} else {
			s.notCommitted[node] = heldWorkspace{w, why}
		}
	}
	return changed, nil
}

// touchNotCommitted has the objects decided again that wait for a commit.
func (s *run) touchNotCommitted() {
	for _, e := range s.tree.Active(schemas.DAGKind.Name) {
		if !e.Brief().Blocked {
			continue
		}
		for _, n := range schemas.NodesIn(e.Status()) {
			if n.State == schemas.NodeBlocked && n.Reason == settle.ReasonNotCommitted {
				s.touch(e.Ref)
				break
			}
		}
	}
}

// commitWake is now if a node waits for a commit: the next run asks git again. Zero: none waits.
func (s *run) commitWake() time.Time {
	if len(s.notCommitted) == 0 {
		return time.Time{}
	}
	return s.loop.Now()
}
