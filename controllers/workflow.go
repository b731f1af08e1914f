package controllers

import (
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/topology"
)

// decideWorkflow orders the steps.
func decideWorkflow(in In) Out {
	if in.Gone() {
		return Out{}
	}
	st := &schemas.WorkflowStatus{Common: common(in.Status())}
	if old, ok := in.Status().(*schemas.WorkflowStatus); ok {
		st.Layers = old.Layers
	}
	if in.Broken() {
		brokenJudgement(in, st.Phase).settle(&st.Common, st.ObservedDigest, in.Now)
		return Out{Status: st}
	}
	spec := in.Object.Spec().(*schemas.WorkflowSpec)
	layers, ok := stepLayers(spec)
	j := judgement{phase: "Valid", class: ready, reason: ReasonValid,
		message: schemas.Count(len(spec.Steps), "step") + " in " + schemas.Count(len(layers), "layer")}
	if !ok {
		j = judgement{phase: "Invalid", class: invalid, reason: ReasonInvalidSpec,
			message: in.Object.Path + ": steps need each other in a circle, or need steps that do not exist"}
	}
	st.Layers = layers
	j.settle(&st.Common, in.Object.Digest, in.Now)
	return Out{Status: st}
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
