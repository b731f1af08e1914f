package budgets

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Node returns the budgets that a node's turns of an agent run against, the narrowest first; nil without any. Specs may
// be nil, where they say nothing.
func Node(in settle.In, dag *schemas.DAGSpec, n *schemas.Node, session, agent *schemas.Object) []settle.Allowance {
	var out []settle.Allowance
	path := in.Object.Path
	own := settle.Allowance{Scope: nodeScope(in.Name, n.Name), Of: "node " + n.Name, Path: path, Field: "nodes." + n.Name + ".budget", Turns: 1, Node: true}
	if m := n.Made; m != nil {
		own.Path, own.Field = cmp.Or(m.Path, path), "nodes."+cmp.Or(m.From, n.Name)+".budget"
	}
	out = with(out, n.Budget, own)
	if a := schemas.SpecAs[*schemas.AgentSpec](agent); a != nil {
		out = with(out, a.Budget, agentAllowance(agent, a))
	}
	for _, c := range dag.CallsOf(n.Name) {
		out = with(out, c.Budget, callAllowance(in.Name, c))
	}
	out = with(out, dag.Budget, settle.Allowance{Scope: dagScope(in.Name), Of: in.Ref.String(), Path: path, Field: "spec.budget"})
	if s := schemas.SpecAs[*schemas.SessionSpec](session); s != nil {
		out = with(out, s.Budget, settle.Allowance{Scope: sessionScope(session.Name), Of: session.Ref.String(), Path: session.Path,
			Field: "spec.budget"})
	}
	return Day(out, in.Tree.Settings())
}

// callAllowance is the budget of a called DAG within one call.
func callAllowance(dag string, c *schemas.Call) settle.Allowance {
	return settle.Allowance{Scope: callScope(dag, c.Node), Of: "dag/" + c.DAG + " in " + c.Node, Path: c.Path, Field: "spec.budget"}
}

// Agent returns the budgets that an answer of an agent runs against.
func Agent(settings *schemas.SettingsSpec, agent *schemas.Object) []settle.Allowance {
	var out []settle.Allowance
	if a := schemas.SpecAs[*schemas.AgentSpec](agent); a != nil {
		out = with(out, a.Budget, agentAllowance(agent, a))
	}
	return Day(out, settings)
}

func agentAllowance(o *schemas.Object, a *schemas.AgentSpec) settle.Allowance {
	return settle.Allowance{Scope: agentScope(o.Name), Of: o.Ref.String(), Path: o.Path, Field: "spec.budget", Turns: a.Concurrency}
}

// Day adds the budget of the day to those in out, if there is one.
func Day(out []settle.Allowance, settings *schemas.SettingsSpec) []settle.Allowance {
	return with(out, settings.Budget.Day, settle.Allowance{Scope: dayScope, Of: "the day", Path: schemas.SettingsPath,
		Field: "spec.budget.day"})
}

func with(out []settle.Allowance, b *schemas.Budget, a settle.Allowance) []settle.Allowance {
	if b == nil {
		return out
	}
	a.Limit = *b
	return append(out, a)
}

// spent is the first measure of which a budget is used up, or nil.
func (s *Sums) spent(a *settle.Allowance) *measure {
	used := s.at(a.Scope).used
	for i := range measures {
		m := &measures[i]
		if limit := m.limit(&a.Limit); limit > 0 && m.of(used) >= limit {
			return m
		}
	}
	return nil
}

// Exceeded says which of the budgets are used up, and what lets the work go on; "" if none is. until is the end of the day if the day's
// is one of them. ref and node belong to the requester: the object is decided again when the answer changes.
func (s *Sums) Exceeded(all []settle.Allowance, ref schemas.Ref, node string) (why string, until time.Time) {
	var parts []string
	for i := range all {
		a := &all[i]
		s.notice(a, asker{ref, node})
		if this := s.usedUp(a); this != "" {
			parts = append(parts, this)
			if a.Scope == dayScope {
				until = s.now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
			}
		}
	}
	return strings.Join(parts, "; also "), until
}

