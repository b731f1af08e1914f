package dags

import (
	"fmt"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/research"
	"reconcile.dev/reconcile/schemas"
)

// What follows from the verdict of a step about a change.

// mostVerdicts is how often an agent is asked about one change that comes to no verdict.
const mostVerdicts = 2

// awaits says that the next step is about the commit of the run on: of is that of the agent, and on the same, or that of the tests of its commit.
func (v *verifying) awaits(of, on *schemas.Run, step string) { v.of, v.on, v.step = of, on, step }

// sendsBack sends the change of a run back for what a verification found, and reports whether a person has to decide instead.
func (f *fold) sendsBack(i int32, run, record *schemas.Run) (held bool) {
	p, v := f.pipelineOf(i), &f.recs[i].verify
	if v.loops == nil {
		v.loops, v.returned = map[string]int{}, map[string]*schemas.Run{}
	}
	by := stepAgent(record.Step)
	v.loops[by]++
	v.back = append(v.back, record)
	if v.sentBack = record; run.Workspace.Tree != "" {
		v.returned[run.Workspace.Tree] = record
	}
	if v.loops[by] > p.Loops() {
		v.held = fmt.Sprintf("the %s has sent it back %s: %s", by, times(p.Loops()), checks.EvidenceOf(record).Summary)
	}
	return v.held != ""
}

// doubt notes why the checks may see less of a change that passed, or saw only a part.
func (f *fold) doubt(i int32, all []string) {
	v := &f.recs[i].verify
	for _, of := range []map[string]*schemas.Run{v.verdicts, v.proofs} {
		record := of[schemas.StepInspect]
		if record == nil || f.ignoring(i, v.change, schemas.StepInspect) != nil {
			continue
		}
		if files := checks.EvidenceOf(record).Unchecked; len(files) > 0 {
			all = append(all[:len(all):len(all)], "changes "+schemas.Shorten(files, 3)+", at which no tool looks")
		}
	}
	if len(all) > 0 {
		v.doubts = "it " + schemas.Shorten(all, 3)
	}
}

// openQuestions reports whether the questions about tools that a verification left open come before its verdict. The knowledge agent is asked
// them, and a person is where no tool looked at the change at all. An answer has the change verified again.
func (f *fold) openQuestions(i int32, run, record *schemas.Run, e *checks.Evidence) bool {
	v := &f.recs[i].verify
	if len(e.Undecided) == 0 || record.Agent != "" || f.pipelineOf(i).AllowsNone(record.Step) {
		return false
	}
	asked := research.Of(f.Tree, f.p.Spec.Session, e.Undecided)
	switch {
	case asked.Asks != "", asked.Answered:
		v.awaits(run, run, record.Step)
		v.asks = asked.Asks
	case record.Step == schemas.StepInspect && len(e.Tools) == 0:
		v.held = research.Choice(e.Undecided)
	default:
		return false
	}
	v.undecided = e.Undecided
	return true
}

// asksAgain has the agent that made a record about the change of a run do its step once more, since the record is of no use. It reports whether
// a person has to decide instead.
func (f *fold) asksAgain(i int32, run, record *schemas.Run, what, why string) (held bool) {
	v, agent := &f.recs[i].verify, verifier(f.pipelineOf(i), record.Step)
	if v.asked[agent+" "+run.Key] < mostVerdicts {
		v.awaits(run, run, record.Step)
		v.fault = why
		return false
	}
	v.held = fmt.Sprintf("agent/%s %s, twice: %s", record.Agent, what, why)
	return true
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
