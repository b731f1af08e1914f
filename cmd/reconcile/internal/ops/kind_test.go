package ops_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/project"
)

// This file adds a kind: a Release is published once by a command, after a DAG has succeeded. What follows up to the test is
// all that the kind consists of: what would be schemas/release.go, controllers/releases, and a row of the table.

type releaseSpec struct {
	DAG   string `json:"dag"`
	Notes string `json:"notes,omitempty"`
	Issue int    `json:"issue,omitempty"`
}

func (*releaseSpec) Default() {}

func (s *releaseSpec) Check(r *schemas.Report) {
	if strings.Contains(s.Notes, "TODO") {
		r.At("notes").Errorf("unfinished", "the notes are not finished")
	}
}

func (s *releaseSpec) References() []schemas.Reference {
	return []schemas.Reference{{Field: []any{"dag"}, To: schemas.Ref{Kind: schemas.DAGKind.Name, Name: s.DAG}, Hard: true}}
}

type releaseStatus struct {
	schemas.Common
	Printed string `json:"printed,omitempty"`
}

var releaseKind = schemas.Kind{
	Name: "Release", Plural: "releases", Aliases: []string{"rel"}, Short: "A version that is published once a DAG has succeeded.",
	New:       func() schemas.Spec { return new(releaseSpec) },
	NewStatus: func() schemas.Status { return new(releaseStatus) },
	Schema: []byte(`{"type": "object", "additionalProperties": false, "required": ["apiVersion", "kind", "metadata", "spec"],
  "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string", "const": "Release"},
    "metadata": {"type": "object", "required": ["name"], "additionalProperties": false, "properties": {"name": {"type": "string"}}},
    "spec": {"type": "object", "required": ["dag"], "additionalProperties": false,
      "properties": {"dag": {"type": "string"}, "notes": {"type": "string"}, "issue": {"type": "integer"}}}}}`),
}

func decideRelease(in settle.In) settle.Out {
	if in.Object == nil {
		return settle.Out{Status: in.Status()}
	}
	spec := schemas.SpecAs[*releaseSpec](in.Object)
	st, out := &releaseStatus{}, settle.Out{}
	st.ObservedDigest, st.Phase = in.Object.Digest, "Waiting"
	ready, reason := schemas.False, "WaitsForDAG"
	dag := in.Tree.Entry(schemas.Ref{Kind: schemas.DAGKind.Name, Name: spec.DAG})
	switch {
	case len(in.Runs()) > 0:
		st.Phase, st.Printed, ready, reason = "Published", strings.TrimSpace(in.Runs()[0].Output), schemas.True, "Published"
	case dag != nil && schemas.BriefOf(in.World.Status(dag)).Ready == schemas.True:
		out.Effects = []settle.Effect{{Owner: in.Ref, Node: "publish", NodeKey: in.Object.Digest, Seq: 1,
			Key:  keys.OfEffect(releaseKind, in.Name, "publish", in.Object.Digest, 1),
			Task: &settle.Command{Argv: []string{"echo", "published", in.Name}}}}
	}
	since := schemas.Time{Time: in.Now}
	if in.HasStatus() {
		if c := in.Status().Base().Condition(schemas.Ready); c != nil && c.Status == ready {
			since = c.LastTransitionTime
		}
	}
	st.Conditions = []schemas.Condition{{Type: schemas.Ready, Status: ready, Reason: reason, Message: reason, LastTransitionTime: since}}
	st.History = []schemas.HistoryEntry{}
	out.Status = st
	return out
}

