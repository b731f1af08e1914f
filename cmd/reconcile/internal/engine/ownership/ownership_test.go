package ownership

import (
	"testing"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

func TestSubject(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]schemas.Ref{
		"dags/checks.json":                  {Kind: "DAG", Name: "checks"},
		"runs/dags/checks/build-1a2b.json":  {Kind: "DAG", Name: "checks"},
		"memory/issue-42.json":              {Kind: state.MemoryKind, Name: "issue-42"},
		"archive/actions/2026/retry-x.yaml": {Kind: "Action", Name: "retry-x"},
		"memory/manifest.json":              {},
		"agent-status.json":                 {},
		"facts/1a2b.json":                   {},
	} {
		got, ok := Subject(state.NewTree(controllers.Schemas(), nil, nil), path)
		if ok != (want != schemas.Ref{}) || ok && got != want {
			t.Errorf("%s is about %v (%t), want %v", path, got, ok, want)
		}
	}
}
