package agents

import (
	"maps"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/breaker"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// health is the condition Healthy of an agent: False while a check says that it cannot work, or its runs failed in a row; True while a
// check says that it can. Where no one has checked it, the former condition stands. nil: nothing is known.
func health(in settle.In) *schemas.Condition {
	say := func(is schemas.ConditionStatus, reason, message string) *schemas.Condition {
		return &schemas.Condition{Status: is, Reason: reason, Message: message}
	}
	common := settle.Common(in.Status())
	was := common.Condition(settle.Healthy)
	why, known := in.World.Ailing(in.Name)
	b := breaker.BreakersOf(in.World.OfRun, in.Tree, in.Now).Ask(in.Name, in.Ref, "")
	switch {
	case why != "":
		return say(schemas.False, settle.ReasonAgentUnhealthy, why)
	case b.State != breaker.Closed:
		return say(schemas.False, settle.ReasonRunsFail, b.Describe())
	case known:
		return say(schemas.True, settle.ReasonHealthy, "a check found that it can work")
	case was != nil && was.Reason != settle.ReasonRunsFail && isChecked(in):
		return was
	}
	return nil
}

// unlessAiling is how an agent is: as it was judged by what it is at, and not ready while it cannot work. That it waits for a permission
// stays said: a person can act on that.
func unlessAiling(j settle.Judgement, h *schemas.Condition) settle.Judgement {
	if h != nil && h.Status == schemas.False && j.Reason != settle.ReasonWaitsForPermission {
		j.Class, j.Reason, j.Message = settle.ClassWaiting, h.Reason, h.Message
	}
	return j
}

// isChecked reports whether an agent is checked before it is used: its spec asks for it, or it works in place of another.
func isChecked(in settle.In) bool {
	if schemas.SpecAs[*schemas.AgentSpec](in.Object).IsChecked() {
		return true
	}
	return slices.ContainsFunc(in.Tree.ReferrersOf(in.Ref, schemas.AgentKind.Name), func(r schemas.Ref) bool {
		spec := state.SpecOf[*schemas.AgentSpec](in.Tree.Entry(r))
		return spec != nil && slices.Contains(spec.Fallback, in.Name)
	})
}

// healthWord is whether an agent can work, by its status; "" if nothing is known.
func healthWord(e *state.Entry) string {
	if !e.HasStatus() {
		return ""
	}
	switch c := e.Status().Base().Condition(settle.Healthy); {
	case c == nil:
		return ""
	case c.Status == schemas.True:
		return "healthy"
	}
	return "unhealthy"
}

// breakerText says in which state the breaker of an agent is.
func breakerText(b breaker.Breaker) string {
	text := string(b.State)
	switch b.State {
	case breaker.Closed:
		if b.Failures > 0 {
			text += ", " + schemas.Count(b.Failures, "failure") + " in a row"
		}
		return text
	case breaker.Open:
		text += ", one run is tried at " + b.Until.Format(time.RFC3339)
	case breaker.HalfOpen:
		if b.Trying {
			text += ", a run is being tried"
		}
	}
	return text + ": " + b.Describe()
}

// substitutes are the latest records of the nodes whose agent worked in place of another one, and claims of such, by node.
func substitutes(e *state.Entry) (out []*schemas.Run) {
	latest := map[string]*schemas.Run{}
	for _, r := range e.Runs() {
		if was := latest[r.Node]; r.IsWork() && (was == nil || !r.FinishedAt.Before(was.FinishedAt.Time)) {
			latest[r.Node] = r
		}
	}
	for i := range e.Claims {
		if c := &e.Claims[i]; c.IsWork() {
			latest[c.Node] = &c.Run
		}
	}
	for _, node := range slices.Sorted(maps.Keys(latest)) {
		if latest[node].Instead != nil {
			out = append(out, latest[node])
		}
	}
	return out
}
