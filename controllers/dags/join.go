package dags

import (
	"encoding/json"
	"fmt"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// A node that joins does nothing itself: it represents the elements of a matrix, or for the nodes of a called DAG. It succeeds when all
// of them let their dependents go on, and its result has theirs by their short names.

// judgeJoin finds the state of a node that joins others.
func (f *fold) judgeJoin(i int32) {
	made := f.p.Spec.Nodes[i].Made
	s := f.next[i]
	s.Result, s.Output, s.Message, s.StartedAt, s.FinishedAt, s.ExitCode, s.Attempts = nil, "", "", schemas.Time{}, schemas.Time{}, nil, 0
	need, all := f.unmet(i)
	switch {
	case f.verbs[i] == schemas.VerbSkip:
		f.set(i, schemas.NodeSkipped, settle.ReasonSkippedByAction, "an action skipped it")
	case !all:
		f.set(i, schemas.NodePending, "", "")
	case len(made.Joins) == 0 && need >= 0:
		f.leaveOut(i, need)
	case made.Problem != "":
		f.set(i, schemas.NodeFailed, settle.ReasonWhenFailed, made.Problem)
	case len(made.Open) > 0:
		f.waitForParts(i)
	case need >= 0:
		f.joinFails(i)
	default:
		f.joinSucceeds(i)
	}
}

// waitForParts is the state of a join whose nodes are made from results, when those who leave these have ended.
func (f *fold) waitForParts(i int32) {
	for _, name := range f.p.Spec.Nodes[i].Made.Open {
		if to, ok := f.p.Index[name]; ok && f.next[to].State != schemas.NodeSucceeded {
			f.set(i, schemas.NodeSkipped, settle.ReasonWhenFalse, name+", whose result it is made of, was left out")
			return
		}
	}
	f.set(i, schemas.NodePending, "", "") // they are made in the next round
}

// joinFails ends a join one of whose nodes did not succeed.
func (f *fold) joinFails(i int32) {
	if c := f.callsOver[i]; c != nil && i == c.Join {
		f.set(i, schemas.NodeFailed, settle.ReasonCallTimeout, callOver(c))
		return
	}
	all, failed, first := f.partsOf(i)
	if failed == 0 {
		need, _ := f.unmet(i)
		f.leaveOut(i, need)
		return
	}
	f.set(i, schemas.NodeFailed, settle.ReasonNeedFailed, fmt.Sprintf("%d of %s failed: %s%s", failed,
		schemas.Count(all, "node"), first, schemas.AndOthers(failed-1)))
}

// partNodes are the nodes for which a join stands. One that stands for none needs what its author wrote.
func (f *fold) partNodes(i int32) []int32 {
	if made := f.p.Spec.Nodes[i].Made; made == nil || len(made.Joins) == 0 {
		return nil
	}
	return f.p.Needs[i]
}

// addParts adds node i, and those for which it stands, also by other joins.
func (f *fold) addParts(to map[int32]bool, i int32) {
	to[i] = true
	for _, part := range f.partNodes(i) {
		f.addParts(to, part)
	}
}

// partsOf counts the nodes for which a join stands, also by other joins, and those of them that failed; first is one of these.
func (f *fold) partsOf(i int32) (all, failed int, first string) {
	for _, to := range f.partNodes(i) {
		n, failures, name := 1, 0, f.p.Spec.Nodes[to].Name
		if len(f.partNodes(to)) > 0 {
			if n, failures, name = f.partsOf(to); f.next[to].Reason == settle.ReasonCallTimeout {
				failures, name = max(failures, 1), f.p.Spec.Nodes[to].Name
			}
		} else if f.next[to].State == schemas.NodeFailed {
			failures = 1
		}
		if all, failed = all+n, failed+failures; first == "" && failures > 0 {
			first = name
		}
	}
	return all, failed, first
}

func (f *fold) joinSucceeds(i int32) {
	n, s := &f.p.Spec.Nodes[i], f.next[i]
	results := map[string]json.RawMessage{}
	parts := f.partNodes(i)
	skipped := len(parts) > 0
	for _, to := range parts {
		skipped = skipped && f.next[to].State == schemas.NodeSkipped
		s.StartedAt, s.FinishedAt = schemas.Earlier(s.StartedAt, f.next[to].StartedAt), schemas.Later(s.FinishedAt, f.next[to].FinishedAt)
	}
	for _, j := range n.Made.Joins {
		if at, ok := f.p.Index[j.Node]; ok && len(f.next[at].Result) > 0 {
			results[j.Name] = f.next[at].Result
		}
	}
	if len(results) > 0 {
		s.Result, _ = json.Marshal(results) // they were valid when they were recorded
	}
	if skipped {
		f.set(i, schemas.NodeSkipped, settle.ReasonWhenFalse, "all that it stands for was left out")
		return
	}
	f.set(i, schemas.NodeSucceeded, "", "")
}
