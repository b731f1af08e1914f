package clarifications

import (
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/project"
)

// Kind is the row of the kind ClarificationRequest.
var Kind = settle.Kind{Kind: schemas.ClarificationRequestKind, Decide: decide, Columns: columns,
	DependsOn: []string{schemas.DAGKind.Name}, Sources: []string{state.LedgerKind},
	Performs: true, PartOf: askingNode, Steps: askSteps, Tries: askTries, Events: events,
	Affects: affects, Before: addOrdered, After: addNumbered, Shared: true,
	Origin: origin, Note: note, Mirror: &mirror.Clarification, Index: &project.Clarification}

var columns = []settle.Column{
	readiness.OfStatus("ID", func(s *schemas.ClarificationRequestStatus) string { return s.ID }),
	readiness.Ready, readiness.Phase,
	readiness.OfSpec("FROM", func(s *schemas.ClarificationRequestSpec) string { return s.From }),
	readiness.OfSpec("TO", func(s *schemas.ClarificationRequestSpec) string { return s.To }),
	readiness.OfSpec("BLOCKING", func(s *schemas.ClarificationRequestSpec) string { return fmt.Sprint(s.Blocking) }),
	readiness.OfSpec("TOPIC", func(s *schemas.ClarificationRequestSpec) string { return s.Topic }),
}

// note has the id of a clarification and its phase.
func note(s schemas.Status) string {
	if st, ok := s.(*schemas.ClarificationRequestStatus); ok && st.ID != "" {
		return st.ID + " " + st.Phase
	}
	return ""
}

// askingNode is [settle.Kind.PartOf] for requests: they belong to the node that asks.
func askingNode(e *state.Entry, _ string) (dag, node string) {
	if spec := Spec(e); spec != nil {
		dag, node, _ = schemas.SplitRunKey(spec.Run)
	}
	return dag, node
}

// ReplyKind is the row of the kind Reply.
var ReplyKind = settle.Kind{Kind: schemas.ReplyKind, Decide: decideReply, Columns: replyColumns,
	Affects: replyAffects, Origin: replyOrigin, Retired: replyRetired}

var replyColumns = []settle.Column{
	readiness.Ready,
	readiness.OfSpec("TYPE", func(s *schemas.ReplySpec) string { return s.Type }),
	readiness.OfSpec("FROM", func(s *schemas.ReplySpec) string { return s.From }),
	readiness.OfSpec("CLARIFICATION", func(s *schemas.ReplySpec) string { return s.Clarification }),
	{Head: "WHY", Text: readiness.Because},
}

// askSteps lists the run of the agent that would be asked, now or when the time of a failure is over.
func askSteps(e *state.Entry, out settle.Out) []settle.Step {
	spec := Spec(e)
	st, ok := out.Status.(*schemas.ClarificationRequestStatus)
	if spec == nil || !ok {
		return nil
	}
	asks := settle.Step{Ref: e.Ref, Verb: settle.StepRun, Node: fmt.Sprintf("round_%d", st.Round),
		Why: fmt.Sprintf("asks %s for %s: %s", spec.To, spec.From, spec.Topic)}
	for i := range out.Effects {
		if asks.Node = out.Effects[i].Node; settle.ClaimOf(e, out.Effects[i].Key) == nil {
			return []settle.Step{asks}
		}
	}
	if out.Await && len(out.Effects) == 0 {
		asks.Why += "; the next attempt is due at " + out.Again.Format(time.RFC3339)
		return []settle.Step{asks}
	}
	return nil
}

// askTries is the run of the agent that is asked.
func askTries(e *state.Entry, _ string) settle.Tries { return settle.Tries{Most: 1, Agent: Spec(e).To} }
