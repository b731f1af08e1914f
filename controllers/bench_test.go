package controllers

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// benchObject makes an object without a decoder, for the benchmarks.
func benchObject(k schemas.Kind, name string, spec schemas.Spec) *schemas.Object {
	b := canonical(spec)
	path := "specs/" + k.Plural + "/" + name + ".yaml"
	return schemas.NewObject(k, schemas.Metadata{Name: name}, path, keys.Digest(b), b, spec.References())
}

// canonical is a spec as JSON with sorted keys.
func canonical(spec schemas.Spec) []byte {
	var fields any
	b, err := json.Marshal(spec)
	if err = errors.Join(err, json.Unmarshal(b, &fields)); err == nil {
		b, err = json.Marshal(fields)
	}
	if err != nil {
		panic(err)
	}
	return b
}

// benchDAG is a tree with a session and a DAG of n nodes, ten in a layer, each needing two of the layer before.
func benchDAG(n int) *state.Tree {
	spec := &schemas.DAGSpec{Session: "health"}
	for i := range n {
		node := schemas.Node{Name: fmt.Sprintf("n%d", i), Run: []string{"true"}}
		if i >= 10 {
			node.Needs = []string{fmt.Sprintf("n%d", i-10), fmt.Sprintf("n%d", i-10-i%10+(i+1)%10)}
		}
		spec.Nodes = append(spec.Nodes, node)
	}
	return state.NewTree(Schemas(), nil, nil,
		&state.Entry{Ref: schemas.SessionKind.Ref("health"), Object: benchObject(schemas.SessionKind, "health", &schemas.SessionSpec{})},
		&state.Entry{Ref: schemas.DAGKind.Ref("big"), Object: benchObject(schemas.DAGKind, "big", spec)})
}

// halfDone records a success for the first half of the nodes.
func halfDone(t *state.Tree, now time.Time) *state.Tree {
	d := settle.Tree(t, now, nil)
	e := *d.Tree.Entry(schemas.DAGKind.Ref("big"))
	st := e.Status().(*schemas.DAGStatus)
	nodes := e.Object.Spec().(*schemas.DAGSpec).Nodes
	for i := range nodes[:len(nodes)/2] {
		name := nodes[i].Name
		key := st.Nodes.Of(name).Key
		zero := 0
		e.SetRuns(append(e.Runs(), &schemas.Run{Key: keys.OfEffect(schemas.DAGKind, "big", name, key, 1), Node: name, NodeKey: key, Seq: 1,
			Outcome: schemas.OutcomeSucceeded, StartedAt: schemas.NewTime(now),
			FinishedAt: schemas.NewTime(now.Add(time.Duration(i) * time.Millisecond)), ExitCode: &zero}))
	}
	slices.SortFunc(e.Runs(), compareRuns)
	return settle.Tree(d.Tree.With(&e), now, nil).Tree
}

var benchNow = time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)

// BenchmarkDecideFirst decides a DAG that nothing is known of, its spec decoded.
func BenchmarkDecideFirst(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				t := benchDAG(n)
				t.Entry(schemas.DAGKind.Ref("big")).Object.Spec()
				b.StartTimer()
				settle.Tree(t, benchNow, nil)
			}
		})
	}
}

// BenchmarkDecideTurn decides a DAG of which half is done when one more node has finished, as in every turn of a run.
func BenchmarkDecideTurn(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t := halfDone(benchDAG(n), benchNow)
			e := *t.Entry(schemas.DAGKind.Ref("big"))
			name := fmt.Sprintf("n%d", n/2)
			key := e.Status().(*schemas.DAGStatus).Nodes.Of(name).Key
			e.SetRuns(append(e.Runs()[:e.RunCount():e.RunCount()], &schemas.Run{Key: keys.OfEffect(schemas.DAGKind, "big", name, key, 1), Node: name,
				NodeKey: key, Seq: 1, Outcome: schemas.OutcomeSucceeded, StartedAt: schemas.NewTime(benchNow),
				FinishedAt: schemas.NewTime(benchNow)}))
			slices.SortFunc(e.Runs(), compareRuns)
			t = t.With(&e)
			b.ReportAllocs()
			for b.Loop() {
				if d := settle.Tree(t, benchNow, []schemas.Ref{e.Ref}); len(d.Changed) == 0 {
					b.Fatal("nothing changed")
				}
			}
		})
	}
}

