package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// own are the paths that are watched whatever the nodes read.
var own = []string{"reconcile.yaml", "specs", "state"}

func TestWatchedPaths(t *testing.T) {
	for _, c := range []struct {
		name   string
		inputs []string // of one node each
		want   []string // beside own
	}{
		{"no inputs", []string{""}, nil},
		{"a file", []string{"'go.mod'"}, []string{"go.mod"}},
		{"a file in a folder", []string{"docs/start.md"}, []string{"docs/start.md"}},
		{"a folder's files", []string{"'src/*.go'"}, []string{"src"}},
		{"everything below a folder", []string{"'src/app/**'"}, []string{"src/app"}},
		{"a folder in the middle", []string{"'src/*/testdata/*.txt'"}, []string{"src"}},
		{"alternatives", []string{"'src/{a,b}/*.go'"}, []string{"src"}},
		{"anywhere", []string{"'**/*.go'"}, []string{"."}},
		{"at the root", []string{"'*.go'"}, []string{"."}},
		{"twice the same", []string{"'src/*.go', 'src/*.md'", "'src/**/*.c'"}, []string{"src"}},
		{"several nodes", []string{"'lib/**'", "'src/**', Makefile", ""}, []string{"Makefile", "lib", "src"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := treeOf(t, c.inputs...)
			want := slices.Sorted(slices.Values(slices.Concat(own, c.want)))
			if got := watchedPaths(tree.Settings(), tree); !slices.Equal(got, want) {
				t.Errorf("watches %q, want %q", got, want)
			}
		})
	}
}

// TestFollowInputs lets nodes gain and lose inputs, turn by turn. The watcher is told after turns that changed what there
// is to watch, and only then; reports between the turns change nothing.
func TestFollowInputs(t *testing.T) {
	var observed, followed int
	var last []string
	l := &loop.Loop{Observe: func([]settle.Report, *state.Tree) { observed++ }}
	followInputs(l, func(paths []string) { followed, last = followed+1, paths })
	report := []settle.Report{{Kind: settle.Started}}
	for i, turn := range []struct {
		reports  []settle.Report
		tree     *state.Tree
		followed int
		want     []string // beside own
	}{
		{nil, treeOf(t, ""), 1, nil},
		{nil, treeOf(t, "'src/**'", "'lib/*.go'"), 2, []string{"src", "lib"}},
		{report, treeOf(t, ""), 2, []string{"src", "lib"}},
		{nil, treeOf(t, "'src/*.md'", "'lib/**'"), 2, []string{"src", "lib"}},
		{nil, treeOf(t, "'src/*.md'", ""), 3, []string{"src"}},
		{nil, nil, 3, []string{"src"}},
		{nil, treeOf(t), 4, nil},
	} {
		l.Observe(turn.reports, turn.tree)
		want := slices.Sorted(slices.Values(slices.Concat(own, turn.want)))
		if followed != turn.followed || !slices.Equal(last, want) || observed != i+1 {
			t.Errorf("turn %d: told %d times, last of %q; want %d times, %q", i+1, followed, last, turn.followed, want)
		}
	}
}

// treeOf is a tree with one DAG for each node, whose inputs are given as YAML.
func treeOf(t *testing.T, inputs ...string) *state.Tree {
	t.Helper()
	d := schemas.NewDecoder(controllers.Schemas(), 0)
	var entries []*state.Entry
	for i, list := range inputs {
		src := fmt.Sprintf("apiVersion: %s\nkind: DAG\nmetadata: {name: d%d}\n"+
			"spec: {session: s, nodes: [{name: n, run: [x], inputs: [%s]}]}\n", schemas.APIVersion, i, list)
		out := d.Decode("specs/d.yaml", []byte(src))
		if out.Object == nil {
			t.Fatalf("%s%v", src, out.Problems)
		}
		e := &state.Entry{Ref: out.Ref, Object: out.Object}
		if strings.TrimSpace(list) != "" {
			e.Inputs = map[string]string{"n": "sha256:0"} // as the store has it of nodes with inputs
		}
		entries = append(entries, e)
	}
	return state.NewTree(controllers.Schemas(), nil, nil, entries...)
}
