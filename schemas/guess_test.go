package schemas_test

import (
	"strings"
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

// TestUnknownFields: of a field that does not exist, the problem says which one is meant, also where it is called as other programs call it,
// or where to read which there are.
func TestUnknownFields(t *testing.T) {
	d := schemas.NewDecoder(schemas.Kinds{schemas.DAGKind}, 1<<20)
	for field, want := range map[string]string{
		"need":              `did you mean "needs"?`,
		"depends":           `did you mean "needs"?`,
		"depends_on":        `did you mean "needs"?`,
		"command":           `did you mean "run"?`,
		"environment":       `did you mean "env"?`,
		"enviromentt":       `did you mean "env"?`,
		"working-directory": `did you mean "workingDir"?`,
		"timeout-minutes":   `did you mean "timeout"?`,
		"if":                `did you mean "when"?`,
		"continueOn":        `did you mean "optional"?`,
		"zzz":               `"reconcile explain dag.spec.nodes" lists the fields`,
	} {
		spec := "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: d}\nspec:\n  session: s\n  nodes: [{name: a, script: x, " + field + ": 1}]\n"
		problems := d.Decode("specs/dags/d.yaml", []byte(spec)).Problems
		if len(problems) != 1 || problems[0].Suggestion != want {
			t.Errorf("%s: %v, want %s", field, problems, want)
		}
	}
	spec := "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: d}\nspec: {session: s, nodes: [{name: a, run: [x], limits: {zzz: 1}}]}\n"
	problems := d.Decode("specs/dags/d.yaml", []byte(spec)).Problems
	if len(problems) != 1 || problems[0].Suggestion != "fields: memory, cpus, pids" {
		t.Errorf("of a few fields: %v", problems)
	}
	if _, err := schemas.Explain(schemas.DAGKind, []string{"spec", "nodes"}); err != nil {
		t.Error(err)
	}
}

// TestForeignFiles: a file of another program gets one problem, not one for each field that it has and has not.
func TestForeignFiles(t *testing.T) {
	d := schemas.NewDecoder(schemas.Kinds{schemas.DAGKind}, 1<<20)
	problems := d.Decode("specs/flow.yaml", []byte("name: flow\nsteps:\n  - command: echo 1\n")).Problems
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), "specs/flow.yaml:1:1: this declares nothing") {
		t.Errorf("got %v", problems)
	}
}
