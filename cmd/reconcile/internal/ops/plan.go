package ops

import (
	"context"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
)

// PlanRequest asks what a run would do to the tree as it is.
type PlanRequest struct {
	Advice bool // also look for what is valid and probably does not do what it is meant to
}

// PlanResult is what a run would do.
type PlanResult struct {
	Steps    []controllers.Step
	Problems []schemas.Problem // of the files, and with Advice also warnings about valid ones
	Verdict  Code              // OK, Invalid or NotReady: the state of the objects before the run
}

// Plan tells what a run would do, and changes nothing.
func Plan(ctx context.Context, env Env, q PlanRequest) (PlanResult, error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return PlanResult{}, typed(err)
	}
	defer s.Close()
	r := PlanResult{Steps: controllers.Plan(t, env.Tree.Now()), Verdict: Code(controllers.Verdict(t)), Problems: t.Problems()}
	if q.Advice {
		r.Problems = tree.Problems(s, t)
	}
	return r, nil
}
