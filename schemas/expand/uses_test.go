package expand

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestUses: a node is given the parameters that it uses; what it is not given is in neither its key nor its variables.
func TestUses(t *testing.T) {
	params := fields{"env": fields{"default": "e"}, "env_name": fields{"default": "n"}, "tag": fields{"default": "t"}}
	for want, node := range map[string]fields{
		"":                 {"run": []any{"x"}},
		"tag":              {"run": []any{"x", "{{ params.tag }}"}},
		"env":              {"script": `echo "${RECONCILE_PARAM_ENV}s" > $HOME`},
		"env_name":         {"script": "echo $RECONCILE_PARAM_ENV_NAME"},
		"env env_name":     {"run": []any{"x"}, "env": fields{"A": "{{ params.env_name }}", "B": "RECONCILE_PARAM_ENV"}},
		"env tag":          {"script": "echo $RECONCILE_PARAM_TAG", "when": `params.env == "e"`},
		"env env_name tag": {"script": "env | grep RECONCILE_PARAM_ | wc -l"},
	} {
		node["name"] = "n"
		n := expanded(t, world(nil), fields{"params": params, "nodes": []any{node}}).Nodes[0]
		if got := strings.Join(slices.Sorted(maps.Keys(n.Made.Params)), " "); got != want {
			t.Errorf("%v uses %q, want %q", node, got, want)
		}
		for name := range n.Made.Params {
			if !strings.Contains(string(n.Made.Key), `"`+name+`":`) {
				t.Errorf("%v: %s is not in %s", node, name, n.Made.Key)
			}
		}
		if full := strings.Contains(string(n.Made.Former), `"env":"e","env_name":"n","tag":"t"`); full != (want != "env env_name tag") {
			t.Errorf("%v: the former key is %s", node, n.Made.Former)
		}
	}
	whole := fields{"name": "n", "run": []any{"x"}, "when": `len(keys(params)) > 1`}
	if n := expanded(t, world(nil), fields{"params": params, "nodes": []any{whole}}).Nodes[0]; len(n.Made.Params) != 3 {
		t.Errorf("one that reads params as a whole is given %v", n.Made.Params)
	}
}
