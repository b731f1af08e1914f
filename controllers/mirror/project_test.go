package mirror_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

var update = flag.Bool("update", false, "rewrite the expected issues in testdata")

// loadTree reads the files of an archive as a tree.
func loadTree(t testing.TB, files []txtar.File) *state.Tree {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		p := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, FileNow: time.Now, NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it was only read
	tree, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range tree.Problems() {
		if p.Severity == schemas.Error {
			t.Fatal(p.Error())
		}
	}
	return tree
}

// project is mirror.Project with the table of kinds.
func project(t *state.Tree, o mirror.Options) []mirror.Issue {
	return mirror.Project(t, controllers.MirrorOptions(t, o))
}

// print is a projection as goldens have it.
func print(issues []mirror.Issue) string {
	var b strings.Builder
	for _, i := range issues {
		fmt.Fprintf(&b, "==== issue %d %s %q\n", i.Number, i.Object, i.Labels)
		if i.Key != "" {
			fmt.Fprintf(&b, "---- %s %q\n%s\n", i.Key, i.Title, i.Body)
		}
		for _, c := range i.Comments {
			fmt.Fprintf(&b, "---- %s\n%s\n", c.Key, c.Body)
		}
	}
	return strings.ReplaceAll(b.String(), mirror.Gap, "·") // so that a reader sees it
}

// TestProject runs testdata/*.txtar: the files of an archive are a tree, the last one, out, is what should stand on GitHub.
// A line "RAW <n>" in its comment says that out has only the first n bytes of it, for texts that are long.
func TestProject(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no trees: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == "out" })
			if i < 0 {
				a.Files = append(a.Files, txtar.File{Name: "out"})
				i = len(a.Files) - 1
			}
			issues := project(loadTree(t, a.Files[:i]), mirror.SomeOptions)
			checkIssues(t, issues)
			if got := print(issues); *update {
				a.Files[i].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(a.Files[i].Data) {
				t.Errorf("differs (go test -update rewrites it); got:\n%s", got)
			}
		})
	}
}

// checkIssues checks what holds of every projection.
func checkIssues(t testing.TB, issues []mirror.Issue) {
	t.Helper()
	seen := map[string]bool{}
	for _, i := range issues {
		if made := i.Object != (schemas.Ref{}); !made && i.Number == 0 || made != (i.Key != "") {
			t.Errorf("issue %d of %s with the key %q is on no issue", i.Number, i.Object, i.Key)
		}
		for _, c := range append([]mirror.Comment{{i.Key, i.Body}}, i.Comments...) {
			if c.Key == "" {
				continue
			}
			if seen[c.Key] || strings.ContainsAny(c.Key, " \n<>") || len(c.Key) > mirror.MarkerRoom-100 {
				t.Errorf("the key %q is there twice, or cannot be one", c.Key)
			}
			seen[c.Key] = true
			if n := mirror.Units(mirror.Keys{strings.Repeat("a", 64)}.Seal(c.Key, c.Body)); n > 65_536 {
				t.Errorf("%s has %d characters", c.Key, n)
			}
			mirror.Harmless(t, c.Body)
		}
	}
}

// TestBlankTitles: an issue has a title, whatever an object has.
func TestBlankTitles(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{`""`: "session/x", `"   "`: "session/x", `" A  b"`: "A b"} {
		tree := loadTree(t, []txtar.File{
			{Name: "specs/x.yaml", Data: []byte("apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: x}\nspec: {title: " + title + "}\n")},
			{Name: "state/sessions/x.json", Data: []byte(`{"apiVersion":"reconcile.dev/v1alpha1","kind":"Session","metadata":{"name":"x"},"status":{"phase":"Active"}}`)},
		})
		if issues := project(tree, mirror.Options{}); len(issues) != 1 || issues[0].Title != want {
			t.Errorf("%s: %+v", title, issues)
		}
	}
}

// TestProjectIsAFunctionOfStates: the same tree gives the same issues, whatever time it is; what a status says of times
// that a run leaves behind changes nothing.
func TestProjectIsAFunctionOfStates(t *testing.T) {
	t.Parallel()
	a, err := txtar.ParseFile("testdata/dag.txtar")
	if err != nil {
		t.Fatal(err)
	}
	tree := loadTree(t, a.Files[:len(a.Files)-1])
	want := print(project(tree, mirror.SomeOptions))
	if got := print(project(tree, mirror.SomeOptions)); got != want {
		t.Fatal("two projections of one tree differ")
	}
	ref := schemas.Ref{Kind: schemas.DAGKind.Name, Name: "checks"}
	e := *tree.Entry(ref)
	st := *e.Status().(*schemas.DAGStatus)
	nodes := map[string]schemas.NodeStatus{}
	for name, was := range st.Nodes.All() {
		n := *was
		n.StartedAt, n.Output, n.Log = schemas.NewTime(time.Unix(1, 0)), "later", "elsewhere"
		nodes[name] = n
	}
	st.Nodes = schemas.NodeStatusesOf(nodes)
	st.StartedAt = schemas.NewTime(time.Unix(2, 0))
	e.SetStatus(&st)
	if got := print(project(tree.With(&e), mirror.SomeOptions)); got != want {
		t.Errorf("the time of an attempt is a transition:\n%s", got)
	}
	build := nodes["build"]
	build.State = schemas.NodeFailed
	nodes["build"] = build
	st.Nodes = schemas.NodeStatusesOf(nodes)
	if got := print(project(tree.With(&e), mirror.SomeOptions)); got == want {
		t.Error("a node failed, and nothing tells of it")
	}
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	keys := mirror.Keys{strings.Repeat("a", 64), strings.Repeat("b", 64)}
	sealed := keys.Seal("status/dag/x", "one\n\ntwo  \n")
	for name, c := range map[string]struct {
		text string
		ours bool
	}{
		"as it was":          {sealed, true},
		"carriage returns":   {strings.ReplaceAll(sealed, "\n", "\r\n") + "\r\n", true},
		"another key signed": {mirror.Keys{keys[1]}.Seal("status/dag/x", "one\n\ntwo"), true},
		"nobody's key":       {mirror.Keys{strings.Repeat("c", 64)}.Seal("status/dag/x", "one\n\ntwo"), false},
		"edited":             {strings.Replace(sealed, "two", "three", 1), false},
		"other key":          {strings.Replace(sealed, "status/dag/x", "status/dag/y", 1), false},
		"moved up":           {sealed + "\nmore", false},
		"no marker":          {"one\n\ntwo", false},
		"only a marker":      {"<!-- reconcile a b -->", false},
		"no MAC":             {"one\n\n<!-- reconcile a -->", false},
		"empty":              {"", false},
		"quoted":             {"> " + strings.ReplaceAll(sealed, "\n", "\n> "), false},
	} {
		if key, ok := keys.Open(c.text); ok != c.ours || ok && key != "status/dag/x" {
			t.Errorf("%s: %q, %v", name, key, ok)
		}
	}
	if mirror.Marked(strings.Replace(sealed, "two", "three", 1)) != "status/dag/x" || mirror.Marked("x") != "" {
		t.Error("a comment of ours that was edited is not told from one of others")
	}
}
