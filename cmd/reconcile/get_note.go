package main

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// noteOn tells what a list of objects does not show: of all, or of the kinds or objects that what names.
func (a *app) noteOn(t *state.Tree, what []string) {
	if len(what) == 0 {
		a.noteUnnamed(t)
	}
	for _, e := range t.Entries(schemas.DAGKind.Name) {
		if len(what) == 0 || slices.Contains(what, e.Ref.String()) || strings.HasPrefix(what[0], "dags") || what[0] == "dag" {
			a.noteInterrupted(e)
		}
	}
}

// noteUnnamed tells of files that a list of objects cannot show: none of what is in them can be named.
func (a *app) noteUnnamed(t *state.Tree) {
	n := 0
	for _, p := range t.Problems() {
		if p.Severity == schemas.Error && p.Ref == (schemas.Ref{}) {
			n++
		}
	}
	if n > 0 {
		a.note("not listed: %s of files in which no object can be named; \"reconcile validate\" shows them", render.Plural(n, "problem"))
	}
}

// noteInterrupted tells of nodes that were running when their process was killed: their states are those that it left.
func (a *app) noteInterrupted(e *state.Entry) {
	if names := interrupted(e); len(names) > 0 {
		a.note("%s: no process here runs %s, which a run that was killed left so; the next run goes on", e.Ref, shorten(names, 5))
	}
}

// interrupted are the nodes that are said to run, and that no process runs.
func interrupted(e *state.Entry) []string {
	if e.Kind != schemas.DAGKind.Name || e.Brief().Running == 0 {
		return nil
	}
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return nil
	}
	var names []string
	for _, name := range sortedKeys(st.Nodes) {
		runs := func(c state.Claim) bool { return c.Node == name }
		if st.Nodes[name].State == schemas.NodeRunning && !slices.ContainsFunc(e.Claims, runs) {
			names = append(names, name)
		}
	}
	return names
}

// whyBeside are the reasons for people, without those that stand among the problems below them.
func whyBeside(why []string, problems []schemas.Problem) []string {
	return slices.DeleteFunc(slices.Clone(why), func(line string) bool {
		return slices.ContainsFunc(problems, func(p schemas.Problem) bool { return strings.Contains(line, p.Error()) })
	})
}
