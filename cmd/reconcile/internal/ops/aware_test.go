package ops_test

import (
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

// TestStyleOfAProject: the style is kept, and inferred again after a file has changed.
func TestStyleOfAProject(t *testing.T) {
	dir := goProject(t, map[string]string{"main.go": "package main\n\nfunc readAll() {}\n", ".reconcile/x": ""})
	env := projectEnv(dir)
	functions := func() int {
		r, err := ops.Style(t.Context(), env, ops.StyleRequest{Dir: dir, Language: "golang"})
		if err != nil || len(r.Styles) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Styles[0].Naming.Functions.Samples
	}
	if n, again := functions(), functions(); n != 1 || again != 1 {
		t.Errorf("%d functions, then %d", n, again)
	}
	write(t, env, "main.go", "package main\n\nfunc readAll() {}\nfunc readOne() {}\n")
	if n := functions(); n != 2 {
		t.Errorf("%d functions after a change", n)
	}
	if _, err := ops.Style(t.Context(), env, ops.StyleRequest{Dir: dir, Language: "klingon"}); ops.CodeOf(err) != ops.BadRequest {
		t.Error(err)
	}
}

func TestDepsOfAProject(t *testing.T) {
	dir := goProject(t, map[string]string{"main.go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println() }\n",
		"web/package.json": `{"dependencies": {"react": "18"}}`})
	r, err := ops.Deps(t.Context(), projectEnv(dir), ops.DepsRequest{Dir: dir})
	if err != nil || len(r.Dependencies) != 1 || r.Dependencies[0].Name != "react" || len(r.Unread) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := ops.Deps(t.Context(), projectEnv(dir), ops.DepsRequest{Dir: dir, Name: "vue"}); ops.CodeOf(err) != ops.BadRequest {
		t.Error(err)
	}
}
