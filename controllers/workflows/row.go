// Package workflows decides Workflows, and makes the session and the DAG of a run from its start.
package workflows

import (
	"iter"
	"strconv"

	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/topology"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/project"
)

// decide orders the steps, and counts the runs.
func decide(in settle.In) settle.Out {
	if in.Gone() {
		return settle.Out{}
	}
	st := &schemas.WorkflowStatus{Common: settle.Common(in.Status())}
	if old, ok := in.Status().(*schemas.WorkflowStatus); ok {
		st.Layers, st.Runs, st.Active = old.Layers, old.Runs, old.Active
	}
	if in.Broken() {
		settle.JudgeBroken(in, st.Phase).Settle(&st.Common, st.ObservedDigest, in.Now)
		return settle.Out{Status: st}
	}
	spec := in.Object.Spec().(*schemas.WorkflowSpec)
	layers, ok := stepLayers(spec)
	j := settle.Judgement{Phase: "Valid", Class: settle.ClassReady, Reason: settle.ReasonValid,
		Message: schemas.Count(len(spec.Steps), "step") + " in " + schemas.Count(len(layers), "layer")}
	if !ok {
		j = settle.Judgement{Phase: "Invalid", Class: settle.ClassInvalid, Reason: settle.ReasonInvalidSpec,
			Message: in.Object.Path + ": steps need each other in a circle, or need steps that do not exist"}
	}
	st.Layers = layers
	st.Runs, st.Active = runsOf(in)
	j.Settle(&st.Common, in.Object.Digest, in.Now)
	return settle.Out{Status: st}
}

// stepLayers returns the ids of the steps by layer.
func stepLayers(spec *schemas.WorkflowSpec) ([][]string, bool) {
	index := make(map[string]int32, len(spec.Steps))
	for i, s := range spec.Steps {
		index[s.ID] = int32(i)
	}
	needs := make([][]int32, len(spec.Steps))
	for i, s := range spec.Steps {
		for _, need := range s.Needs {
			to, ok := index[need]
			if !ok {
				return nil, false
			}
			needs[i] = append(needs[i], to)
		}
	}
	order, ok := topology.Sort(needs)
	if !ok {
		return nil, false
	}
	var layers [][]string
	for _, layer := range order.Layers {
		ids := make([]string, len(layer))
		for i, at := range layer {
			ids[i] = spec.Steps[at].ID
		}
		layers = append(layers, ids)
	}
	return layers, true
}

// Kind is the row of kind Workflow.
var Kind = settle.Kind{Kind: schemas.WorkflowKind, Decide: decide, Columns: columns, Index: &project.Workflow}

var columns = []settle.Column{
	readiness.Ready,
	readiness.OfSpec("STEPS", func(s *schemas.WorkflowSpec) string { return strconv.Itoa(len(s.Steps)) }),
	readiness.OfStatus("RUNS", func(s *schemas.WorkflowStatus) string { return strconv.Itoa(s.Runs) }),
	readiness.OfStatus("ACTIVE", func(s *schemas.WorkflowStatus) string { return strconv.Itoa(len(s.Active)) }),
	readiness.OfSpec("TITLE", func(s *schemas.WorkflowSpec) string { return s.Title }),
}

// Steps are the steps of all workflows that can be used, by the workflows' names and their own order.
func Steps(t *state.Tree) iter.Seq[*schemas.Step] {
	return func(yield func(*schemas.Step) bool) {
		for _, e := range t.Entries(schemas.WorkflowKind.Name) {
			spec := schemas.SpecAs[*schemas.WorkflowSpec](e.Object)
			if spec == nil {
				continue
			}
			for i := range spec.Steps {
				if !yield(&spec.Steps[i]) {
					return
				}
			}
		}
	}
}
