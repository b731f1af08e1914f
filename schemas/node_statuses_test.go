package schemas_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestNodeStatusesAreAMap changes statuses at random and compares them with a map, also in JSON, and what was there before with
// what it was.
func TestNodeStatusesAreAMap(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		want := map[string]schemas.NodeStatus{}
		for range r.IntN(400) {
			want[fmt.Sprint("n", r.IntN(1000))] = schemas.NodeStatus{State: schemas.NodePending, Message: "a<b"}
		}
		is := schemas.NodeStatusesOf(want)
		for range 10 {
			former, before := is, maps.Clone(want)
			changed := map[string]*schemas.NodeStatus{}
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if r.IntN(100) == 0 {
					changed[name] = &schemas.NodeStatus{State: schemas.NodeQueued, Attempts: r.Int()}
					want[name] = *changed[name]
				}
			}
			if is != nil {
				is = is.With(maps.All(changed))
			}
			compareNodes(t, is, want)
			compareNodes(t, former, before)
			since := slices.Collect(is.Since(former))
			if len(since) != len(changed) {
				t.Fatalf("%d of %d changes are told", len(since), len(changed))
			}
			all := make([]*schemas.NodeStatus, 0, len(want))
			for _, s := range former.All() {
				all = append(all, s)
			}
			if got := former.Next(slices.Sorted(maps.Keys(want)), all); got != former {
				t.Fatal("the same statuses are not shared")
			}
		}
	}
}

func compareNodes(t *testing.T, is *schemas.NodeStatuses, want map[string]schemas.NodeStatus) {
	t.Helper()
	if is.Len() != len(want) || is.Find("none") != nil || is.Of("none").State != "" {
		t.Fatalf("%d nodes, not %d", is.Len(), len(want))
	}
	for name, s := range is.All() {
		if !reflect.DeepEqual(*s, want[name]) || is.Find(name) != s {
			t.Fatalf("%s is %+v, not %+v", name, *s, want[name])
		}
	}
	a, err := json.Marshal(struct {
		Nodes *schemas.NodeStatuses `json:"nodes,omitempty"`
	}{is})
	b, _ := json.Marshal(struct {
		Nodes map[string]schemas.NodeStatus `json:"nodes,omitempty"`
	}{want})
	if err != nil || string(a) != string(b) {
		t.Fatalf("%v:\n%s\n%s", err, a, b)
	}
	var back schemas.DAGStatus
	if err := json.Unmarshal(a, &back); err != nil || !reflect.DeepEqual(back.Nodes, is) || !is.Same(back.Nodes, func(a, b *schemas.NodeStatus) bool { return reflect.DeepEqual(a, b) }) {
		t.Fatalf("decoded otherwise: %v", err)
	}
}

func TestNodeStatusesOfNothing(t *testing.T) {
	is := schemas.NodeStatusesOf(map[string]schemas.NodeStatus{"a": {State: schemas.NodeQueued}})
	if err := json.Unmarshal([]byte("{}"), is); err != nil || is.Len() != 0 {
		t.Errorf("%d nodes, %v", is.Len(), err)
	}
	if !is.Same(nil, nil) || !(*schemas.NodeStatuses)(nil).Same(is, nil) {
		t.Error("no nodes are not the same as no nodes")
	}
}

// TestLongNodeStatuses decodes statuses of any length, which the decoder is given in parts.
func TestLongNodeStatuses(t *testing.T) {
	t.Parallel()
	for length := 300; length < 2600; length += 13 {
		all := map[string]schemas.NodeStatus{}
		for i := range 3 {
			all[fmt.Sprintf("n%d", i)] = schemas.NodeStatus{State: schemas.NodeFailed, Key: "k", Attempts: i, Message: strings.Repeat("\\\"}", length/3)}
		}
		data, err := json.Marshal(schemas.NodeStatusesOf(all))
		if err != nil {
			t.Fatal(err)
		}
		var is schemas.NodeStatuses
		if err := json.Unmarshal(data, &is); err != nil || is.Len() != len(all) {
			t.Fatalf("messages of %d bytes: %v, %d nodes", length, err, is.Len())
		}
		for name, want := range all {
			if got := is.Of(name); !reflect.DeepEqual(got, want) {
				t.Fatalf("messages of %d bytes: node %s is %+v", length, name, got)
			}
		}
	}
}
