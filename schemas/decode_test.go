package schemas_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// all is every kind of this package; the table that the program uses is controllers.Kinds.
var all = schemas.Kinds{
	schemas.SessionKind, schemas.AgentKind, schemas.WorkflowKind, schemas.DAGKind, schemas.ClarificationRequestKind,
	schemas.ReplyKind, schemas.ObservationKind, schemas.ActionKind, schemas.SettingsKind,
}

// example returns the example of a kind and the path under which it would stand in a tree.
func example(t testing.TB, name string) (path string, src []byte) {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("..", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	if name == "settings.yaml" {
		return schemas.SettingsPath, src
	}
	return "specs/" + name, src
}

func TestExamplesDecode(t *testing.T) {
	d := schemas.NewDecoder(all, 0)
	for _, k := range all {
		path, src := example(t, k.Singular()+".yaml")
		out := d.Decode(path, src)
		for _, p := range out.Problems {
			t.Errorf("%v", p)
		}
		if out.Object == nil || out.Ref.Kind != k.Name || out.Object.Ref != out.Ref {
			t.Errorf("%s: got %+v", path, out.Ref)
		}
	}
}

// TestJSONOfYAML: answers and edits in YAML have the values of a spec.
func TestJSONOfYAML(t *testing.T) {
	for text, want := range map[string]string{
		"v: no\ny: [on, yes]\n":     `{"v":"no","y":["on","yes"]}`,
		"day: 2026-01-02\nok: true": `{"day":"2026-01-02","ok":true}`,
		"- 1\n- 1.50\n- null\n":     `[1,1.5,null]`,
		`{"a": "b"}`:                `{"a":"b"}`,
		"plain text":                `"plain text"`,
		" \n":                       "null",
		"a: b: c":                   "answer.yaml:1:",
		"a: 1\na: 2":                "answer.yaml:2:1:",
		"a: 1\n---\nb: 2":           "answer.yaml:2:1:",
	} {
		out, err := schemas.JSONOfYAML("answer.yaml", []byte(text))
		if got := string(out); err == nil && got != want || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}
