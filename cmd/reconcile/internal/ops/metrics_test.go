package ops_test

import (
	"context"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers/metrics"
)

func TestMetrics(t *testing.T) {
	env := open(t)
	write(t, env, "state/runs/dags/checks/build-7fc0ce4b05d0b98b-1.json", `{"apiVersion": "reconcile.dev/v1alpha1", "kind": "Run",
  "metadata": {"name": "build-7fc0ce4b05d0b98b-1"}, "key": "dags/checks/build-7fc0ce4b05d0b98b-1", "owner": "dag/checks", "node": "build",
  "nodeKey": "sha256:7fc0ce4b05d0b98b68d36e1a5048684fbe2e1b8f5ad01f69d59df981894d7759", "seq": 1, "outcome": "Succeeded",
  "queuedAt": "2026-03-01T11:00:00Z", "startedAt": "2026-03-01T11:00:02Z", "finishedAt": "2026-03-01T11:00:05Z", "exitCode": 0}`)
	m, err := ops.Metrics(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Lanes) != 1 || len(m.Sessions) != 1 || m.Sessions[0].Name != "health" {
		t.Fatalf("%+v", m)
	}
	for _, f := range []metrics.Figures{m.Lanes[0], m.Sessions[0]} {
		if f.Runs != 1 || f.Waited.P99 != 2 || f.Worked.P50 != 3 {
			t.Errorf("%+v", f)
		}
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Metrics(ctx, env)
		return err
	})
}
