package dags

import (
	"fmt"
	"slices"
	"strconv"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// The rounds of a loop follow from the records: from the second on, a round is part of the keys of its nodes, so a round has ended
// when the node that repeats has a success under its key of that round. A decision begins with the rounds of the status, where
// their keys are the present ones, since old records are pruned; else with the first, and goes on to the last recorded one.

// findRounds begins with the rounds of the status, if they are about the present definitions.
func (f *fold) findRounds() {
	if len(f.p.Loops) == 0 {
		return
	}
	f.rounds = make([]int, len(f.next))
	for l := range f.p.Loops {
		loop := &f.p.Loops[l]
		f.setRound(loop, max(f.was[loop.Node].Round, 1))
	}
	f.bind()
	for l := range f.p.Loops {
		loop := &f.p.Loops[l]
		switch was := f.was[loop.Node]; {
		case was.Round > 1 && was.Key != f.b.Keys[loop.Node]:
			f.setRound(loop, 1)
		case was.Round > loop.Max && was.State != schemas.NodeSucceeded && was.Reason != settle.ReasonRoundsUsedUp && !f.succeededIn(loop):
			f.setRound(loop, was.Round-1) // repeat.max was lowered meanwhile
		}
	}
}

// succeededIn reports whether a run of the node that repeats is on record that ended the present round.
func (f *fold) succeededIn(loop *plan.Loop) bool {
	return slices.ContainsFunc(f.nodeRuns(f.p.Spec.Nodes[loop.Node].Name), func(r *schemas.Run) bool {
		return r.Outcome == schemas.OutcomeSucceeded && r.IsWork() && r.NodeKey == f.b.Keys[loop.Node]
	})
}

// bind makes the keys of the nodes of a DAG for their present generations and rounds.
func (f *fold) bind() {
	ready := f.old.Condition(schemas.Ready)
	same := f.old.ObservedDigest == f.Object.Digest && ready != nil && ready.Reason != settle.ReasonAgentInvalid
	f.b = plan.Bind(f.In, f.p, f.gens, f.inputs, f.tools, f.rounds).Keeping(f.p, f.was, same, f.Runs)
}

func (f *fold) setRound(loop *plan.Loop, round int) {
	for _, m := range loop.Members {
		f.rounds[m] = round
	}
}

// repeats reports whether the success of node i is not the end of its loop; then it has set the state.
func (f *fold) repeats(i int32) bool {
	loop := f.p.LoopOf(i)
	env := f.expressionEnv(i)
	env.Result = resultOf(f.next[i])
	holds, err := loop.Until.Holds(env)
	switch {
	case err != nil:
		f.set(i, schemas.NodeFailed, settle.ReasonWhenFailed, "repeat.until cannot be evaluated: "+err.Error())
	case holds:
		return false
	case f.rounds[i] >= loop.Max:
		f.set(i, schemas.NodeFailed, settle.ReasonRoundsUsedUp, fmt.Sprintf(
			"until does not hold after %s; approve it to go on as it is, or raise repeat.max", schemas.Count(loop.Max, "round")))
	default:
		f.turning = append(f.turning, loop)
		f.set(i, schemas.NodePending, "", "")
	}
	return true
}

// nextRounds begins the next round of the loops whose result is not good, and reports whether there are any. Then all nodes must
// be judged again.
func (f *fold) nextRounds() bool {
	if len(f.turning) == 0 {
		return false
	}
	for _, loop := range f.turning {
		for _, m := range loop.Members {
			f.began = schemas.Earlier(f.began, f.recs[m].since)
		}
		f.setRound(loop, f.rounds[loop.Node]+1)
	}
	f.turning = nil
	return true
}

// restartLoop begins a loop again whose node is retried after its last round.
func (f *fold) restartLoop(i int32) {
	loop, why := f.p.LoopOf(i), f.next[i].Reason
	if loop == nil || loop.Node != i || why != settle.ReasonRoundsUsedUp && why != settle.ReasonApproved {
		return
	}
	f.setRound(loop, 1)
	for _, m := range loop.Members {
		if m != i {
			f.gens[m]++
		}
	}
}

// restartLoops begins loops again after a retry: all of them where all nodes run again, else those that need what runs again.
func (f *fold) restartLoops(all bool) {
	for range f.p.Loops {
		f.bind()
		begun := false
		for l := range f.p.Loops {
			loop := &f.p.Loops[l]
			if f.rounds[loop.Node] > 1 && (all || f.needsOthers(loop)) {
				f.setRound(loop, 1)
				begun = true
			}
		}
		if !begun {
			return
		}
	}
}

// needsOthers reports whether what a loop needs has other keys than when it was last judged.
func (f *fold) needsOthers(loop *plan.Loop) bool {
	for _, m := range loop.Members {
		for _, need := range f.p.Needs[m] {
			if !slices.Contains(loop.Members, need) && f.keys[need] != f.b.Keys[need] {
				return true
			}
		}
	}
	return false
}

// addFormerRound adds the results of the round before to those that node i gets.
func (f *fold) addFormerRound(i int32, out map[string]settle.Need) {
	if f.b.Round(i) < 2 {
		return
	}
	loop := f.p.LoopOf(i)
	n, before := &f.p.Spec.Nodes[loop.Node], f.b.Before(f.p, loop)
	var last *schemas.Run
	for _, r := range f.nodeRuns(n.Name) {
		if r.Outcome == schemas.OutcomeSucceeded && r.IsWork() && slices.Contains(before, r.NodeKey) {
			last = r
		}
	}
	if last == nil {
		return // its record was pruned
	}
	need := settle.Need{State: schemas.NodeSucceeded, ExitCode: last.ExitCode, Files: n.Outputs.Files}
	if len(last.Result) > 0 {
		need.Result = last.Result
	}
	out[n.Name] = need
}

// round describes the round to the agent of node i.
func (f *fold) round(i int32) *agentio.Round {
	number := f.b.Round(i)
	if number < 2 {
		return nil
	}
	loop := f.p.LoopOf(i)
	n := &f.p.Spec.Nodes[loop.Node]
	return &agentio.Round{Number: number, Most: loop.Max, Judge: n.Name, Until: n.Repeat.Until}
}

// withRound adds the variable that counts rounds.
func withRound(env []string, round int) []string {
	env = append(slices.Clone(env), "RECONCILE_ROUND="+strconv.Itoa(round))
	slices.Sort(env)
	return env
}
