package schemas_test

import (
	"os"
	"path/filepath"
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
