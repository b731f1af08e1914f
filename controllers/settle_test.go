package controllers

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestOrderDoesNotMatter decides the objects of random trees in random orders: the outcome is always the same.
func TestOrderDoesNotMatter(t *testing.T) {
	for seed := range uint64(40) {
		c := &chaos{sim: newSim(t), r: rand.New(rand.NewPCG(seed, 3)), succeeded: map[string]string{}}
		c.checks = false
		c.setUp()
		for range 15 {
			c.step()
			c.settle()
		}
		c.step()
		tree := c.tree()
		want := decideInOrder(tree, c, func([]*state.Entry) {})
		for range 3 {
			got := decideInOrder(tree, c, func(list []*state.Entry) {
				c.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			})
			for ref, st := range want {
				if !Kinds.Row(ref.Kind).SameStatus(st, got[ref]) {
					t.Errorf("seed %d: %s depends on the order:\n%s\n%s", seed, ref, c.text(ref, st), c.text(ref, got[ref]))
				}
			}
		}
	}
}

// decideInOrder decides everything once, in the order that arrange makes.
func decideInOrder(t *state.Tree, c *chaos, arrange func([]*state.Entry)) map[schemas.Ref]schemas.Status {
	var list []*state.Entry
	for _, kind := range t.Kinds() {
		list = append(list, t.Entries(kind)...)
	}
	arrange(list)
	w := settle.NewWorld(t, c.now, nil)
	out := map[schemas.Ref]schemas.Status{}
	for _, e := range list {
		out[e.Ref] = w.Status(e)
	}
	return out
}

// TestSettleConverges completes a chain of sessions that free their places one after the other, in one Settle.
func TestSettleConverges(t *testing.T) {
	s := newSim(t)
	s.put("reconcile.yaml", head("Settings", "settings")+"spec: {limits: {sessions: 1}}\n")
	const n = 12
	for i := range n {
		s.put(fmt.Sprintf("specs/sessions/s%02d.yaml", i), head("Session", fmt.Sprintf("s%02d", i))+"spec: {phase: Completed}\n")
		s.put(fmt.Sprintf("specs/dags/d%02d.yaml", i), head("DAG", fmt.Sprintf("d%02d", i))+fmt.Sprintf(
			"spec: {session: s%02d, nodes: [{name: build, run: [build]}]}\n", i))
	}
	s.settle()
	keys := s.dag("d00").Nodes.Of("build").Key
	for i := range n { // every DAG has its success on record; only places hold the sessions back
		e := s.entry(schemas.DAGKind.Ref(fmt.Sprintf("d%02d", i)))
		e.SetRuns(append(e.Runs(), &schemas.Run{Node: "build", NodeKey: keys, Seq: 1, Outcome: schemas.OutcomeSucceeded}))
	}
	s.settle()
	for i := range n {
		ref := schemas.SessionKind.Ref(fmt.Sprintf("s%02d", i))
		if phase := s.entries[ref].Status().Base().Phase; phase != schemas.SessionCompleted {
			t.Errorf("%s is %s after one Settle", ref, phase)
		}
	}
}

// TestSettleLooksOnlyAtWhatIsAffected decides one of many DAGs.
func TestSettleLooksOnlyAtWhatIsAffected(t *testing.T) {
	s := newSim(t)
	for i := range 50 {
		s.put(fmt.Sprintf("specs/sessions/s%d.yaml", i), head("Session", fmt.Sprintf("s%d", i))+"spec: {}\n")
		s.put(fmt.Sprintf("specs/dags/d%d.yaml", i), head("DAG", fmt.Sprintf("d%d", i))+fmt.Sprintf(
			"spec: {session: s%d, nodes: [{name: build, run: [build]}]}\n", i))
	}
	s.settle()
	s.entry(schemas.DAGKind.Ref("d7"))
	if d := s.settle(); len(d.Outs) != 2 {
		t.Errorf("%d objects were decided, want the DAG and its session", len(d.Outs))
	}
}

// TestSettleHoldsOnlyWhatWorks: the plan of a DAG that has something to do is kept from turn to turn, that of one that
// waits for its session is let go of.
func TestSettleHoldsOnlyWhatWorks(t *testing.T) {
	s := newSim(t)
	for name, phase := range map[string]string{"works": "Active", "rests": "Paused"} {
		s.put("specs/sessions/"+name+".yaml", head("Session", name)+"spec: {owner: "+name+", phase: "+phase+"}\n")
		s.put("specs/dags/"+name+".yaml", head("DAG", name)+"spec: {session: "+name+", nodes: [{name: build, run: [build]}]}\n")
	}
	s.settle()
	works, rests := s.entry(schemas.DAGKind.Ref("works")).Object, s.entry(schemas.DAGKind.Ref("rests")).Object
	kept, let := works.Spec(), rests.Spec()
	settle.Tree(s.tree(), s.now, nil)
	if works.Spec() != kept {
		t.Error("the plan of a DAG at work was made again")
	}
	if rests.Spec() == let {
		t.Error("the plan of a DAG at rest is held")
	}
}
