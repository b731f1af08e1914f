package planchanges

import (
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// An architect is asked to agree that the work on a node is handed over. It has a short time: the work goes on without its word.

// mostAnswers bounds how many answers of an architect cannot be applied before a person decides.
const mostAnswers = 3

const (
	// handoffTry is how long an architect has for an answer. After try n the next one waits for 2^(n-1) seconds.
	handoffTry = 30 * time.Second
	// HandoffLimit is when a hand-off goes on without the word of an architect, whatever keeps that from coming.
	HandoffLimit = mostAnswers*handoffTry + 7*time.Second
)

// HandoffRequest is the plan change by which a hand-off of a node is requested.
func HandoffRequest(dag, node string, h *schemas.Handoff) *schemas.PlanChangeSpec {
	return &schemas.PlanChangeSpec{Target: schemas.DAGKind.Ref(dag).String(), Change: schemas.ChangeHandoff, Node: node, Reason: h.Reason, By: h.Agent, Run: h.Run, At: h.At}
}

// IsHandoff reports whether a plan change is the request for a hand-off of a node, and nothing else.
func IsHandoff(spec *schemas.PlanChangeSpec, dag, node string, h *schemas.Handoff) bool {
	want := HandoffRequest(dag, node, h)
	want.Default()
	return spec.Change == want.Change && spec.Target == want.Target && spec.Node == want.Node && spec.Run == want.Run && spec.By == want.By &&
		spec.Reason == want.Reason && spec.At.Equal(want.At.Time)
}

// Late says that the answer in a DAG is not waited for any more; "" if it is, or if the plan change is no request for a hand-off.
func Late(w *settle.World, change, dag string) string {
	e := w.Tree.Entry(schemas.PlanChangeKind.Ref(change))
	if spec := Spec(e); spec == nil || spec.Change != schemas.ChangeHandoff {
		return ""
	}
	if st := settle.StatusAs[schemas.PlanChangeStatus](w, e); st.Phase == "" || st.Phase == schemas.PlanPending && st.AnswerDAG == dag {
		return ""
	}
	return fmt.Sprintf("planchange/%s goes on without this answer: it came too late, or is no answer", change)
}
