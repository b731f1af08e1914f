package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

const fromRun = "run/" // begins the source of what a run said

// takes returns the question that takes in what a run of a node asked: its own request, or an earlier one to the same
// agent, whose next round it is. It is nil while there is none, and where the run asked nothing.
//
// It goes by records and by what does not change any more, so that it says the same before and after the question has
// taken it in: a matter that was closed when the run started does not go on.
func (x *matterIndex) takes(dag string, run *schemas.Run) *dagQuestion {
	if run.Asks == nil {
		return nil
	}
	half, seq := splitSeq(run.Key)
	var next *dagQuestion
	for _, q := range x.questionsOf(dag) {
		switch {
		case q.half != half || q.spec.To != run.Asks.To:
		case q.seq == seq || q.took(run):
			return q
		case q.seq < seq && run.Outcome == schemas.OutcomeAsked && q.wentOn(run):
			next = q
		}
	}
	return next
}

// took reports whether the thread has what the run asked.
func (q *dagQuestion) took(run *schemas.Run) bool {
	return slices.ContainsFunc(requestStatusOf(q.entry).Thread, func(t schemas.ThreadEntry) bool {
		return t.Source == fromRun+run.Key
	})
}

// wentOn reports whether the matter had a number and was open when the run started. One whose status was lost had a number
// if somebody was run for it.
func (q *dagQuestion) wentOn(run *schemas.Run) bool {
	st := requestStatusOf(q.entry)
	closed := st.Phase == schemas.ClarificationAbandoned || !st.ResolvedAt.IsZero() && !st.ResolvedAt.After(run.StartedAt.Time)
	return (st.ID != "" || q.entry.RunCount() > 0) && !closed
}

// pauses reports whether the run ended with a question, by what it printed or by a request or reply that it wrote: then it
// used up no attempt, and its success is none.
func (x *matterIndex) pauses(dag string, run *schemas.Run) bool {
	if run.Outcome == schemas.OutcomeAsked {
		return true
	}
	half, seq := splitSeq(run.Key)
	return slices.ContainsFunc(x.questionsOf(dag), func(q *dagQuestion) bool {
		return q.spec.Blocking && q.half == half && (q.seq == seq || x.askedOn(q, run.Key))
	})
}

// askedOn reports whether a run wrote a reply that asks on about a question of its node.
func (x *matterIndex) askedOn(q *dagQuestion, run string) bool {
	return slices.ContainsFunc(x.repliesTo(q.entry.Name, ""), func(e *state.Entry) bool {
		spec := replySpec(e)
		return spec != nil && spec.Type == schemas.TurnQuestion && spec.Run == run
	})
}

// taskOf is the node that made the request; nil where none did.
func (w *requests) taskOf(e *state.Entry, spec *schemas.ClarificationRequestSpec) *clarify.Task {
	dag, node, ok := schemas.SplitRunKey(spec.Run)
	if !ok {
		return nil
	}
	task := &clarify.Task{Key: spec.Run}
	owner := w.tree.Entry(dagRef(dag))
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

// seenBy is a run as the matter of one request sees it; nil for one whose question became another request, or a further
// round of another one. The success of a run that wrote the request is none.
func (w *requests) seenBy(e *state.Entry, dag string, run *schemas.Run) *schemas.Run {
	own := false
	if q := w.matters.takes(dag, run); q != nil {
		own = q.entry.Name == e.Name
	}
	switch {
	case !own && (run.Asks != nil || w.matters.pauses(dag, run)) && run.Key != requestSpec(e).Run:
		return nil
	case run.Outcome != schemas.OutcomeSucceeded || !w.matters.pauses(dag, run):
		return run
	}
	seen := *run
	seen.Outcome = schemas.OutcomeAsked
	return &seen
}

// leftBy says to what other work the asking agent went on; "" if it did not. A node goes by its key as it was decided
// last: when that moves, its questions are decided once more.
func (w *requests) leftBy(spec *schemas.ClarificationRequestSpec, created schemas.Time) string {
	dag, node, ok := schemas.SplitRunKey(spec.Run)
	if !ok {
		return w.movedOn(spec, created)
	}
	e := w.tree.Entry(dagRef(dag))
	switch key := nodeKeyOf(e, node); {
	case e == nil || e.Gone():
		return fmt.Sprintf("dag/%s, whose node %s asked, is gone", dag, node)
	case e.Broken():
		return ""
	case !hasNode(e, node):
		return fmt.Sprintf("dag/%s has no node %s any more", dag, node)
	case key != "" && !strings.HasPrefix(spec.Run, halfKey(dag, node, key)):
		return fmt.Sprintf("node %s of dag/%s was changed, or is retried from the beginning", node, dag)
	case skipped(e, node):
		return fmt.Sprintf("node %s of dag/%s was skipped", node, dag)
	}
	return ""
}

// skipped reports whether a node is done without having run to its end. Only a retry, under another key, changes that.
func skipped(dag *state.Entry, node string) bool {
	if dag == nil {
		return false
	}
	st, ok := dag.Status().(*schemas.DAGStatus)
	return ok && st.Nodes[node].State == schemas.NodeSkipped
}

func nodeKeyOf(dag *state.Entry, node string) string {
	if dag == nil {
		return ""
	}
	st, ok := dag.Status().(*schemas.DAGStatus)
	if !ok {
		return ""
	}
	return st.Nodes[node].Key
}

func hasNode(dag *state.Entry, node string) bool {
	_, ok := planOf(dag.Object).index[node]
	return ok
}

// movedOn goes by the hooks of an agent that asked outside of DAGs.
func (w *requests) movedOn(spec *schemas.ClarificationRequestSpec, created schemas.Time) string {
	for _, r := range hooksOf(w.tree.Entry(agentRef(spec.From))) {
		if r.Outcome == schemas.OutcomeStarted && r.Issue != spec.Issue && r.StartedAt.After(created.Time) {
			return fmt.Sprintf("%s took up issue %d", spec.From, r.Issue)
		}
	}
	return ""
}
