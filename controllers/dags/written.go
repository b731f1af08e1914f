package dags

import (
	"fmt"
	"slices"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// An agent may write tests of a change that has passed without them. They are a commit of their own on that of the change, which tools inspect and
// test as any other; it lands with it. Tests that fail send the change back, unless that is their own fault: then they are written once more.

// takeTests takes the record of a run that wrote tests of the change of another one, as far as they are verified, and reports whether the change
// counts as a success by now, or a person has to decide.
func (f *fold) takeTests(i int32, run, record *schemas.Run, verified map[string]map[string]*schemas.Run, land *schemas.Run) bool {
	p, v, e := f.pipelineOf(i), &f.recs[i].verify, checks.EvidenceOf(record)
	const unreliable = "left the change untested"
	if testsOf(record) == nil {
		if before := v.verdicts[schemas.StepTest]; f.ignoring(i, run.Workspace, schemas.StepTest) == nil && !checks.EvidenceOf(before).Lets(p.AllowsNone(schemas.StepTest)) {
			return f.asksAgain(i, run, record, unreliable, "it wrote no test, and there is none that is related to the change")
		}
	} else {
		v.proofs = verified[record.Key]
		for _, step := range []string{schemas.StepInspect, schemas.StepTest} {
			if f.ignoring(i, run.Workspace, step) != nil {
				continue
			}
			proof := v.proofs[step]
			if proof == nil {
				v.awaits(run, record, step)
				return false
			}
			found := checks.EvidenceOf(proof)
			if found.Lets(p.AllowsNone(step)) {
				continue
			}
			fault := "its tests do not pass the inspection: " + found.Summary
			if step == schemas.StepTest {
				fault = e.Written.Fault(found, checks.EvidenceOf(v.verdicts[step]))
			}
			if fault != "" {
				return f.asksAgain(i, run, record, unreliable, fault)
			}
			v.given = append(v.given, record)
			return f.sendsBack(i, run, proof)
		}
		if testsConflict(land) && land.Workspace.Commit == record.Workspace.Commit {
			return f.asksAgain(i, run, record, "wrote tests that cannot land", land.Message)
		}
	}
	if len(e.Failures) > 0 {
		return f.asksAgain(i, run, record, unreliable, fmt.Sprintf("it says that %s failed, and no test fails", e.Failures[0].Name))
	}
	if v.tests = record; testsOf(record) != nil {
		v.given = append(v.given, record)
		f.doubt(i, slices.Concat(run.Workspace.Doubts, record.Workspace.Doubts))
		return true
	}
	f.doubt(i, run.Workspace.Doubts)
	return true
}

// testsConflict reports whether a landing failed for the tests of its change alone: who made the change need not do it anew.
func testsConflict(land *schemas.Run) bool {
	return land != nil && land.Outcome == schemas.OutcomeFailed && reasonOf(land) == schemas.LandedTestsConflict
}

// tookTests reports whether tests that a run wrote passed with its change, by the records that verified them.
func tookTests(written *schemas.Run, proofs map[string]*schemas.Run) bool {
	return testsOf(written) != nil && proofs[schemas.StepTest] != nil && checks.EvidenceOf(proofs[schemas.StepTest]).Outcome == checks.Passed
}

// givenTests are the tests of changes of node i that the agent that makes them finds in its workspace, the present ones last.
func (f *fold) givenTests(i int32) (all []settle.Tests) {
	for _, r := range f.recs[i].verify.given {
		all = append(all, *testsOf(r))
	}
	return all
}

// landing is the commit of node i that is to land, as people see it who approve it: with the tests that land with it.
func (f *fold) landing(i int32) *schemas.RunWorkspace {
	w, tests := *f.recs[i].land.of.Workspace, f.recs[i].verify.tests
	if testsOf(tests) == nil {
		return &w
	}
	t := tests.Workspace
	w.Commit, w.Changed, w.Files, w.Doubts = t.Commit, w.Changed+t.Changed, slices.Concat(w.Files, t.Files), slices.Concat(w.Doubts, t.Doubts)
	if w.Change != nil && t.Change != nil {
		w.Change = &schemas.Change{Lines: w.Change.Lines + t.Change.Lines, Sensitive: slices.Concat(w.Change.Sensitive, t.Change.Sensitive)}
	}
	return &w
}
