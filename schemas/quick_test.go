package schemas

import (
	"encoding/json"
	"reflect"
	"testing"

	"reconcile.dev/reconcile/schemas/quickjson"
)

// TestEverySpecIsQuick checks that every kind's spec can be decoded by package quickjson, and as encoding/json does.
func TestEverySpecIsQuick(t *testing.T) {
	for _, k := range []Kind{SettingsKind, SessionKind, AgentKind, WorkflowKind, DAGKind, ClarificationRequestKind, ReplyKind,
		ObservationKind, ActionKind} {
		s := k.New()
		s.Default()
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		quick, slow := k.New(), k.New()
		if !quickjson.Decode(data, quick) {
			t.Errorf("%s is not decoded quickly: %s", k.Name, data)
		}
		if err := json.Unmarshal(data, slow); err != nil || !reflect.DeepEqual(quick, slow) {
			t.Errorf("%s: %v\nquick %+v\nslow  %+v", k.Name, err, quick, slow)
		}
	}
}
