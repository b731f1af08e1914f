package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// heldTask is a task that cannot be performed yet.
type heldTask struct {
	task settle.Task
	why  string
	// until is when a watcher tries again; zero: as soon as the answer changes.
	until time.Time
}

// pollCommits is how often a watcher asks git whether a workspace can be made by now: a commit changes no file of the tree.
const pollCommits = 2 * time.Second

// whyNotReady says of the nodes that are held why.
func (s *run) whyNotReady() map[settle.NodeRef]string {
	why := make(map[settle.NodeRef]string, len(s.notReady))
	for node, held := range s.notReady {
		why[node] = held.why
	}
	return why
}

// checkReady asks whether the workspaces can be made from the nodes that are about to start, whether a file of the user is in the
// way of a commit that is about to land, and the same of the nodes that wait for it. It reports whether an answer changed: then the decision is made again.
func (s *run) checkReady(ctx context.Context) (changed bool, err error) {
	if s.loop.NotReady == nil {
		return false, nil
	}
	answers := map[string]string{}
	for node, task := range s.questionable() {
		held := s.notReady[node]
		if !held.until.IsZero() && s.loop.Now().Before(held.until) {
			continue
		}
		key := questionKey(task)
		why, known := answers[key]
		if !known {
			if why, err = s.loop.NotReady(ctx, task); err != nil {
				return false, fmt.Errorf("ask git whether %s of %s can go on: %w", node.Node, node.Owner, err)
			}
			answers[key] = why
		}
		if why == held.why {
			continue
		}
		changed = true
		s.touch(node.Owner)
		if why == "" {
			delete(s.notReady, node)
		} else {
			s.notReady[node] = heldTask{task: task, why: why}
		}
	}
	return changed, nil
}

// questionable are the tasks to ask about.
func (s *run) questionable() map[settle.NodeRef]settle.Task {
	asked := map[settle.NodeRef]settle.Task{}
	for node, held := range s.notReady {
		asked[node] = held.task
	}
	for _, e := range s.wanted() {
		if s.mine[e.Key].Key != "" {
			continue
		}
		c := e.Command()
		if _, lands := e.Task.(*settle.Land); lands || c != nil && c.Workspace != nil && c.Workspace.Declared {
			asked[settle.NodeRef{Owner: e.Owner, Node: e.Node}] = e.Task
		}
	}
	return asked
}

// questionKey is equal for tasks with equal answers.
func questionKey(task settle.Task) string {
	switch t := task.(type) {
	case *settle.Command:
		return workspaceKey(t.Workspace)
	case *settle.AgentTurn:
		return workspaceKey(t.Workspace)
	case *settle.HTTPTurn:
		return workspaceKey(t.Workspace)
	case *settle.Land:
		return "land " + t.Run
	}
	return ""
}

func workspaceKey(w *settle.Workspace) string {
	return w.Target + "\x00" + w.Spec + "\x00" + strings.Join(w.Inputs, "\x00")
}

// holdLanding keeps a landing from starting again at once, because the performer found it in the way of a person.
func (s *run) holdLanding(e settle.Effect, why string) {
	node := settle.NodeRef{Owner: e.Owner, Node: e.Node}
	until := s.loop.Now().Add(time.Hour) // a one-shot run ends before
	if s.watching {
		until = s.loop.Now().Add(pollLandings)
	}
	s.notReady[node] = heldTask{task: e.Task, why: why, until: until}
	s.touch(e.Owner)
}

// pollLandings is how often a watcher tries to land a commit again that a file is in the way of, which no question showed.
const pollLandings = 30 * time.Second

// waitsOutside reports whether a reason of a node is one that the files of the tree do not tell: only git or a check does.
func waitsOutside(reason string) bool {
	return reason == settle.ReasonNotCommitted || reason == settle.ReasonTreeDirty || reason == settle.ReasonAgentUnhealthy ||
		reason == settle.ReasonToolUnknown
}

// touchNotReady has the objects decided again that wait for git, or for an agent that a check found not to work.
func (s *run) touchNotReady() {
	for _, e := range s.tree.Active(schemas.DAGKind.Name) {
		if !e.Brief().Blocked {
			continue
		}
		for _, n := range schemas.NodesIn(e.Status()).All() {
			if n.State == schemas.NodeBlocked && waitsOutside(n.Reason) {
				s.touch(e.Ref)
				break
			}
		}
	}
}

// commitWake is now if a node waits for git: the next run asks git again. Zero: none waits.
func (s *run) commitWake() time.Time {
	if len(s.notReady)+len(s.unproved) == 0 {
		return time.Time{}
	}
	return s.loop.Now()
}
