// Package plan has what the spec of a DAG determines on its own, the keys of its nodes, and its binding to a session and agents.
package plan

import (
	"fmt"
	"slices"
	"sync/atomic"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/condition"
	"reconcile.dev/reconcile/schemas/template"
)

// Plan is what the spec of a DAG determines on its own. It is made once for each object and shared by all decisions;
// nodes are known by their position in the spec.
type Plan struct {
	Name   string
	Spec   *schemas.DAGSpec
	Index  map[string]int32 // position by name
	Needs  [][]int32
	Order  []int32 // every node after what it needs
	Layers [][]string
	ByName []int32  // positions in the order of names, as runs and claims are sorted
	Names  []string // in that order
	// defs are the definitions of the nodes without their agents, agentDefs those with them.
	defs, agentDefs [][]byte
	hasFormer       bool                 // keys of an earlier version may differ: see former.go
	When            []*condition.Program // nil where a node has no condition
	Agents          []string             // that nodes name, sorted
	// Cleanup are the nodes, by position, that are judged when their needs have ended in whatever state: those whose condition reads
	// the state of a need, final ones, and those that join others.
	Cleanup []int32

	Timed   []Call          // the calls with a time limit
	TimedOf map[int32][]int // those that a node is part of
	Retries []schemas.Retry
	Loops   []Loop
	Texts   map[int32]*Texts // of the nodes that have expressions in their texts
	loopOf  map[int32]int    // the loop of each node that is in one
	// Fault is why the DAG can never run; empty when it can.
	Fault string
	// last is the newest binding. It saves work and never changes the result: a binding is used only where all its inputs are the same.
	last atomic.Pointer[Binding]
	// kept is what the last decision left for the next one, with the same promise.
	kept atomic.Pointer[any]
}

// Call is the call of a DAG with a time limit: the node that calls, and those of the call, by position.
type Call struct {
	*schemas.Call
	Join  int32
	Nodes []int32
}

// TimeLimited reports whether the DAG or a call in it has a time limit.
func (p *Plan) TimeLimited() bool { return p.Spec.Policy.Timeout != nil || len(p.Timed) > 0 }

// NodesOf returns the nodes of a status by position in the spec; an unknown one is empty. Callers must not change them.
func (p *Plan) NodesOf(st *schemas.DAGStatus) []*schemas.NodeStatus {
	nodes := slices.Repeat([]*schemas.NodeStatus{new(schemas.NodeStatus)}, len(p.Names))
	k := 0
	for name, s := range st.Nodes.All() {
		for k < len(p.Names) && p.Names[k] < name {
			k++
		}
		if k < len(p.Names) && p.Names[k] == name {
			nodes[p.ByName[k]] = s
		}
	}
	return nodes
}

// FewNodes is the number of nodes below which nothing is kept for the next decision: one about all of them costs no more, and there
// are many such DAGs.
const FewNodes = 8

// Keep leaves a value for the next decision. Only one decision gets it, since it may change it.
func (p *Plan) Keep(v any) { p.kept.Store(&v) }

// Kept takes the value that was left, or nil.
func (p *Plan) Kept() any {
	if v := p.kept.Swap(nil); v != nil {
		return *v
	}
	return nil
}

// OnlyCommands reports whether nothing but specs, records and claims decides about the nodes: no agents, people, tools, times, loops,
// groups or workflows.
func (p *Plan) OnlyCommands() bool {
	s := p.Spec
	return len(p.Agents)+len(p.Loops)+len(s.Schedule)+len(p.Timed) == 0 && s.Policy.Timeout == nil && s.Concurrency == nil && s.Workflow == nil &&
		!p.MadeOfResults() && !slices.ContainsFunc(s.Nodes, func(n schemas.Node) bool { return n.Approve != nil || len(n.Tools) > 0 })
}

func (p *Plan) fail(format string, args ...any) {
	if p.Fault == "" {
		p.Fault = fmt.Sprintf(format, args...)
	}
}

// CleansUp reports whether node i is one of Cleanup.
func (p *Plan) CleansUp(i int32) bool {
	_, found := slices.BinarySearch(p.Cleanup, i)
	return found
}

// Binding is a plan in its context: what the keys and the effects of a DAG depend on in addition to its spec, and the
// results.
type Binding struct {
	session  *schemas.Object   // nil while it cannot be used
	agents   []*schemas.Object // as plan.Agents
	spares   []*schemas.Object // the other agents that may do the work of one of these, or verify it, by name
	settings *schemas.SettingsSpec
	about    string              // what the session is about, as JSON
	Inputs   []string            // digest of the declared inputs, by node
	tools    []map[string]string // versions of the declared tools, by node
	gens     []int               // retry generation, by node
	rounds   []int               // by node, from 1; 0 for one without a loop, nil where there is none
	loops    []string            // what a loop does, by node
	// before are the keys of the nodes that repeat in the rounds before, by loop. They are made when they are first asked for.
	before []atomic.Pointer[[]string]

	// Keys are those under which the nodes are on record, or have to be: see keys.go. primary are either tasks, the keys of the
	// tasks, or withAgents, those with the agents in them.
	Keys                       []string
	primary, tasks, withAgents []string
	runners                    map[string]string         // digests of the programs of the agents, by name
	former                     *formerKeys               // nil where they cannot differ
	Human                      []bool                    // the node waits for a person
	groups                     map[string][]settle.Group // by agent; "" for commands
	// commands are made when they are first asked for, since most nodes of a large DAG do not want to run at any one time; nil for
	// fewer than FewNodes.
	commands []atomic.Pointer[settle.Command]
}

// Loop is the nodes that run again together until the result of one of them is good.
type Loop struct {
	schemas.Loop
	Until *condition.Program
	Max   int
	at    int     // its position in Plan.Loops
	order []int32 // the members, every one after what it needs
}

// Texts are the texts of a node that have expressions: they are known when the node starts.
type Texts struct {
	Run    []*template.Template // nil without an expression
	Prompt *template.Template
	// Acceptance are those of the sentences; nil without an expression.
	Acceptance []*template.Template
	Env        map[string]*template.Template
}

// formerKeys are the keys of nodes as an earlier version made them, with all parameters of the DAG in those of each command. They are
// made when they are first asked for: a tree that has no such record never asks.
type formerKeys struct{ made atomic.Pointer[former] }

type former struct {
	defs, agentDefs   [][]byte
	tasks, withAgents []string
}

// MadeOfResults reports whether nodes of the DAG are made from results of others: then the same spec may make different nodes.
func (p *Plan) MadeOfResults() bool {
	return p.Spec.Expansion != nil && len(p.Spec.Expansion.Results) > 0
}

// Issue is the number of the issue that the DAG serves; 0 means none.
func (p *Plan) Issue(s *schemas.SessionSpec) int {
	if p.Spec.Issue > 0 {
		return p.Spec.Issue
	}
	return s.Issue
}
