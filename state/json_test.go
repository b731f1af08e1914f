package state

import (
	"encoding/json"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// aStatus is the bytes of a DAG's status that has something everywhere.
func aStatus(t testing.TB) []byte {
	t.Helper()
	at := schemas.NewTime(time.Date(2026, 2, 27, 10, 0, 0, 5e6, time.UTC))
	st := &schemas.DAGStatus{
		Common: schemas.Common{ObservedDigest: "sha256:01", Phase: schemas.DAGFailed,
			Conditions: []schemas.Condition{{Type: schemas.Ready, Status: schemas.False, Reason: "Failed", Message: "a <b> & \"c\"", LastTransitionTime: at}},
			History:    []schemas.HistoryEntry{{At: at, Reason: "Failed", Message: "ü"}}},
		Layers: [][]string{{"build"}, {"test"}},
		Nodes: schemas.NodeStatusesOf(map[string]schemas.NodeStatus{
			"build": {State: schemas.NodeSucceeded, Key: "sha256:02", Attempts: 1, StartedAt: at, FinishedAt: at, ExitCode: new(int),
				Result: json.RawMessage(`{"a":[1,2]}`), Output: "line\nline\t\u0001"},
			"test": {State: schemas.NodePending},
		}),
		Progress: schemas.Progress{Done: 1, Total: 2}, StartedAt: at,
	}
	b, err := EncodeStatus(checks, st)
	must(t, err)
	return b
}

func TestEncodeIsCanonical(t *testing.T) {
	b, err := EncodeStatus(health, &schemas.SessionStatus{DAGs: map[string]int{"b": 1, "a": 2}})
	must(t, err)
	const want = `{
  "apiVersion": "reconcile.dev/v1alpha1",
  "kind": "Session",
  "metadata": {
    "name": "health"
  },
  "status": {
    "conditions": [],
    "history": [],
    "progress": {
      "done": 0,
      "total": 0
    },
    "dags": {
      "a": 2,
      "b": 1
    }
  }
}
`
	if string(b) != want {
		t.Errorf("got\n%s", b)
	}
}

func BenchmarkDecodeStatus(b *testing.B) {
	data := aStatus(b)
	k, _ := testKinds.Find("DAG")
	for b.Loop() {
		if _, err := new(decodeBuffer).decodeStatus(k, "checks", data, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeStatusSlow(b *testing.B) {
	data := aStatus(b)
	for b.Loop() {
		if err := decodeState(data, data, &envelope{Status: new(schemas.DAGStatus)}); err != nil {
			b.Fatal(err)
		}
	}
}
