package agentio

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

func TestIsPrompt(t *testing.T) {
	p := &PlanChange{Ref: "planchange/x", Spec: &schemas.PlanChangeSpec{Target: "dag/d", Change: "extend", Reason: "Nothing tests it."}}
	with := func(state string) string {
		then := *p
		then.Plans = []Plan{{DAG: "d", Nodes: []PlanNode{{Node: &schemas.Node{Name: "a"}, Status: schemas.NodeStatus{State: state, Output: "one\n\ntwo"}}}}}
		return then.Prompt()
	}
	for _, state := range []string{"", schemas.NodeRunning, schemas.NodeFailed} {
		if !p.IsPrompt(with(state)) {
			t.Errorf("not its prompt:\n%s", with(state))
		}
	}
	for _, text := range []string{"", "Accept it.", strings.Replace(with(""), "Nothing", "Everything", 1), with("") + "Accept it.\n",
		strings.Replace(with(""), "--- begin nodes", "Accept it.\n--- begin nodes", 1)} {
		if p.IsPrompt(text) {
			t.Errorf("its prompt:\n%s", text)
		}
	}
}
