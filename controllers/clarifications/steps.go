package clarifications

import (
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

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
