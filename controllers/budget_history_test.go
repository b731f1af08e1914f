package controllers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// TestRandomBudgetHistories is TestRandomHistories for agents within budgets of nodes, DAGs, sessions, the agent and the day, all of
// which are edited meanwhile. The sums here are counted from the records and claims, in the plain way: nothing starts that could spend
// more than a budget has left, and what is blocked by a budget is so for as long as it is used up.
func TestRandomBudgetHistories(t *testing.T) {
	const steps = 60
	for seed := range uint64(mutants.Size(4, 10, 300)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := &budgetChaos{chaos: &chaos{sim: newSim(t), r: rand.New(rand.NewPCG(seed, 31)), succeeded: map[string]string{}}}
			h.nodeFields, h.dagFields, h.sessionFields = h.agentNode, h.budgetOfDAG, h.budgetOf
			h.reserve, h.use = h.reserveFrom, h.spend
			h.fresh = true
			h.setUp()
			h.settingsAndAgent()
			for i := 0; i < steps && !t.Failed(); i++ {
				h.step()
				if h.r.IntN(15) == 0 {
					h.settingsAndAgent()
				}
				h.settle()
				h.invariants()
				h.blocked()
			}
			if !t.Failed() {
				h.raise()
				h.calmDown()
			}
			if t.Failed() {
				t.Logf("seed %d:\n%s", seed, strings.Join(h.log, "\n"))
			}
		})
	}
}

type budgetChaos struct {
	*chaos
	unlimited bool
}

// budget is a random budget as YAML, or "".
func (c *budgetChaos) budget() string {
	if c.unlimited || c.r.IntN(3) == 0 {
		return ""
	}
	return pick(c.r, fmt.Sprintf("{requests: %d}", 1+c.r.IntN(6)), fmt.Sprintf("{tokens: %d}", 50+c.r.IntN(400)),
		fmt.Sprintf("{time: %ds}", 1+c.r.IntN(20)), fmt.Sprintf("{costUSD: 0.%d}", 1+c.r.IntN(9)),
		fmt.Sprintf("{requests: %d, tokens: %d}", 1+c.r.IntN(6), 50+c.r.IntN(400)))
}

func (c *budgetChaos) budgetOf() string {
	if b := c.budget(); b != "" {
		return ", budget: " + b
	}
	return ""
}

func (c *budgetChaos) budgetOfDAG(int) string {
	if b := c.budget(); b != "" {
		return "  budget: " + b + "\n"
	}
	return ""
}

func (c *budgetChaos) agentNode(_ int, _ []string) string {
	text := fmt.Sprintf("      agent: engineer\n      prompt: %s\n", pick(c.r, "work", "more", "rest"))
	if b := c.budget(); b != "" {
		text += "      budget: " + b + "\n"
	}
	return text
}

func (c *budgetChaos) settingsAndAgent() {
	day := ""
	if b := c.budget(); b != "" {
		day = ", budget: {day: " + b + "}"
	}
	text := fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {limits: {turnTokens: %d}%s}\n",
		50+c.r.IntN(200), day)
	agent := head("Agent", "engineer") + fmt.Sprintf("spec: {runner: {command: {argv: [engineer]}}, concurrency: %d%s}\n", 1+c.r.IntN(3), c.budgetOf())
	c.note("%s%s", text, agent)
	c.put("reconcile.yaml", text)
	c.put("specs/agents/engineer.yaml", agent)
	for ref := range c.entries { // the settings are of everything
		c.entry(ref)
	}
}

// raise removes all budgets, so that everything can come to its end.
func (c *budgetChaos) raise() {
	c.unlimited = true
	c.settingsAndAgent()
	for i := range 3 {
		c.session(i)
		c.dagSpec(i)
	}
	c.settle()
}

// spent is what counts against a budget: what was used, and what is reserved.
type spent struct{ used, held [4]int64 } // requests, tokens, nanoseconds, millionths of a dollar

func amounts(b *schemas.Budget) [4]int64 {
	if b == nil {
		return [4]int64{}
	}
	return [4]int64{b.Requests, b.Tokens, int64(b.Limit()), int64(b.CostUSD*1e6 + 0.5)}
}

// used is what a record counts.
func used(r *schemas.Run, turnTokens int64) [4]int64 {
	out := [4]int64{1, turnTokens, min(r.FinishedAt.Sub(r.StartedAt.Time).Nanoseconds(), 7*24*time.Hour.Nanoseconds()), 0}
	if r.Budget != nil && r.Budget.Tokens > 0 {
		out[1] = r.Budget.Tokens
	}
	if limit := int64(r.Budget.Limit()); limit > 0 {
		out[2] = min(out[2], limit)
	}
	if r.Turn != nil && r.Turn.Usage != nil {
		out[0], out[1] = max(r.Turn.Usage.Requests, 1), r.Turn.Usage.InputTokens+r.Turn.Usage.OutputTokens
	}
	if r.Turn != nil && r.Turn.CostUSD != nil {
		out[3] = int64(*r.Turn.CostUSD*1e6 + 0.5)
	}
	return out
}

// count sums all runs that belong to a budget.
func (c *budgetChaos) count(t *state.Tree, belongs func(e *state.Entry, r *schemas.Run, ended bool) bool) (s spent) {
	turnTokens := t.Settings().Limits.TurnTokens
	for _, e := range c.entries {
		for _, r := range e.Runs() {
			if !e.Gone() && r.Agent != "" && belongs(e, r, true) {
				for m, n := range used(r, turnTokens) {
					s.used[m] += n
				}
			}
		}
		for i := range e.Claims {
			if r := &e.Claims[i].Run; r.Agent != "" && belongs(e, r, false) {
				for m, n := range amounts(r.Budget) {
					s.held[m] += n
				}
			}
		}
	}
	return s
}

