package dags

import "reconcile.dev/reconcile/schemas"

// tolerated reports whether node i failed, and the DAG goes on without it.
func (f *fold) tolerated(i int32) bool {
	return f.next[i].State == schemas.NodeFailed && f.p.Spec.Nodes[i].Optional
}

// spared reports whether node i failed, and the DAG does not fail with it.
func (f *fold) spared(i int32) bool {
	return f.next[i].State == schemas.NodeFailed && f.p.Spec.Nodes[i].FailsAlone()
}

// issueStatus is the status of the issue that the nodes of a workflow's run set: that of the last one, in execution order, that has started
// or succeeded. One in the next round of a loop has not started.
func (f *fold) issueStatus() string {
	status := ""
	if f.p.Spec.Workflow == nil {
		return ""
	}
	for _, i := range f.p.Order {
		set, s := f.p.Spec.Nodes[i].IssueStatus, f.next[i]
		switch {
		case set == nil:
		case s.State == schemas.NodeSucceeded && set.OnComplete != "":
			status = set.OnComplete
		case set.OnStart != "" && begun(s):
			status = set.OnStart
		}
	}
	return status
}

// begun reports whether a node has started.
func begun(s *schemas.NodeStatus) bool {
	switch s.State {
	case schemas.NodeRunning, schemas.NodeBlocked, schemas.NodeSucceeded, schemas.NodeFailed:
		return true
	}
	return !s.StartedAt.IsZero() && s.State != schemas.NodeSkipped
}
