package mirror_test

import (
	"fmt"
	"testing"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// BenchmarkProject projects 500 sessions with a DAG of 20 tasks each, one of which failed.
func BenchmarkProject(b *testing.B) {
	decoder := schemas.NewDecoder(controllers.Schemas(), 0)
	var entries []*state.Entry
	put := func(k schemas.Kind, name, spec string, status schemas.Status) {
		doc := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", schemas.APIVersion, k.Name, name, spec)
		d := decoder.Decode("specs/"+name+".yaml", []byte(doc))
		if d.Object == nil {
			b.Fatal(d.Problems)
		}
		o := d.Object
		e := &state.Entry{Ref: o.Ref, Object: o, StatusPath: "state/" + k.Plural + "/" + name + ".json"}
		e.SetStatus(status)
		entries = append(entries, e)
	}
	for n := range 500 {
		name := fmt.Sprintf("s%d", n)
		put(schemas.SessionKind, name, fmt.Sprintf("{issue: %d}", n+1), &schemas.SessionStatus{Common: schemas.Common{Phase: schemas.SessionActive}})
		nodes, states := "", map[string]schemas.NodeStatus{}
		for i := range 20 {
			nodes += fmt.Sprintf("{name: n%d, run: [\"true\"]}, ", i)
			states[fmt.Sprintf("n%d", i)] = schemas.NodeStatus{State: schemas.NodeSucceeded, Attempts: 1}
		}
		states["n7"] = schemas.NodeStatus{State: schemas.NodeFailed, Message: "exit code 1: something went wrong in the middle of it"}
		put(schemas.DAGKind, name, fmt.Sprintf("{session: %s, nodes: [%s]}", name, nodes), &schemas.DAGStatus{Nodes: schemas.NodeStatusesOf(states),
			Common: schemas.Common{Phase: schemas.DAGFailed, Conditions: []schemas.Condition{{Type: schemas.Ready, Reason: "Failed", Message: "n7 failed"}}}})
	}
	tree := state.NewTree(controllers.Schemas(), nil, nil, entries...)
	for b.Loop() {
		if got := len(project(tree, mirror.SomeOptions)); got != 500 {
			b.Fatal(got)
		}
	}
}