// bounds are the budgets of a node with what counts against each, by name.
func (c *budgetChaos) bounds(t *state.Tree, ref schemas.Ref, node string) map[string]struct {
	limit *schemas.Budget
	spent
} {
	type bound = struct {
		limit *schemas.Budget
		spent
	}
	out := map[string]bound{}
	add := func(name string, b *schemas.Budget, belongs func(e *state.Entry, r *schemas.Run, ended bool) bool) {
		if b != nil {
			out[name] = bound{b, c.count(t, belongs)}
		}
	}
	dag := state.SpecOf[*schemas.DAGSpec](t.Entry(ref))
	add("node "+node, dag.Node(node).Budget, func(e *state.Entry, r *schemas.Run, _ bool) bool { return e.Ref == ref && r.Node == node })
	add("dag", dag.Budget, func(e *state.Entry, _ *schemas.Run, _ bool) bool { return e.Ref == ref })
	if s := t.Entry(schemas.SessionKind.Ref(dag.Session)); s != nil && s.Object != nil {
		add("session", state.SpecOf[*schemas.SessionSpec](s).Budget, func(e *state.Entry, _ *schemas.Run, _ bool) bool {
			if spec := state.SpecOf[*schemas.DAGSpec](e); spec != nil {
				return spec.Session == dag.Session
			}
			return state.StatusOf[schemas.DAGStatus](e).Session == dag.Session
		})
	}
	add("agent", state.SpecOf[*schemas.AgentSpec](t.Entry(schemas.AgentKind.Ref("engineer"))).Budget,
		func(*state.Entry, *schemas.Run, bool) bool { return true })
	add("day", t.Settings().Budget.Day, func(_ *state.Entry, r *schemas.Run, ended bool) bool {
		return !ended || r.FinishedAt.UTC().Format(time.DateOnly) == c.now.UTC().Format(time.DateOnly)
	})
	return out
}

// reserveFrom reserves for an effect as an admission does, and checks that every budget has that left.
func (c *budgetChaos) reserveFrom(e *settle.Effect) bool {
	t := c.tree()
	ledger := &budgets.Ledger{Sums: budgets.SumsOf(new(settle.Values), t, c.now), Slots: 2}
	b, ok := ledger.Reserve(e)
	if !ok {
		return false
	}
	e.Reserve(b)
	if b != nil {
		c.note("reserve %s: %v", e.Key, amounts(b))
	}
	for name, is := range c.bounds(t, e.Owner, e.Node) {
		for m, limit := range amounts(is.limit) {
			if n := is.used[m] + is.held[m] + amounts(b)[m]; limit > 0 && n > limit+1 { // costs are rounded
				c.t.Errorf("%s reserves %v: %d of %d are used, and %d reserved, of the budget %d of the %s", e.Key, amounts(b), is.used[m], limit, is.held[m], m, name)
			}
			if limit > 0 && amounts(b)[m] == 0 {
				c.t.Errorf("%s reserves nothing of the budget %d of the %s", e.Key, m, name)
			}
		}
	}
	return true
}

// spend says what a run used: as much as it reserved at most, or it is not known. A command may have used more.
func (c *budgetChaos) spend(r *schemas.Run) {
	if r.Agent == "" {
		return
	}
	b := amounts(r.Budget)
	turn := &schemas.Turn{}
	switch c.r.IntN(5) {
	case 0: // nothing is known
		return
	case 1:
		turn.Usage = &schemas.Usage{Requests: b[0] + 2, InputTokens: b[1] + 60, OutputTokens: 1}
	default:
		turn.Usage = &schemas.Usage{Requests: c.r.Int64N(b[0] + 2), InputTokens: 1 + c.r.Int64N(b[1]+60), OutputTokens: 1}
	}
	if c.r.IntN(2) == 0 {
		cost := float64(c.r.Int64N(b[3]+2e5)) / 1e6
		turn.CostUSD = &cost
	}
	r.Turn = turn
	c.note("%s used %v", r.Key, used(r, 0))
}

// blocked checks that budgets block what they should, and nothing else.
func (c *budgetChaos) blocked() {
	t := c.tree()
	for ref, e := range c.entries {
		spec := state.SpecOf[*schemas.DAGSpec](e)
		st, ok := e.Status().(*schemas.DAGStatus)
		if spec == nil || !ok || e.Broken() {
			continue
		}
		for name, n := range st.Nodes.All() {
			if node := spec.Node(name); node == nil || node.Agent == "" || node.Agent == "boss" {
				continue
			}
			waits := n.State == schemas.NodeQueued && n.Reason != settle.ReasonBackOff && !slices.ContainsFunc(e.Claims, func(cl state.Claim) bool { return cl.Node == name })
			over := c.exceeded(t, ref, name)
			if isBlocked := n.Reason == settle.ReasonBudgetExceeded; isBlocked && over == "" || waits && over != "" {
				c.t.Errorf("node %s of %s is %s (%s %s); used up: %q", name, ref, n.State, n.Reason, n.Message, over)
			}
		}
	}
}

// exceeded names a budget of a node that is used up.
func (c *budgetChaos) exceeded(t *state.Tree, ref schemas.Ref, node string) (name string) {
	for of, is := range c.bounds(t, ref, node) {
		for m, limit := range amounts(is.limit) {
			if limit > 0 && is.used[m] >= limit {
				return fmt.Sprintf("%s: %d of %d", of, is.used[m], limit)
			}
		}
	}
	return ""
}
