package dags

import (
	"fmt"
	"slices"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// A node that has succeeded may lack its declared outputs: in a fresh clone, or after a cleanup. That alone only makes the
// local cache restore them. Only where a node that has to run needs the outputs, they are restored from git, where they are
// kept, or the node that made them runs again under the same key.

// bringBack looks for missing outputs that nodes need which are about to start, or that were requested. A node waits
// while outputs that it needs are restored. If outputs cannot be restored, the node that made them is marked to run
// again; then it returns true, and all nodes must be judged again.
func (f *fold) bringBack() bool {
	f.restores = nil
	if len(f.Missing) == 0 {
		return false
	}
	again := false
	for _, i := range f.p.Order {
		waits := ""
		for _, to := range f.lacking(i) {
			if r, ok := f.restore(to); ok {
				f.bring(r)
				waits = r.What()
			} else if !f.recs[to].again && (to != i || f.mayRedo(i)) {
				f.recs[to].again, f.reruns, again = true, true, true
			}
		}
		if waits != "" && f.want[i] {
			f.set(i, schemas.NodeQueued, settle.ReasonOutputsMissing, "waits until "+waits+" is restored")
		}
	}
	if !again {
		f.restoreCached()
	}
	return again
}

// makers lists the nodes whose outputs node i may read: its needs and, behind a need that declares no outputs, what that
// needs itself.
func (f *fold) makers(i int32) []int32 {
	var out []int32
	seen := map[int32]bool{}
	for todo := slices.Clone(f.p.Needs[i]); len(todo) > 0; todo = todo[1:] {
		to := todo[0]
		if seen[to] {
			continue
		}
		seen[to] = true
		if len(f.p.Spec.Nodes[to].Outputs.Paths()) > 0 {
			out = append(out, to)
		} else {
			todo = append(todo, f.p.Needs[to]...)
		}
	}
	return out
}

// lacking lists the nodes that lack outputs which node i needs to start, or i itself where its outputs were asked for. A
// person's work is not among them: no run can do it again.
func (f *fold) lacking(i int32) []int32 {
	var of []int32
	switch {
	case f.want[i] && f.recs[i].claim == nil:
		of = f.makers(i)
	case !f.want[i] && f.World.Asked(f.Ref, f.p.Spec.Nodes[i].Name):
		of = []int32{i}
	}
	return slices.DeleteFunc(of, func(to int32) bool {
		gone := f.Missing[f.p.Spec.Nodes[to].Name].Files
		return f.next[to].State != schemas.NodeSucceeded || !f.recs[to].won || len(gone) == 0
	})
}

// mayRedo reports whether node i, which has succeeded, can run only because its outputs were asked for. Where the DAG or the
// node may not run, its success stands.
func (f *fold) mayRedo(i int32) bool {
	verb := f.verbs[i]
	return f.gate.Open && (verb == "" || verb == schemas.VerbApprove) &&
		!slices.ContainsFunc(f.next, func(s *schemas.NodeStatus) bool {
			return s.State == schemas.NodeFailed && f.p.Spec.Policy.FailsFast()
		}) &&
		!slices.ContainsFunc(f.was, func(s *schemas.NodeStatus) bool { return s.Reason == settle.ReasonDAGTimeout })
}

// awaited are the nodes that have to be done before node i starts: its needs, and those behind them that run again for
// their outputs.
func (f *fold) awaited(i int32) []int32 {
	needs := f.p.Needs[i]
	if !f.reruns {
		return needs
	}
	for _, to := range f.makers(i) {
		if f.recs[to].again && !slices.Contains(needs, to) {
			needs = append(slices.Clip(needs), to)
		}
	}
	return needs
}

// restore says how the missing outputs of a node that succeeded can be restored; ok is false if they cannot.
func (f *fold) restore(i int32) (r settle.Restore, ok bool) {
	n := &f.p.Spec.Nodes[i]
	missing := f.Missing[n.Name]
	for _, run := range slices.Backward(f.runsOf(i)) {
		if run.Outcome != schemas.OutcomeSucceeded {
			continue
		}
		out, all := run.OutputsAt(missing.Files)
		if !all || slices.Contains(missing.Lost, run.Key) {
			continue
		}
		from := settle.Restore{Owner: f.Ref, Node: n.Name, Run: run, Outputs: out, Cached: slices.Contains(missing.Cached, run.Key)}
		if n.Outputs.Keep {
			from.Ref = keptRefs + run.Key
		}
		switch {
		case from.Cached:
			return from, true
		case from.Ref != "" && !ok:
			r, ok = from, true
		}
	}
	return r, ok
}

// restoreCached adds what the local cache can give back although no one needs it now, once nothing of the DAG runs or is about
// to: what runs may be removing files on purpose.
func (f *fold) restoreCached() {
	for i := range f.next {
		if f.want[i] || f.recs[i].running() || f.recs[i].former != nil {
			return
		}
	}
	for _, i := range f.p.ByName {
		if f.next[i].State != schemas.NodeSucceeded || len(f.Missing[f.p.Spec.Nodes[i].Name].Files) == 0 {
			continue
		}
		if r, ok := f.restore(i); ok && r.Cached {
			f.bring(r)
		}
	}
}

// bring adds an output to restore, once.
func (f *fold) bring(r settle.Restore) {
	if !slices.ContainsFunc(f.restores, func(o settle.Restore) bool { return o.Node == r.Node }) {
		f.restores = append(f.restores, r)
	}
}

// keptRefs is the folder of the references that hold outputs. What follows is the key of a run.
const keptRefs = "refs/reconcile/outputs/"

// sources are the needs of node i, with the nodes that they represent in place of those that join others.
func (f *fold) sources(i int32) []int32 {
	needs := f.p.Needs[i]
	if f.p.Spec.Expansion == nil {
		return needs
	}
	joins := func(to int32) bool { return f.p.Spec.Nodes[to].Joins() }
	if !slices.ContainsFunc(needs, joins) {
		return needs
	}
	var out []int32
	for _, to := range needs {
		if joins(to) {
			out = append(out, f.sources(to)...)
		} else {
			out = append(out, to)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// brings are the outputs of expects whose content is on record.
func (f *fold) brings(i int32, expects []string) (out []schemas.Output) {
	for _, to := range f.sources(i) {
		last := f.recs[to].last
		if last == nil || last.Outcome != schemas.OutcomeSucceeded || f.next[to].State != schemas.NodeSucceeded {
			continue
		}
		for _, o := range last.Outputs {
			if slices.Contains(expects, o.Path) {
				out = append(out, o)
			}
		}
	}
	return out
}

// expects lists the outputs that node i finds at its start, by the present statuses.
func (f *fold) expects(i int32) []string {
	var out []string
	for _, to := range f.sources(i) {
		n := &f.p.Spec.Nodes[to]
		paths := n.Outputs.Paths()
		if f.next[to].State != schemas.NodeSucceeded || len(paths) == 0 {
			continue
		}
		gone := f.Missing[n.Name].Files
		for _, p := range paths {
			if !slices.Contains(gone, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// againMessage says why a node that has succeeded runs again.
func (f *fold) againMessage(i int32) string {
	gone := f.Missing[f.p.Spec.Nodes[i].Name].Files
	if len(gone) == 0 {
		return "runs again: outputs of its success were not here"
	}
	return fmt.Sprintf("runs again: outputs of its success are not here: %s%s", gone[0], schemas.AndOthers(len(gone)-1))
}