var releaseRow = settle.Kind{
	Kind: releaseKind, Decide: decideRelease, DependsOn: []string{schemas.DAGKind.Name}, Performs: true,
	PartOf: func(e *state.Entry, _ string) (dag, of string) {
		return schemas.SpecAs[*releaseSpec](e.Object).DAG, "box"
	},
	Why: func(e *state.Entry, _ *state.Tree) []string {
		return []string{"it waits for " + e.Object.Refs[0].To.String()}
	},
	Columns: []settle.Column{
		{Head: "DAG", Text: func(e *state.Entry) string { return schemas.SpecAs[*releaseSpec](e.Object).DAG }},
		{Head: "PRINTED", Text: printed},
	},
	Details: []settle.Column{{Head: "Printed", Text: printed}},
	Origin:  func(*state.Tree) func(*state.Entry) settle.Origin { return publishedOrigin },
	Note:    func(s schemas.Status) string { return strings.ToLower(s.Base().Phase) },
	Index: &project.Projector{Build: func(b *project.Builder) {
		spec := schemas.SpecAs[*releaseSpec](b.Entry.Object)
		b.Add(graph.Item{Node: b.Node(graph.Decision, schemas.Time{}), Title: b.Entry.Name, Body: spec.Notes})
		b.Edge(b.ID, graph.References, "dag/"+spec.DAG)
	}},
	Mirror: &mirror.Projector{
		Home: func(o *schemas.Object) (int, schemas.Ref) { return schemas.SpecAs[*releaseSpec](o).Issue, o.Refs[0].To },
		About: func(o *schemas.Object) (title, description string) {
			return "Release " + o.Name, schemas.SpecAs[*releaseSpec](o).Notes
		},
		Write: func(p *mirror.Page) {
			b := p.NewBody()
			b.Paragraph("### Release %s: %s", p.Entry.Name, p.Entry.Status().Base().Phase)
			b.Quoted(schemas.SpecAs[*releaseSpec](p.Entry.Object).Notes)
			p.Status(b)
		},
	},
}

func printed(e *state.Entry) string {
	if st, ok := e.Status().(*releaseStatus); ok {
		return st.Printed
	}
	return ""
}

func publishedOrigin(e *state.Entry) settle.Origin {
	if e.HasStatus() && e.Status().Base().Phase == "Published" {
		return settle.OriginOnce
	}
	return settle.OriginUser
}

