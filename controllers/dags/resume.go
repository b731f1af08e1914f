package dags

import (
	"maps"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// A DAG of many nodes is decided after each of them ends. Where only commands are left to run and none has failed or waits, a
// decision goes on from the one before: it judges the nodes whose records or claims changed, and those that need one whose status
// changed. The result is that of a decision about all nodes.

// keep leaves the decision for the next one, if that may go on from it.
func (f *fold) keep(st *schemas.DAGStatus, n nodeCounts) {
	k := f.goesOn
	if over(st) || n.blocked+n.failed+n.cancelled > 0 || n.timedOut || f.reruns || f.hold != "" || !f.gate.Open ||
		!f.again.IsZero() || !f.later.IsZero() || len(f.Missing) > 0 || len(f.escalations) > 0 {
		return
	}
	if k == nil {
		if len(f.next) < plan.FewNodes || !f.p.OnlyCommands() {
			return
		}
		k = &kept{effects: f.wants}
		copy(f.was, f.next)
	}
	k.from, _ = f.Status().(*schemas.DAGStatus)
	k.made, k.counts, k.runs, k.fold = st, n, f.Runs(), f
	k.claimed = k.claimed[:0]
	for i := range f.Claims {
		k.claimed = append(k.claimed, f.Claims[i].Node)
	}
	f.In, f.goesOn = settle.In{}, nil // it holds the tree
	f.p.Keep(k)
}

// goOn returns a decision that goes on from the one before; nil if it must judge all nodes.
func goOn(in settle.In, p *plan.Plan, old *schemas.DAGStatus) *fold {
	k, _ := p.Kept().(*kept)
	if k == nil || !k.holds(in, p, old) {
		return nil
	}
	was := k.fold
	f := &fold{In: in, p: p, b: was.b, gate: was.gate, old: old, was: was.was, limits: was.limits, gens: was.gens, verbs: was.verbs,
		inputs: was.inputs, tools: was.tools, recs: was.recs, next: was.next, want: was.want, keys: was.keys, resumes: was.resumes,
		history: settle.History{Old: old.History}, goesOn: k}
	f.applied = actions.Kept(f.Tree, old.Actions)
	f.noteDelivered()
	if len(f.newActs(f.applied)) > 0 || !k.judge(f) {
		return nil
	}
	f.start = f.startOf()
	f.old = withActions(old, f.applied)
	return f
}

// holds reports whether all that a decision depends on is as it was, but for records and claims.
func (k *kept) holds(in settle.In, p *plan.Plan, old *schemas.DAGStatus) bool {
	if k.made != old && (k.from != old || !same(k.from, k.made)) || old.ObservedDigest != in.Object.Digest {
		return false
	}
	if sessions.SlotsOf(in.World).GateOf(p.Spec.Session) != k.fold.gate || len(in.Missing) > 0 ||
		len(planchanges.EscalationsOf(in.World, in.Name)) > 0 || !k.fold.b.Holds(in, p) {
		return false
	}
	for i := range p.Spec.Nodes {
		if n := &p.Spec.Nodes[i]; len(n.Inputs) > 0 && inputsOf(in, n.Name, k.fold.next[i].Inputs) != k.fold.inputs[i] {
			return false
		}
	}
	return true
}

// judge judges the nodes that may have changed. It returns false if the caller must judge all.
func (k *kept) judge(f *fold) bool {
	for _, i := range k.moved {
		f.was[i] = f.next[i]
	}
	k.moved = k.moved[:0]
	if k.neededBy == nil {
		k.neededBy = make([][]int32, len(f.next))
		for i, needs := range f.p.Needs {
			for _, to := range needs {
				k.neededBy[to] = append(k.neededBy[to], int32(i))
			}
		}
	}
	due := k.changed(f)
	for i := range due {
		f.recs[i] = nodeRecord{}
		f.takeRuns(i, f.nodeRuns(f.p.Spec.Nodes[i].Name))
	}
	f.takeClaims()
	if f.reruns {
		return false
	}
	judges := make([]bool, len(f.next))
	for i := range due {
		judges[i] = true
	}
	for _, i := range f.p.Order {
		if judges[i] && !k.judgeNode(f, i, judges) {
			return false
		}
	}
	return true
}

// judgeNode judges node i and, where its status changes, has those that need it judged.
func (k *kept) judgeNode(f *fold, i int32, judges []bool) bool {
	f.next[i], f.want[i] = new(schemas.NodeStatus), false
	f.judge(i)
	f.next[i].Landed, f.next[i].Pipeline = f.landed(i), f.pipelineStatus(i)
	k.effects[i] = f.wanted(i)
	if sameNode(f.was[i], f.next[i]) {
		f.next[i] = f.was[i]
		return true
	}
	k.moved = append(k.moved, i)
	for _, by := range k.neededBy[i] {
		judges[by] = true
	}
	return k.counts.count(f.was[i].State, -1) && k.counts.count(f.next[i].State, 1)
}

// changed are the nodes with other records than before, and those with claims, now or before.
func (k *kept) changed(f *fold) map[int32]bool {
	due := map[int32]bool{}
	add := func(node string) {
		if i, ok := f.p.Index[node]; ok {
			due[i] = true
		}
	}
	was, is := k.runs, f.Runs()
	for len(was)+len(is) > 0 {
		switch {
		case len(was) > 0 && len(is) > 0 && was[0] == is[0]:
			was, is = was[1:], is[1:]
		case len(is) == 0 || len(was) > 0 && was[0].Node < is[0].Node:
			add(was[0].Node)
			was = was[1:]
		default:
			add(is[0].Node)
			f.fresh = append(f.fresh, is[0])
			is = is[1:]
		}
	}
	for i := range f.Claims {
		add(f.Claims[i].Node)
	}
	for _, node := range k.claimed {
		add(node)
	}
	return due
}

// statuses are those of the nodes.
func (k *kept) statuses(f *fold) *schemas.NodeStatuses {
	if len(k.moved) == 0 {
		return f.old.Nodes
	}
	changed := make(map[string]*schemas.NodeStatus, len(k.moved))
	for _, i := range k.moved {
		changed[f.p.Spec.Nodes[i].Name] = f.next[i]
	}
	return f.old.Nodes.With(maps.All(changed))
}

// count adds a node in a state, or with -1 takes it away. It returns false for a state in which more counts than the number.
func (n *nodeCounts) count(state string, by int) bool {
	switch state {
	case schemas.NodeSucceeded:
		n.done += by
	case schemas.NodeRunning:
		n.running += by
	case schemas.NodeQueued:
		n.queued += by
	case schemas.NodePending:
		n.pending += by
	default:
		return false
	}
	return true
}