// usedUp says that a budget is used up, and what lets the work go on; "" if it is not.
func (s *Sums) usedUp(a *settle.Allowance) string {
	m := s.spent(a)
	if m == nil {
		return ""
	}
	used, until := s.at(a.Scope).used, ""
	if a.Scope == dayScope {
		until = "it goes on at 00:00 UTC, or "
	}
	return fmt.Sprintf("%s: %s%s; %sraise %s.%s in %s", beginning(a), m.text(m.of(used), m.limit(&a.Limit)), used.unknowns(a), until,
		a.Field, m.field, a.Path)
}

// budgetOf is the beginning of a message about a budget.
const budgetOf = "the budget of "

func beginning(a *settle.Allowance) string { return budgetOf + a.Of + " is used up" }

// Names lists whose budgets they are.
func Names(all []settle.Allowance) string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Of
	}
	return strings.Join(names, ", ")
}

// Left says what a budget has left, in each measure that it bounds: "session/s has 100 of 300 tokens left".
func (s *Sums) Left(a *settle.Allowance) string {
	at := s.at(a.Scope)
	var parts []string
	for _, m := range measures {
		if limit := m.limit(&a.Limit); limit > 0 {
			parts = append(parts, m.text(max(limit-m.of(at.used)-m.of(at.held), 0), limit))
		}
	}
	return a.Of + " has " + strings.Join(parts, ", ") + " left" + at.used.unknowns(a)
}

// ofObject returns the budgets of a DAG with its nodes, of a session or of an agent; nil for none.
func ofObject(ref schemas.Ref, o *schemas.Object) []settle.Allowance {
	var out []settle.Allowance
	switch spec := o.Spec().(type) {
	case *schemas.SessionSpec:
		out = with(out, spec.Budget, settle.Allowance{Scope: sessionScope(ref.Name), Of: ref.String()})
	case *schemas.AgentSpec:
		out = with(out, spec.Budget, agentAllowance(o, spec))
	case *schemas.DAGSpec:
		out = with(out, spec.Budget, settle.Allowance{Scope: dagScope(ref.Name), Of: ref.String()})
		for i := range spec.Nodes {
			n := &spec.Nodes[i]
			if n.Budget == nil {
				continue // of most nodes
			}
			out = with(out, n.Budget, settle.Allowance{Scope: nodeScope(ref.Name, n.Name), Of: "node " + n.Name})
		}
		for _, c := range spec.Calls() {
			out = with(out, c.Budget, callAllowance(ref.Name, c))
		}
	}
	return out
}

// Warn adds to the status of an object that a budget of it is low.
func Warn(in settle.In, c *schemas.Common) {
	all := ofObject(in.Ref, in.Object)
	if len(all) == 0 {
		return
	}
	sums := SumsOf(in.World.OfRun, in.Tree, in.Now)
	for i := range all {
		if low := sums.low(&all[i]); low != "" {
			old := settle.Common(in.Status())
			settle.Warn(c, &old, low, in.Now)
			return
		}
	}
}

// LowDay says that the budget of the present day is at least 80 % used; "" if it is not, or without one. day is the day in UTC.
func (s *Sums) LowDay(settings *schemas.SettingsSpec) (low, day string) {
	for _, a := range Day(nil, settings) {
		if low = s.low(&a); low != "" {
			low += fmt.Sprintf("; at 100 %% nothing new starts until 00:00 UTC, unless %s is raised in %s", a.Field, a.Path)
		}
	}
	return low, dayOf(s.now)
}

// lowFrom is the part of a budget, in percent, from which on it is low.
const lowFrom = 80

// low says that a budget is at least 80 % used; "" if it is not.
func (s *Sums) low(a *settle.Allowance) string {
	used := s.at(a.Scope).used
	for _, m := range measures {
		limit := m.limit(&a.Limit)
		if limit > 0 && float64(m.of(used)) >= float64(limit)*lowFrom/100 {
			percent := int64(float64(m.of(used)) * 100 / float64(limit))
			return fmt.Sprintf("%d %% of the budget of %s are used: %s%s", percent, a.Of, m.text(m.of(used), limit), used.unknowns(a))
		}
	}
	return ""
}