// TestKindOfItsOwn adds a kind by one row, and finds it wherever objects are shown, checked, performed, committed, searched
// and mirrored.
func TestKindOfItsOwn(t *testing.T) {
	env := open(t)
	env.Tree.Kinds = append(slices.Clone(controllers.Kinds), releaseRow)
	env.Tree.Now = time.Now
	head := "apiVersion: reconcile.dev/v1alpha1\nkind: "
	write(t, env, "specs/sessions/shipping.yaml", head+"Session\nmetadata: {name: shipping}\nspec: {issue: 12}\n")
	write(t, env, "specs/dags/pack.yaml", head+"DAG\nmetadata: {name: pack}\nspec: {session: shipping, nodes: [{name: box, run: [\"true\"]}]}\n")
	write(t, env, "specs/releases/v1.yaml", head+"Release\nmetadata: {name: v1}\nspec: {dag: pack, notes: The quokka edition.}\n")
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", env.Tree.Dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q")
	git("add", "specs/sessions", "specs/dags")
	git("commit", "-qm", "base")

	if r, err := ops.Run(t.Context(), env, ops.RunRequest{Commit: true}); err != nil || r.Ran == 0 {
		t.Fatalf("%d commands ran, %v", r.Ran, err)
	}
	t.Run("commit", func(t *testing.T) {
		message := git("log", "-1", "--name-only")
		for _, want := range []string{"release/v1", "published", "specs/releases/v1.yaml", "state/releases/v1.json", "state/runs/releases/v1/publish-"} {
			if !strings.Contains(message, want) {
				t.Errorf("the commit lacks %q:\n%s", want, message)
			}
		}
	})
	t.Run("get", func(t *testing.T) {
		got, err := ops.Get(t.Context(), env, ops.GetRequest{What: []string{"rel"}})
		if err != nil || len(got.Entries) != 1 {
			t.Fatalf("%d objects, %v", len(got.Entries), err)
		}
		var b bytes.Buffer
		if err := render.ObjectTables(&b, render.Palette{}, got.Table, got.Entries, false, env.Tree.Now()); err != nil {
			t.Fatal(err)
		}
		if fields := strings.Fields(b.String()); !slices.Equal(fields, []string{"NAME", "DAG", "PRINTED", "v1", "pack", "published", "v1"}) {
			t.Errorf("the table is\n%s", b.String())
		}
	})
	t.Run("describe", func(t *testing.T) {
		d, err := ops.Describe(t.Context(), env, ops.DescribeRequest{Object: "release/v1"})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := render.Describe(&b, render.Palette{}, render.Description{Entry: d.Entry, Details: d.Details, Path: d.Path}, env.Tree.Now()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(got, "Phase: Published") || !strings.Contains(got, "Printed: published v1") {
			t.Errorf("the description is\n%s", b.String())
		}
		if d, err = ops.Describe(t.Context(), env, ops.DescribeRequest{Object: "dag/pack"}); err != nil || !slices.Contains(d.Referrers, "release/v1") {
			t.Errorf("the DAG is named by %q, %v", d.Referrers, err)
		}
	})
	t.Run("logs", func(t *testing.T) {
		r, err := ops.Logs(t.Context(), env, ops.LogsRequest{Object: "release/v1"})
		if err != nil || len(r.Attempts) != 1 || r.Attempts[0].Node != "publish" {
			t.Errorf("the attempts are %+v, %v", r.Attempts, err)
		}
	})
	t.Run("plan", func(t *testing.T) {
		write(t, env, "specs/dags/pack2.yaml", head+"DAG\nmetadata: {name: pack2}\nspec: {session: shipping, nodes: [{name: box, run: [\"true\"]}]}\n")
		write(t, env, "specs/releases/v5.yaml", head+"Release\nmetadata: {name: v5}\nspec: {dag: pack2}\n")
		write(t, env, "specs/releases/v6.yaml", head+"Release\nmetadata: {name: v6}\nspec: {dag: pack}\n")
		s, tree, _, err := env.Tree.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		runs := map[string]string{}
		steps := controllers.Plan(tree, env.Tree.Now(), nil, nil)
		for _, step := range steps {
			if step.Verb == settle.StepRun {
				runs[step.Ref.String()] = step.Node
			}
		}
		if want := map[string]string{"dag/pack2": "box", "release/v6": "publish"}; !maps.Equal(runs, want) {
			t.Errorf("a run would perform %v, not %v", runs, want)
		}
		if b := controllers.Bound(tree, steps, time.Now()); b.Runs != 2 || b.Endless != 2 {
			t.Errorf("the bounds are %+v", b)
		}
		if v5 := settle.Tree(tree, env.Tree.Now(), nil).Tree.Entry(schemas.Ref{Kind: "Release", Name: "v5"}); !slices.Contains(
			readiness.Why(v5, tree), "it waits for dag/pack2") {
			t.Errorf("it is explained by %q", readiness.Why(v5, tree))
		}
		only := &settle.Selection{DAG: "pack", Nodes: []string{"box"}}
		if in := only.In(tree); !in(schemas.Ref{Kind: "Release", Name: "v6"}, "publish") || in(schemas.Ref{Kind: "Release", Name: "v5"}, "publish") {
			t.Error("a run of one DAG does not perform exactly its release")
		}
		for _, name := range []string{"specs/dags/pack2.yaml", "specs/releases/v5.yaml", "specs/releases/v6.yaml"} {
			if err := os.Remove(filepath.Join(env.Tree.Dir, name)); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("search", func(t *testing.T) {
		q := ops.NewSearch()
		q.Text, q.Mode = "quokka", "lexical"
		r, err := finished(ops.Search(t.Context(), env, q))
		if err != nil || len(r.Results) == 0 || r.Results[0].ID != "release/v1" {
			t.Errorf("found %+v, %v", r, err)
		}
	})
	t.Run("mirror", func(t *testing.T) {
		s, run, _, err := env.Tree.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		shown := false
		for _, i := range mirror.Project(run, controllers.MirrorOptions(run, mirror.Options{})) {
			for _, c := range i.Comments {
				shown = shown || i.Number == 12 && c.Key == "status/release/v1" && strings.Contains(c.Body, "Release v1: Published") &&
					strings.Contains(c.Body, "> The quokka edition.")
			}
		}
		if !shown {
			t.Error("the issue of the DAG does not show the release")
		}
	})
	t.Run("validate", func(t *testing.T) {
		write(t, env, "specs/releases/v2.yaml", head+"Release\nmetadata: {name: v2}\nspec: {dag: pack, notes: TODO}\n")
		write(t, env, "specs/releases/v3.yaml", head+"Release\nmetadata: {name: v3}\nspec: {dag: nowhere}\n")
		write(t, env, "specs/releases/v4.yaml", head+"Release\nmetadata: {name: v4}\nspec: {}\n")
		v, err := ops.Validate(t.Context(), env, ops.ValidateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range v.Problems {
			if strings.HasPrefix(p.Path, "specs/releases/") {
				got = append(got, p.Path[len("specs/releases/"):]+" "+p.Code)
			}
		}
		slices.Sort(got)
		if got = slices.Compact(got); len(got) != 3 || got[0] != "v2.yaml unfinished" || got[1] != "v3.yaml missing-reference" {
			t.Errorf("problems: %q", got)
		}
	})
}
