package ops_test

import (
	"context"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/schemas"
)

func TestPropose(t *testing.T) {
	env := small(t)
	q := ops.ProposeRequest{Target: "dag/job", Change: schemas.ChangeExtend, Reason: "more", Edit: `{"add": [{"name": "more", "run": ["true"]}]}`, By: "ada"}
	r, err := ops.Propose(t.Context(), env, q)
	if err != nil || r.Seen || r.Path == "" || r.Phase != schemas.PlanPending || r.Verdict != ops.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	if again, err := ops.Propose(t.Context(), env, q); err != nil || !again.Seen || again.Name != r.Name {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	for want, q := range map[string]ops.ProposeRequest{
		"reason is missing": {Target: "dag/job", Change: schemas.ChangeFix},
		"does not exist":    {Target: "dag/none", Change: schemas.ChangeFix, Reason: "x"},
		"has no node":       {Target: "dag/job", Node: "none", Change: schemas.ChangeFix, Reason: "x"},
		"it is no edit":     {Target: "dag/job", Change: schemas.ChangeFix, Reason: "x", Edit: "[]"},
		"name the DAG":      {Change: schemas.ChangeFix, Reason: "x"},
	} {
		if _, err := ops.Propose(t.Context(), env, q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", q, err, want)
		}
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Propose(ctx, env, q)
		return err
	})
}
