package schemas

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"reconcile.dev/reconcile/schemas/condition"
)

// Bounds are what holds for the specs that an agent writes in its task: nothing that it adds or changes may be bound by less.
type Bounds struct {
	// Agent is who does the task; "" if it is not known.
	Agent string `json:",omitempty"`
	// Session is that of the task, to which a new DAG has to belong; "" if it is not known.
	Session string `json:",omitempty"`
	// Priority is that of the session, above which no node gets; "" for the default one.
	Priority Priority `json:",omitempty"`
	// Beside is what bounds the task and would not bound a new DAG of its session, as a noun phrase; "" for nothing.
	Beside string `json:",omitempty"`
	// People are the agents that are people, Engineers those whose changes the pipeline of a session verifies.
	People    []string `json:",omitempty"`
	Engineers []string `json:",omitempty"`
}

// ActsAs says whom else than its agent a change of a spec lets act, as [Bounds.OnlyPeople] does.
func (b *Bounds) ActsAs(ref Ref, before, after *Object) string {
	was, wasProof := ActingOf(before)
	is, proof := ActingOf(after)
	for _, name := range []string{was, is} {
		if name != "" && name != b.Agent {
			return "name " + name + " as who acts in " + ref.String()
		}
	}
	if proof != "" && proof != ProofClaimed && proof != wasProof { // reconcile writes it
		return "give a proof of who acts in " + ref.String()
	}
	return ""
}

// weakens says which check, gate or budget a change of a spec takes away, replaces or goes around, as [Bounds.OnlyPeople] does.
func (b *Bounds) weakens(ref Ref, before, after *Object) string {
	if ref.Kind == SessionKind.Name {
		return weakensSession(ref, SpecAs[*SessionSpec](before), SpecAs[*SessionSpec](after))
	}
	if was := SpecAs[*WorkflowSpec](before); was != nil {
		return b.weakensNodes(was.asDAG(), SpecAs[*WorkflowSpec](after).asDAG())
	}
	old, now := SpecAs[*DAGSpec](before), SpecAs[*DAGSpec](after)
	switch {
	case old == nil && now == nil:
		return ""
	case old != nil && old.Answers != "" || now != nil && now.Answers != "":
		return "answer a plan change by " + ref.String()
	case old != nil && old.Fixes != "" || now != nil && now.Fixes != "":
		return "decide what mends a session by " + ref.String()
	case now != nil && now.Workflow != nil && !reflect.DeepEqual(cmp.Or(old, new(DAGSpec)).Workflow, now.Workflow): // a start would join it
		return "make " + ref.String() + " a run of a workflow"
	case old != nil && now != nil && old.Session != now.Session:
		return "change the session of " + ref.String()
	case old == nil && !now.Template && now.Session != b.Session:
		return "write " + ref.String() + " for another session than that of this task"
	case old == nil && !now.Template && b.Beside != "":
		return "write " + ref.String() + ", for which " + b.Beside + " would not hold"
	case old != nil && now != nil && old.Policy.MaxConcurrency > 0 && (now.Policy.MaxConcurrency == 0 || now.Policy.MaxConcurrency > old.Policy.MaxConcurrency):
		return "raise the maxConcurrency of " + ref.String()
	}
	return b.weakensNodes(cmp.Or(old, new(DAGSpec)), cmp.Or(now, new(DAGSpec)))
}

// weakensSession is [Bounds.weakens] for a session. A new one would have no bounds but its own, and one that is removed can be made anew.
func weakensSession(ref Ref, was, is *SessionSpec) string {
	switch {
	case was == nil && is == nil:
		return ""
	case was == nil:
		return "write " + ref.String()
	case is == nil:
		return "remove " + ref.String()
	case was.Land != nil && !reflect.DeepEqual(was.Land, is.Land),
		was.Pipeline != nil && !reflect.DeepEqual(was.Pipeline, is.Pipeline),
		was.Quality != nil && (!reflect.DeepEqual(was.Quality, is.Quality) || was.Branch != is.Branch),
		(was.Land != nil || was.Pipeline != nil || was.Quality != nil) && !reflect.DeepEqual(was.Env, is.Env): // checks run in it
		return "change the checks of " + ref.String()
	case was.Owner != "" && was.Owner != is.Owner: // has one Active session at most
		return "change the owner of " + ref.String()
	}
	for _, f := range []struct {
		name  string
		rises bool
	}{{"priority", is.Priority.Rank() < was.Priority.Rank()}, {"weight", is.Weight > was.Weight},
		{"maxConcurrentTasks", is.MaxConcurrentTasks > was.MaxConcurrentTasks}, {"maxEngineers", is.MaxEngineers > was.MaxEngineers}} {
		if f.rises {
			return "raise the " + f.name + " of " + ref.String()
		}
	}
	return ""
}

