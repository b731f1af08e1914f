package main

import (
	"context"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/outputs"
	"reconcile.dev/reconcile/state/regular"
)

// outputsPage tells of a DAG's declared outputs that are not here, or that have changed since their runs.
type outputsPage struct {
	NotHere map[string][]string `json:"-"`
	Changed map[string][]string `json:"outputsChanged,omitempty"`
}

// lookAtOutputs reads the declared outputs of an object whose nodes have succeeded, and compares.
func (a *app) lookAtOutputs(ctx context.Context, e *state.Entry) (outputsPage, error) {
	p := outputsPage{NotHere: controllers.NotHere(e), Changed: map[string][]string{}}
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if spec == nil {
		return p, nil
	}
	root, err := regular.Root(a.global.dir)
	if err != nil {
		return p, err
	}
	defer root.Close()
	for node, files := range spec.OutputPaths() {
		for _, file := range files {
			was := controllers.Recorded(e, node, file)
			if len(was) == 0 || slices.Contains(p.NotHere[node], file) {
				continue
			}
			is, err := outputs.Digest(ctx, root, file)
			same := func(o schemas.Output) bool { return o.Digest == is.Digest }
			if err != nil || !slices.ContainsFunc(was, same) {
				p.Changed[node] = append(p.Changed[node], file)
			}
		}
	}
	return p, ctx.Err()
}

// lines is the page as text.
func (p outputsPage) lines() []string {
	var out []string
	for _, node := range sortedKeys(p.NotHere) {
		out = append(out, node+": outputs not here: "+strings.Join(p.NotHere[node], ", "))
	}
	for _, node := range sortedKeys(p.Changed) {
		out = append(out, node+": changed since its run: "+strings.Join(p.Changed[node], ", "))
	}
	return out
}
