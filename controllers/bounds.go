package controllers

import (
	"cmp"
	"math"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Bounds is an upper limit of the cost of the runs in a plan: each is tried as often as its retry policy allows, and
// each try takes as long as its time limit. Runs of agents that are asked meanwhile are not included. Tokens and money are bounded
// where budgets bound them.
type Bounds struct {
	Runs    int           // tries of commands and agents
	Time    time.Duration // of those that a limit ends, as if one ran after the other
	Endless int           // of Runs, those that no limit ends: Time is without them
	People  int           // tasks and questions that wait for a person
	Agents  []AgentBounds // sorted by name; of Runs, Time and Endless, each agent's part
	// Budgets say what the budgets that the runs of agents count against have left, sorted.
	Budgets []string
}

// AgentBounds are the bounds of one agent's runs.
type AgentBounds struct {
	Name    string
	Model   string // as its spec names it
	Window  int    // of the model, in tokens
	Runs    int
	Time    time.Duration
	Endless int
}

// Bound says what the steps of a plan of the tree cost at most.
func Bound(t *state.Tree, steps []settle.Step, now time.Time) Bounds {
	var b Bounds
	left := map[string]settle.Allowance{}
	for _, s := range steps {
		if s.Verb != settle.StepRun {
			continue
		}
		e := t.Entry(s.Ref)
		if e == nil || e.Object == nil {
			continue
		}
		tries := settle.Tries{Most: 1}
		if k := settle.RowOf(t, e.Kind); k != nil && k.Tries != nil {
			tries = k.Tries(e, s.Node)
		}
		b.add(t, tries)
		for _, a := range allowances(t, e, s.Node, tries.Agent) {
			left[a.Scope] = a
		}
	}
	if len(left) > 0 {
		sums := budgets.SumsOf(new(settle.Values), t, now)
		for _, a := range left {
			b.Budgets = append(b.Budgets, sums.Left(&a))
		}
	}
	slices.Sort(b.Budgets)
	slices.SortFunc(b.Agents, func(x, y AgentBounds) int { return cmp.Compare(x.Name, y.Name) })
	return b
}

// allowances are the budgets that the runs of an agent for an object count against.
func allowances(t *state.Tree, e *state.Entry, node, agent string) []settle.Allowance {
	a := t.Entry(schemas.AgentKind.Ref(agent))
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	switch {
	case a == nil || a.Object == nil:
		return nil
	case spec == nil:
		return budgets.Agent(t.Settings(), a.Object)
	}
	p := plan.Of(e.Object)
	i, ok := p.Index[node]
	if !ok {
		return nil
	}
	var session *schemas.Object
	if s := t.Entry(schemas.SessionKind.Ref(spec.Session)); s != nil {
		session = s.Object
	}
	return budgets.Node(settle.In{Entry: e, Tree: t}, spec, &p.Spec.Nodes[i], session, a.Object)
}

// add adds tries.
func (b *Bounds) add(t *state.Tree, of settle.Tries) {
	agent, limit, whole, tries := of.Agent, of.Limit, of.Whole, of.Most
	var a *AgentBounds
	if agent != "" {
		e := t.Entry(schemas.Ref{Kind: schemas.AgentKind.Name, Name: agent})
		if e == nil || e.Object == nil {
			return // it cannot be run
		}
		spec := e.Object.Spec().(*schemas.AgentSpec)
		c := spec.Runner.AsCommand()
		if c == nil {
			b.People++
			return
		}
		if limit == nil {
			limit = c.Timeout
		}
		a = b.agent(agent, spec)
	}
	if whole != nil && (limit == nil || *whole < *limit) {
		limit = whole
	}
	var time time.Duration
	endless := tries
	if limit != nil && limit.Std() > 0 {
		time, endless = product(limit.Std(), tries), 0
	}
	b.Runs, b.Time, b.Endless = b.Runs+tries, sum(b.Time, time), b.Endless+endless
	if a != nil {
		a.Runs, a.Time, a.Endless = a.Runs+tries, sum(a.Time, time), a.Endless+endless
	}
}

// agent is the part of an agent.
func (b *Bounds) agent(name string, spec *schemas.AgentSpec) *AgentBounds {
	i := slices.IndexFunc(b.Agents, func(a AgentBounds) bool { return a.Name == name })
	if i < 0 {
		i = len(b.Agents)
		b.Agents = append(b.Agents, AgentBounds{Name: name, Model: spec.Model, Window: spec.ContextWindow})
	}
	return &b.Agents[i]
}

// product and sum stop at the longest time that there is.
func product(d time.Duration, n int) time.Duration {
	if d > 0 && int64(n) > math.MaxInt64/int64(d) {
		return math.MaxInt64
	}
	return d * time.Duration(n)
}

func sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
