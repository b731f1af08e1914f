package clarifications

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

const fromRun = "run/" // begins the source of what a run said

// Takes returns the question that a run of a node asked: its own request, or an earlier one to the same agent of which
// this is the next round. It is nil while that request is missing, and if the run asked nothing.
//
// It uses only records and fields that do not change any more, so its result is the same before and after the question
// was added: a question that was closed when the run started is not continued.
func (x *RequestIndex) Takes(dag string, run *schemas.Run) *Question {
	if run.Asks == nil {
		return nil
	}
	half, seq := SplitSeq(run.Key)
	var next *Question
	for _, q := range x.QuestionsOf(dag) {
		switch {
		case q.Prefix != half || q.Spec.To != run.Asks.To:
		case q.Seq == seq || q.took(run):
			return q
		case q.Seq < seq && run.Outcome == schemas.OutcomeAsked && q.wentOn(run):
			next = q
		}
	}
	return next
}

// took reports whether the thread has what the run asked.
func (q *Question) took(run *schemas.Run) bool {
	return slices.ContainsFunc(Status(q.Entry).Thread, func(t schemas.ThreadEntry) bool {
		return t.Source == fromRun+run.Key
	})
}

// wentOn reports whether the question had a number and was open when the run started. If its status was lost, it had a
// number if an agent was run for it.
func (q *Question) wentOn(run *schemas.Run) bool {
	st := Status(q.Entry)
	closed := st.Phase == schemas.ClarificationAbandoned || !st.ResolvedAt.IsZero() && !st.ResolvedAt.After(run.StartedAt.Time)
	return (st.ID != "" || q.Entry.RunCount() > 0) && !closed
}

// pauses reports whether the run ended with a question: it printed one, or wrote a request or reply. Such a run uses up no
// attempt, and does not count as a success.
func (x *RequestIndex) pauses(dag string, run *schemas.Run) bool {
	if run.Outcome == schemas.OutcomeAsked {
		return true
	}
	half, seq := SplitSeq(run.Key)
	return slices.ContainsFunc(x.QuestionsOf(dag), func(q *Question) bool {
		return q.Spec.Blocking && q.Prefix == half && (q.Seq == seq || x.AskedOn(q, run.Key))
	})
}

// AskedOn reports whether a run wrote a reply that asks on about a question of its node.
func (x *RequestIndex) AskedOn(q *Question, run string) bool {
	return slices.ContainsFunc(x.repliesTo(q.Entry.Name, ""), func(e *state.Entry) bool {
		spec := replySpec(e)
		return spec != nil && spec.Type == schemas.TurnQuestion && spec.Run == run
	})
}

// taskOf is the node that made the request; nil where none did.
func (w *Requests) taskOf(e *state.Entry, spec *schemas.ClarificationRequestSpec) *clarify.Task {
	dag, node, ok := schemas.SplitRunKey(spec.Run)
	if !ok {
		return nil
	}
	task := &clarify.Task{Key: spec.Run}
	owner := w.Tree.Entry(schemas.DAGKind.Ref(dag))
	if owner == nil {
		return task
	}
	for _, r := range owner.Runs() {
		if r.Node != node {
			continue
		}
		if seen := w.seenBy(e, dag, r); seen != nil {
			task.Runs = append(task.Runs, seen)
		}
	}
	slices.SortStableFunc(task.Runs, func(a, b *schemas.Run) int {
		return cmp.Or(a.FinishedAt.Compare(b.FinishedAt.Time), cmp.Compare(a.Seq, b.Seq))
	})
	return task
}

// seenBy returns a run as the thread of one request sees it; nil if its question became another request, or a further
// round of another one. If a run succeeded but wrote the request, it counts as a run that asked.
func (w *Requests) seenBy(e *state.Entry, dag string, run *schemas.Run) *schemas.Run {
	own := false
	if q := w.Index.Takes(dag, run); q != nil {
		own = q.Entry.Name == e.Name
	}
	switch {
	case !own && (run.Asks != nil || w.Index.pauses(dag, run)) && run.Key != Spec(e).Run:
		return nil
	case run.Outcome != schemas.OutcomeSucceeded || !w.Index.pauses(dag, run):
		return run
	}
	seen := *run
	seen.Outcome = schemas.OutcomeAsked
	return &seen
}

// leftBy describes the other work that the asking agent continued with; "" if it did not. For a node, the key in its
// status counts: when that changes, its questions are decided again.
func (w *Requests) leftBy(spec *schemas.ClarificationRequestSpec, created schemas.Time) string {
	dag, node, ok := schemas.SplitRunKey(spec.Run)
	if !ok {
		return w.movedOn(spec, created)
	}
	e := w.Tree.Entry(schemas.DAGKind.Ref(dag))
	switch key := nodeKeyOf(e, node); {
	case e == nil || e.Gone():
		return fmt.Sprintf("dag/%s, whose node %s asked, is gone", dag, node)
	case e.Broken():
		return ""
	case !hasNode(e, node):
		return fmt.Sprintf("dag/%s has no node %s any more", dag, node)
	case key != "" && !strings.HasPrefix(spec.Run, keys.OfRuns(dag, node, key)):
		return fmt.Sprintf("node %s of dag/%s was changed, or is retried from the beginning", node, dag)
	case skippedTask(e, node):
		return fmt.Sprintf("node %s of dag/%s was skipped", node, dag)
	}
	return ""
}

// skippedTask reports whether a node is done without having run to its end. Only a retry, under another key, changes that.
func skippedTask(dag *state.Entry, node string) bool {
	if dag == nil {
		return false
	}
	st, ok := dag.Status().(*schemas.DAGStatus)
	return ok && st.Nodes.Of(node).State == schemas.NodeSkipped
}

func nodeKeyOf(dag *state.Entry, node string) string {
	if dag == nil {
		return ""
	}
	st, ok := dag.Status().(*schemas.DAGStatus)
	if !ok {
		return ""
	}
	return st.Nodes.Of(node).Key
}

func hasNode(dag *state.Entry, node string) bool {
	return state.SpecOf[*schemas.DAGSpec](dag).Node(node) != nil
}

// movedOn is leftBy for an agent that asked outside of DAGs: its hooks count.
func (w *Requests) movedOn(spec *schemas.ClarificationRequestSpec, created schemas.Time) string {
	for _, r := range agents.HooksOf(w.Tree.Entry(schemas.AgentKind.Ref(spec.From))) {
		if r.Outcome == schemas.OutcomeStarted && r.Issue != spec.Issue && r.StartedAt.After(created.Time) {
			return fmt.Sprintf("%s took up issue %d", spec.From, r.Issue)
		}
	}
	return ""
}