// weakensNodes is [Bounds.weakens] for the nodes of a DAG.
func (b *Bounds) weakensNodes(old, now *DAGSpec) string {
	were, are := old.named(), now.named()
	for _, names := range []map[string]*Node{were, are} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if what := b.weakenedBy(were[name], are[name]); what != "" {
				return "change the " + what + " of node " + name
			}
		}
	}
	return b.goesAround(old, now)
}

// weakenedBy says what of a node is not as in its next version, though people decide by it. Both may be nil. Checks that a node gets replace
// those of its session.
func (b *Bounds) weakenedBy(n, next *Node) string {
	n, next = cmp.Or(n, new(Node)), cmp.Or(next, new(Node))
	switch {
	case !reflect.DeepEqual(n.Land, next.Land), !reflect.DeepEqual(n.Pipeline, next.Pipeline):
		return "checks"
	case n.Approve != nil && !reflect.DeepEqual(n.Approve, next.Approve):
		return "approval"
	case n.Limits != nil && !reflect.DeepEqual(n.Limits, next.Limits) && next.Name != "":
		return "limits"
	case next.Priority != "" && next.Priority != n.Priority && next.Priority.Rank() < cmp.Or(b.Priority, Normal).Rank():
		return "priority, beyond that of the session,"
	case b.decides(n) && (n.Agent != next.Agent || n.DAG != next.DAG):
		return "agent, or the call,"
	case b.decides(n) && (n.When != next.When || n.Optional != next.Optional || !reflect.DeepEqual(n.Matrix, next.Matrix)):
		return "conditions"
	case next.Agent != "" && slices.Contains(b.Engineers, n.Agent) && !slices.Contains(b.Engineers, next.Agent):
		return "agent"
	case next.Agent != "" && !reflect.DeepEqual(n.Env, next.Env) && len(n.Env)+len(next.Env) > 0: // its change is checked in it
		return "environment"
	}
	return ""
}

// decides reports whether people decide in a node, or may do so in the DAG that it calls.
func (b *Bounds) decides(n *Node) bool {
	return n.Approve != nil || n.DAG != "" || slices.Contains(b.People, n.Agent)
}

// goesAround says how a node that exists would start without what people decide before it; "" if none would. Nodes that are new are not
// compared with what gates hold back.
func (b *Bounds) goesAround(old, now *DAGSpec) string {
	were, are := old.named(), now.named()
	before, after := old.dependents(), now.dependents()
	for _, gate := range slices.Sorted(maps.Keys(were)) {
		if !b.decides(were[gate]) {
			continue
		}
		waits := reached(after, gate)
		for _, name := range slices.Sorted(maps.Keys(reached(before, gate))) {
			switch is := are[name]; {
			case is == nil:
			case !waits[name]:
				return "let node " + name + " no longer wait for " + gate + ", where people decide"
			case were[name].When != is.When && readsState(now, is):
				return "let node " + name + " start though " + gate + " failed"
			}
		}
	}
	return ""
}

// dependents are the nodes that need a node directly, by its name.
func (s *DAGSpec) dependents() map[string][]string {
	out := map[string][]string{}
	for i := range s.Nodes {
		for _, need := range s.Nodes[i].Needs {
			out[need] = append(out[need], s.Nodes[i].Name)
		}
	}
	return out
}

// reached are the nodes that can be reached from one along edges.
func reached(edges map[string][]string, from string) map[string]bool {
	out := map[string]bool{}
	for todo := edges[from]; len(todo) > 0; {
		name := todo[0]
		if todo = todo[1:]; !out[name] {
			out[name] = true
			todo = slices.Concat(todo, edges[name])
		}
	}
	return out
}

// readsState reports whether the condition of a node reads the state of a need, so that the node may run after a failure.
func readsState(s *DAGSpec, n *Node) bool {
	if n.When == "" {
		return false
	}
	program, err := condition.CompileIn(n.When, s.scope(n))
	return err != nil || program.ReadsState
}
