package controllers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// TestDecisionsGoOn runs random DAGs of commands to their end, and compares each decision, which may go on from the one before, with
// one that knows nothing of it.
func TestDecisionsGoOn(t *testing.T) {
	t.Parallel()
	for seed := range uint64(mutants.Size(15, 60, 60)) {
		r := rand.New(rand.NewPCG(seed, 7))
		g := &goingOn{T: t, r: r, spec: randomCommands(r), now: benchNow}
		g.tree = g.fresh(nil)
		for step := 0; step < 150 && g.step(step); step++ {
		}
	}
}

type goingOn struct {
	*testing.T
	r       *rand.Rand
	spec    *schemas.DAGSpec
	now     time.Time
	decider settle.Decider
	tree    *state.Tree
}

var goingDAG = schemas.DAGKind.Ref("big")

// randomCommands is a DAG of up to 30 commands. One in three fails fast, and may fail.
func randomCommands(r *rand.Rand) *schemas.DAGSpec {
	spec := &schemas.DAGSpec{Session: "health"}
	for i := range 2 + r.IntN(30) {
		n := schemas.Node{Name: fmt.Sprint("n", i), Run: []string{"true"}, Optional: r.IntN(8) == 0}
		for range r.IntN(3) {
			if i > 0 {
				n.Needs = append(n.Needs, fmt.Sprint("n", r.IntN(i)))
			}
		}
		slices.Sort(n.Needs)
		n.Needs = slices.Compact(n.Needs)
		if len(n.Needs) > 0 && r.IntN(8) == 0 {
			n.When = fmt.Sprintf("needs.%s.exitCode == 0", n.Needs[0])
		}
		if r.IntN(6) == 0 {
			n.Retry = &schemas.Retry{Limit: 1}
		}
		spec.Nodes = append(spec.Nodes, n)
	}
	return spec
}

// fresh is a tree with the DAG as in an entry, whose object no decision has seen; nil: with a new one.
func (g *goingOn) fresh(of *state.Entry) *state.Tree {
	e := &state.Entry{Ref: goingDAG}
	entries := []*state.Entry{{Ref: schemas.SessionKind.Ref("health"), Object: benchObject(schemas.SessionKind, "health", &schemas.SessionSpec{})}}
	if of != nil {
		*e = *of
		entries[0] = g.tree.Entry(entries[0].Ref)
	}
	e.Object = benchObject(schemas.DAGKind, "big", g.spec)
	return state.NewTree(Schemas(), nil, nil, append(entries, e)...)
}

// step decides and lets something happen. It returns false once the DAG is at its end.
func (g *goingOn) step(step int) bool {
	g.Helper()
	var dirty []schemas.Ref
	if step > 0 {
		dirty = []schemas.Ref{goingDAG}
	}
	d := g.decider.Settle(g.tree, g.now, dirty)
	want := settle.Tree(g.fresh(g.tree.Entry(goingDAG)), g.now, nil)
	if got, want := g.text(&d), g.text(&want); got != want {
		g.Fatalf("step %d: a decision that goes on:\n%s\none that does not:\n%s", step, got, want)
	}
	effects := d.Outs[goingDAG].Effects
	g.tree = d.Tree
	if len(effects) == 0 {
		return false
	}
	for range 1 + g.r.IntN(3) {
		g.happen(&effects[g.r.IntN(len(effects))])
	}
	g.now = g.now.Add(time.Duration(g.r.IntN(3000)) * time.Millisecond)
	return true
}

// text is what a decision says of the DAG.
func (g *goingOn) text(d *settle.Decision) string {
	g.Helper()
	data, err := json.MarshalIndent(d.StatusOf(goingDAG), "", " ")
	if err != nil {
		g.Fatal(err)
	}
	out := d.Outs[goingDAG]
	return fmt.Sprintf("%s\n%s\n%v %v", data, asJSON(g, out.Effects), out.Again, out.Await)
}

// happen claims, starts, releases or ends the run of an effect.
func (g *goingOn) happen(effect *settle.Effect) {
	e := *g.tree.Entry(goingDAG)
	e.Claims = slices.Clone(e.Claims)
	at := slices.IndexFunc(e.Claims, func(c state.Claim) bool { return c.Key == effect.Key })
	switch {
	case at < 0 && slices.ContainsFunc(e.Runs(), func(r *schemas.Run) bool { return r.Key == effect.Key }):
		return // it has ended since the decision
	case at < 0:
		e.Claims = append(e.Claims, state.Claim{Run: effect.Claim()})
		slices.SortFunc(e.Claims, func(a, b state.Claim) int { return strings.Compare(a.Node, b.Node) })
	case g.r.IntN(12) == 0:
		e.Claims = slices.Delete(e.Claims, at, at+1)
	case e.Claims[at].StartedAt.IsZero():
		e.Claims[at].StartedAt = schemas.NewTime(g.now)
	default:
		run := e.Claims[at].Run
		run.FinishedAt, run.Outcome, run.ExitCode = schemas.NewTime(g.now), schemas.OutcomeSucceeded, new(int)
		if g.r.IntN(25) == 0 {
			run.Outcome, *run.ExitCode = schemas.OutcomeFailed, 1
		}
		e.Claims = slices.Delete(e.Claims, at, at+1)
		runs := append(slices.Clone(e.Runs()), &run)
		slices.SortFunc(runs, compareRuns)
		e.SetRuns(runs)
	}
	g.tree = g.tree.With(&e)
}
