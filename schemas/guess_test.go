package schemas_test

import (
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestBrokenFileKeepsItsObject: a file that is cut off, emptied or not yet put right stands for the object that stood in
// it, so that nobody takes the object for removed.
func TestBrokenFileKeepsItsObject(t *testing.T) {
	d := schemas.NewDecoder(schemas.Kinds{schemas.AgentKind, schemas.WorkflowKind}, 1<<20)
	ada := schemas.Ref{Kind: "Agent", Name: "ada"}
	for _, c := range []struct {
		path, text string
		want       schemas.Ref
	}{
		{"specs/agents/ada.yaml", "", ada},
		{"specs/agents/ada.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {na", ada},
		{"specs/agents/ada.json", "{", ada},
		{"specs/team/agents/ada.yml", "kind: Agent\n", ada},
		{"specs/agents/ada.yaml", "kind: Agent\nmetadata: {name: bob}\nspec: {", schemas.Ref{Kind: "Agent", Name: "bob"}},
		{"specs/workflows/feature.toml", "[[steps", schemas.Ref{Kind: "Workflow", Name: "feature"}},
		{"specs/team/ada.yaml", "kind: Agent\n", schemas.Ref{}},
		{"specs/agents/Not a name.yaml", "", schemas.Ref{}},
		{"ada.yaml", "", schemas.Ref{}},
	} {
		out := d.Decode(c.path, []byte(c.text))
		if out.Ref != c.want || out.Object != nil || len(out.Problems) == 0 {
			t.Errorf("%s %q: %v, %v, %d problems; want %v", c.path, c.text, out.Ref, out.Object, len(out.Problems), c.want)
		}
	}
}
