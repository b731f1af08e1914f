package dags

import (
	"fmt"
	"slices"

	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/schemas"
)

// culprit is the first node whose failure ends everything else, except those of without; "" for none.
func (f *fold) culprit(without map[int32]bool) string {
	for i := range f.next {
		if f.next[i].State == schemas.NodeFailed && !without[int32(i)] && !f.spared(int32(i)) {
			return f.p.Spec.Nodes[i].Name
		}
	}
	return ""
}

// retryIsLost says why a retry of node i, which has succeeded, would only cancel it; "" where it runs. A failure of what needs it is no
// reason, as that runs again, unless the retry is about the node alone.
func (f *fold) retryIsLost(i int32, alone bool) string {
	if !f.p.Spec.Policy.FailsFast() || f.p.CleansUp(i) || !readiness.NodeMet(f.next[i]) {
		return ""
	}
	again := map[int32]bool{}
	f.addParts(again, i)
	for _, k := range f.p.Order {
		if !alone && slices.ContainsFunc(f.p.Needs[k], func(need int32) bool { return again[need] }) {
			again[k] = true
		}
	}
	name := f.culprit(again)
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%s failed, and the policy is to fail fast, so that %s would be cancelled: retry %[1]s first, or the whole DAG",
		name, f.p.Spec.Nodes[i].Name)
}
