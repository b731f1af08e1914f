package state

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/quickjson"
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
		Nodes: map[string]schemas.NodeStatus{
			"build": {State: schemas.NodeSucceeded, Key: "sha256:02", Attempts: 1, StartedAt: at, FinishedAt: at, ExitCode: new(int),
				Result: json.RawMessage(`{"a":[1,2]}`), Output: "line\nline\t\u0001"},
			"test": {State: schemas.NodePending},
		},
		Progress: schemas.Progress{Done: 1, Total: 2}, StartedAt: at,
	}
	b, err := EncodeStatus(checks, st)
	must(t, err)
	return b
}

// TestEveryStatusIsQuick checks that no kind's status, and no record, needs the slow decoder, and that both agree.
func TestEveryStatusIsQuick(t *testing.T) {
	for _, k := range testKinds {
		if k.NewStatus == nil {
			continue
		}
		data := statusOf(t, schemas.Ref{Kind: k.Name, Name: "x"}, "Phase")
		if k.Name == "DAG" {
			data = aStatus(t)
		}
		quick, slow := k.NewStatus(), k.NewStatus()
		if !quickjson.Decode(data, &envelope{Status: quick}) {
			t.Errorf("%s is not decoded quickly", k.Name)
		}
		must(t, json.Unmarshal(data, &envelope{Status: slow}))
		if !reflect.DeepEqual(quick, slow) {
			t.Errorf("%s:\nquick %+v\nslow  %+v", k.Name, quick, slow)
		}
	}
	r := finished(1)
	data, err := EncodeRun(&r)
	must(t, err)
	if !quickjson.Decode(data, new(schemas.Run)) {
		t.Error("a run is not decoded quickly")
	}
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
		if _, err := decodeStatus(k, "checks", data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeStatusSlow(b *testing.B) {
	data := aStatus(b)
	for b.Loop() {
		if err := decodeState(data, &envelope{Status: new(schemas.DAGStatus)}); err != nil {
			b.Fatal(err)
		}
	}
}
