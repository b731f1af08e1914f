package mirror_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

func TestObjects(t *testing.T) {
	t.Parallel()
	d := schemas.NewDecoder(controllers.Schemas(), 0)
	var entries []*state.Entry
	for name, spec := range map[string]string{
		"Session/numbered": "title: N, issue: 7", "Session/free": "title: F",
		"DAG/own":                    "session: numbered, issue: 8, nodes: [{name: a, run: [a]}]",
		"DAG/of":                     "session: numbered, nodes: [{name: a, run: [a]}]",
		"DAG/made":                   "session: free, nodes: [{name: a, run: [a]}]",
		"DAG/stray":                  "session: nobody, nodes: [{name: a, run: [a]}]",
		"ClarificationRequest/asked": "from: a, to: b, topic: T, question: Q, issue: 7",
		"ClarificationRequest/other": "from: a, to: b, topic: T, question: Q, run: dags/made/a-0123456789abcdef-1",
	} {
		kind, name, _ := strings.Cut(name, "/")
		o := d.Decode("specs/x/"+name+".yaml", []byte("apiVersion: "+schemas.APIVersion+"\nkind: "+kind+"\nmetadata: {name: "+name+
			"}\nspec: {"+spec+"}\n"))
		if o.Object == nil {
			t.Fatalf("%s: %v", name, o.Problems)
		}
		entries = append(entries, &state.Entry{Ref: o.Ref, Object: o.Object})
	}
	tree := state.NewTree(controllers.Schemas(), nil, nil, entries...)
	made := func(ref schemas.Ref) int {
		if ref.String() == "session/free" {
			return 9
		}
		return 0
	}
	got := map[int]string{}
	for n, refs := range mirror.Objects(tree, controllers.MirrorOptions(tree, mirror.Options{Made: made})) {
		for _, r := range refs {
			got[n] += r.String() + " "
		}
	}
	want := map[int]string{
		7: "clarificationrequest/asked dag/of session/numbered ",
		8: "dag/own ",
		9: "clarificationrequest/other dag/made session/free ",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if got := slices.Sorted(maps.Keys(mirror.Objects(tree, controllers.MirrorOptions(tree, mirror.Options{})))); !slices.Equal(got, []int{7, 8}) {
		t.Errorf("none made: %v", got)
	}
}
