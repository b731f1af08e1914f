package plan

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// loopsSpec is a DAG with a loop of three nodes, and two of one node each of which one needs the first loop.
func loopsSpec() *schemas.DAGSpec {
	repeats := func(from string) *schemas.Repeat { return &schemas.Repeat{Until: "result == 1", From: from, Max: 9} }
	return &schemas.DAGSpec{Session: "s", Nodes: []schemas.Node{
		{Name: "z-first", Run: []string{"true"}},
		{Name: "y-begins", Agent: "a", Prompt: "Go.", Needs: []string{"z-first"}},
		{Name: "x-between", Run: []string{"true"}, Needs: []string{"y-begins"}, Made: &schemas.Made{Former: []byte(`{"p":1}`)}},
		{Name: "w-judges", Run: []string{"true"}, Needs: []string{"x-between", "z-first"}, Repeat: repeats("y-begins")},
		{Name: "v-alone", Run: []string{"true"}, Repeat: repeats("")},
		{Name: "u-after", Agent: "a", Prompt: "Go.", Needs: []string{"w-judges", "v-alone"}, Repeat: repeats("")},
	}}
}

// boundAt binds a plan without a tree.
func boundAt(p *Plan, rounds []int) *Binding {
	runner := &schemas.AgentSpec{Runner: schemas.Runner{Command: &schemas.CommandRunner{Argv: []string{"cat"}}}}
	agent := schemas.NewObject(schemas.AgentKind, schemas.Metadata{Name: "a"}, "specs/a.yaml", "sha256:1", nil, nil).WithSpec(runner, "sha256:1", nil)
	b := &Binding{agents: slices.Repeat([]*schemas.Object{agent}, len(p.Agents)), gens: make([]int, len(rounds)), Inputs: make([]string, len(rounds)), tools: make([]map[string]string, len(rounds)), rounds: rounds,
		before: make([]atomic.Pointer[[]string], len(p.Loops))}
	b.bindKeys(p)
	return b
}

// TestKeysBefore compares the keys of the round before with those that all nodes have when only that loop is a round earlier.
func TestKeysBefore(t *testing.T) {
	p := newPlan("d", loopsSpec())
	if p.Fault != "" || len(p.Loops) != 3 {
		t.Fatalf("%d loops, fault %q", len(p.Loops), p.Fault)
	}
	for _, round := range []int{2, 3, 7} {
		rounds := []int{0, round, round, round, 4, round}
		b := boundAt(p, rounds)
		for l := range p.Loops {
			loop := &p.Loops[l]
			earlier := slices.Clone(rounds)
			for _, m := range loop.Members {
				earlier[m]--
			}
			then := boundAt(p, earlier)
			former := then.formerKeys(p)
			n := loop.Node
			want := []string{then.tasks[n], then.withAgents[n], former.tasks[n], former.withAgents[n]}
			for range 2 {
				if got := b.Before(p, loop); !slices.Equal(got, want) {
					t.Errorf("round %d of %s: %v, want %v", round, p.Spec.Nodes[n].Name, got, want)
				}
			}
		}
	}
}

// TestKeysBeforeOfManyLoops: the keys of the rounds before are made from those of the loop, not from those of all nodes.
func TestKeysBeforeOfManyLoops(t *testing.T) {
	allocated := func(loops int) float64 {
		spec := &schemas.DAGSpec{Session: "s"}
		for i := range loops {
			spec.Nodes = append(spec.Nodes, schemas.Node{Name: fmt.Sprint("n", i), Run: []string{"true"},
				Repeat: &schemas.Repeat{Until: "result == 1", Max: 3}})
		}
		p := newPlan("d", spec)
		b := boundAt(p, slices.Repeat([]int{2}, loops))
		return testing.AllocsPerRun(1, func() {
			b.before = make([]atomic.Pointer[[]string], loops)
			for l := range p.Loops {
				b.Before(p, &p.Loops[l])
			}
		}) / float64(loops)
	}
	if few, many := allocated(10), allocated(300); many > 2*few {
		t.Errorf("%.0f allocations for each of 300 loops, %.0f for each of 10", many, few)
	}
}
