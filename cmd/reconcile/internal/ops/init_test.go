package ops_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

// empty is open, with an empty folder in the place of the tree.
func empty(t *testing.T) ops.Env {
	env := open(t)
	env.Tree.Dir = t.TempDir()
	env.Caller.Dir = env.Tree.Dir
	return env
}

func read(t *testing.T, env ops.Env, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(env.Tree.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestInit(t *testing.T) {
	env := empty(t)
	heard := &notes{}
	env.Sink = heard
	if _, err := ops.Init(t.Context(), env, ops.InitRequest{Example: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(read(t, env, ".gitignore"), "/.reconcile/\n") || read(t, env, ".gitattributes") != "state/** merge=reconcile\n" {
		t.Errorf("%s%s", read(t, env, ".gitignore"), read(t, env, ".gitattributes"))
	}
	plan, err := ops.Plan(t.Context(), env, ops.PlanRequest{})
	if err != nil || len(plan.Steps) == 0 || plan.Verdict == ops.Invalid {
		t.Errorf("of the example: %+v, %v", plan, err)
	}
	if n := len(heard.notes); n < 5 || !strings.HasPrefix(heard.notes[0], "wrote ") {
		t.Errorf("%q", heard.notes)
	}
	heard.notes = nil
	if _, err := ops.Init(t.Context(), env, ops.InitRequest{Example: true}); err != nil || len(heard.notes) != 1 {
		t.Errorf("again: %v, %q", err, heard.notes)
	}
	write(t, env, "reconcile.yaml", "changed\n")
	if _, err := ops.Init(t.Context(), env, ops.InitRequest{}); err == nil || !strings.Contains(err.Error(), "nothing was written: reconcile.yaml") {
		t.Errorf("over a file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ops.Init(ctx, empty(t), ops.InitRequest{}); ops.CodeOf(err) != ops.Interrupted {
		t.Errorf("canceled: %v", err)
	}
}

func TestInitInsideOfATree(t *testing.T) {
	env := empty(t)
	if _, err := ops.Init(t.Context(), env, ops.InitRequest{}); err != nil {
		t.Fatal(err)
	}
	above := env.Tree.Dir
	env.Tree.Dir = filepath.Join(above, "sub")
	if err := os.Mkdir(env.Tree.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := ops.Init(t.Context(), env, ops.InitRequest{})
	var inside *ops.InsideTreeError
	if !errors.As(err, &inside) || filepath.Base(inside.Tree) != filepath.Base(above) || ops.CodeOf(err) != ops.BadRequest {
		t.Errorf("%v", err)
	}
	if _, err := ops.Init(t.Context(), env, ops.InitRequest{Nested: true}); err != nil {
		t.Error(err)
	}
}

func TestInitFrom(t *testing.T) {
	env := empty(t)
	write(t, env, "Makefile", "build:\n\techo build\n")
	r, err := ops.Init(t.Context(), env, ops.InitRequest{From: "make"})
	if err != nil || len(r.Nodes) != 1 || !strings.HasSuffix(r.DAG, filepath.Join("specs", "dags", "make.yaml")) {
		t.Fatalf("%+v, %v", r, err)
	}
	plan, err := ops.Plan(t.Context(), env, ops.PlanRequest{})
	if err != nil || len(plan.Steps) == 0 || plan.Verdict == ops.Invalid {
		t.Errorf("%+v, %v", plan, err)
	}
	write(t, env, "specs/dags/other.yaml", strings.Replace(read(t, env, "specs/dags/make.yaml"), "name: make", "name: npm", 1))
	write(t, env, "package.json", `{"scripts": {"test": "node test.js"}}`)
	if _, err := ops.Init(t.Context(), env, ops.InitRequest{From: "npm"}); err == nil || !strings.Contains(err.Error(), "dag/npm exists already, in specs/dags/other.yaml") {
		t.Errorf("a name that is taken: %v", err)
	}
	_, err = ops.Init(t.Context(), env, ops.InitRequest{From: "just"})
	badField(t, err, "from")
	_, err = ops.Init(t.Context(), env, ops.InitRequest{From: "make", Example: true})
	badField(t, err, "from")
}

func TestInitWorkflows(t *testing.T) {
	env := empty(t)
	r, err := ops.InitWorkflows(t.Context(), env, ops.InitWorkflowsRequest{Release: "v1.2.3"})
	action := read(t, env, ".github/actions/reconcile/action.yml")
	if err != nil || r.File != "" || !strings.Contains(action, "v1.2.3") {
		t.Errorf("%+v, %v\n%s", r, err, action)
	}
	_, err = ops.InitWorkflows(t.Context(), env, ops.InitWorkflowsRequest{Release: "latest"})
	badField(t, err, "release")
	if out, err := exec.Command("git", "-C", env.Tree.Dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%s%v", out, err)
	}
	env.Tree.Dir = filepath.Join(env.Tree.Dir, ".github")
	if _, err = ops.InitWorkflows(t.Context(), env, ops.InitWorkflowsRequest{}); ops.CodeOf(err) != ops.BadRequest {
		t.Errorf("below the top: %v", err)
	}
}

func TestMergeDriver(t *testing.T) {
	env := empty(t)
	heard := &notes{}
	env.Sink = heard
	write(t, env, ".gitattributes", "state/** merge=union") // without a line end
	if err := ops.InstallMergeDriver(t.Context(), env); err != nil || !strings.Contains(heard.notes[0], "left as it is") {
		t.Errorf("%q, %v", heard.notes, err)
	}
	write(t, env, "base", `{"a": 1}`)
	write(t, env, "ours", `{"a": 1, "b": 2}`)
	write(t, env, "theirs", `{"a": 3}`)
	at := func(name string) string { return filepath.Join(env.Tree.Dir, name) }
	q := ops.MergeRequest{Base: at("base"), Ours: at("ours"), Theirs: at("theirs")}
	conflicts, err := ops.MergeFiles(t.Context(), env, q)
	if got := read(t, env, "ours"); err != nil || conflicts || !strings.Contains(got, `"a": 3`) || !strings.Contains(got, `"b": 2`) {
		t.Errorf("%v, %v\n%s", conflicts, err, got)
	}
	for _, name := range []string{"base", "ours", "theirs"} {
		write(t, env, name, name+"\n")
	}
	if conflicts, err = ops.MergeFiles(t.Context(), env, q); err != nil || !conflicts || !strings.Contains(read(t, env, "ours"), "<<<<<<<") {
		t.Errorf("%v, %v\n%s", conflicts, err, read(t, env, "ours"))
	}
	q.Theirs = at("none")
	if _, err = ops.MergeFiles(t.Context(), env, q); ops.CodeOf(err) != ops.Failure {
		t.Errorf("%v", err)
	}
	refused(t, ops.InstallMergeDriver)
}

func TestAllow(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	env := open(t)
	const address = "https://example.com/v1"
	write(t, env, "reconcile.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\n"+
		"spec: {index: {embedder: openai, endpoint: \""+address+"\", model: m, dimensions: 4, apiKeyEnv: MY_API_KEY}}\n")
	allow := func(q ops.AllowRequest) ops.AllowResult {
		t.Helper()
		r, err := ops.Allow(t.Context(), env, q)
		if err != nil {
			t.Error(err)
		}
		return r
	}
	if r := allow(ops.AllowRequest{List: true}); len(r.Destinations) != 1 || r.Destinations[0].Allowed || r.Destinations[0].Variable != "MY_API_KEY" {
		t.Errorf("%+v", r)
	}
	person := env.Caller
	env.Caller.Getenv = func(name string) string { return map[string]string{"RECONCILE_RUN": "dags/d/n-1"}[name] }
	if _, err := ops.Allow(t.Context(), env, ops.AllowRequest{}); ops.CodeOf(err) != ops.BadRequest || !strings.Contains(err.Error(), "only a person") {
		t.Errorf("by a run: %v", err)
	}
	env.Caller = person
	if r := allow(ops.AllowRequest{}); !r.Destinations[0].Allowed {
		t.Errorf("%+v", r)
	}
	allow(ops.AllowRequest{Remove: address})
	if _, err := ops.Allow(t.Context(), env, ops.AllowRequest{Remove: address}); ops.CodeOf(err) != ops.BadRequest {
		t.Errorf("what is not allowed is taken back: %v", err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Allow(ctx, env, ops.AllowRequest{})
		return err
	})
}

func TestKinds(t *testing.T) {
	env := empty(t)
	e, err := ops.Explain(t.Context(), env, "dag.spec.nodes.needs")
	if err != nil || e.Kind.Name != "DAG" || e.Type != "list of text" {
		t.Errorf("%+v, %v", e, err)
	}
	for _, field := range []string{"dags.spec.nods", "dga"} {
		if _, err := ops.Explain(t.Context(), env, field); ops.CodeOf(err) != ops.BadRequest || !strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if v := ops.Version(t.Context(), env); v.Version == "" || v.Go == "" {
		t.Errorf("%+v", v)
	}
	schema, err := ops.ExplainSchema(t.Context(), env, "dag")
	if err != nil {
		t.Error(err)
	}
	written, err := ops.WriteSchemas(t.Context(), env, filepath.Join(env.Tree.Dir, "schemas"))
	if err != nil || len(written) < 5 || read(t, env, "schemas/dag.schema.json") != string(schema) {
		t.Errorf("%q, %v", written, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ops.WriteSchemas(ctx, env, env.Tree.Dir); ops.CodeOf(err) != ops.Interrupted {
		t.Errorf("canceled: %v", err)
	}
}