// BenchmarkDecideIdle decides a DAG in which nothing changed.
func BenchmarkDecideIdle(b *testing.B) {
	t := halfDone(benchDAG(1000), benchNow)
	b.ReportAllocs()
	for b.Loop() {
		settle.Tree(t, benchNow, []schemas.Ref{schemas.DAGKind.Ref("big")})
	}
}

// BenchmarkSettleTree decides a tree of 10,000 objects for the first time, and again with one DAG touched.
func BenchmarkSettleTree(b *testing.B) {
	const n = 10000
	fresh := func() *state.Tree {
		var entries []*state.Entry
		add := func(k schemas.Kind, name string, spec schemas.Spec) {
			o := benchObject(k, name, spec)
			o.Spec()
			entries = append(entries, &state.Entry{Ref: o.Ref, Object: o})
		}
		for i := range n / 50 {
			add(schemas.SessionKind, fmt.Sprintf("s%04d", i), &schemas.SessionSpec{Phase: schemas.SessionActive})
			add(schemas.AgentKind, fmt.Sprintf("a%04d", i),
				&schemas.AgentSpec{Runner: schemas.Runner{Human: &schemas.HumanRunner{}}})
		}
		for i := range n / 5 {
			session := fmt.Sprintf("s%04d", i%(n/50))
			add(schemas.DAGKind, fmt.Sprintf("d%05d", i), &schemas.DAGSpec{Session: session, Nodes: []schemas.Node{
				{Name: "build", Run: []string{"make"}}, {Name: "test", Run: []string{"make", "test"}, Needs: []string{"build"}},
				{Name: "lint", Run: []string{"lint"}}, {Name: "ship", Run: []string{"ship"}, Needs: []string{"test", "lint"}}}})
		}
		for i := range n - n/50*2 - n/5 {
			add(schemas.ObservationKind, fmt.Sprintf("o%05d", i), &schemas.ObservationSpec{Agent: "a0001"})
		}
		return state.NewTree(Schemas(), nil, nil, entries...)
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			t := fresh()
			b.StartTimer()
			settle.Tree(t, benchNow, nil)
		}
	})
	b.Run("again", func(b *testing.B) {
		t := settle.Tree(fresh(), benchNow, nil).Tree
		b.ReportAllocs()
		for b.Loop() {
			settle.Tree(t, benchNow, nil)
		}
	})
	b.Run("one", func(b *testing.B) {
		t := settle.Tree(fresh(), benchNow, nil).Tree
		b.ReportAllocs()
		for b.Loop() {
			settle.Tree(t, benchNow, []schemas.Ref{schemas.DAGKind.Ref("d00042")})
		}
	})
}

// BenchmarkArchivable looks for what may go to the archive in a tree of which nothing was decoded yet.
func BenchmarkArchivable(b *testing.B) {
	var entries []*state.Entry
	for i := range 10_000 {
		spec := &schemas.ObservationSpec{Agent: "engineer", Issue: i % 100, Timestamp: schemas.NewTime(benchNow)}
		for k := range 5 {
			spec.Entries = append(spec.Entries, schemas.ObservationEntry{Category: schemas.Categories()[0],
				Content: fmt.Sprintf("Observation %d of %d: the repository pattern keeps the statements of the database in one place.", k, i),
				Anchors: []string{"docs/db.md"}, Digests: map[string]string{"docs/db.md": "absent"}})
		}
		o := benchObject(schemas.ObservationKind, fmt.Sprintf("o%d", i), spec)
		entries = append(entries, &state.Entry{Ref: o.Ref, Object: o})
	}
	tree := state.NewTree(Schemas(), nil, nil, entries...)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for _, e := range entries {
			e.Object.Release()
		}
		b.StartTimer()
		if moves, next := Archivable(tree, benchNow, false); len(moves) > 0 || next.IsZero() {
			b.Fatal(moves, next)
		}
	}
}
