package plan

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// sparesOf returns the agents, by name, that may do the work of those that the plan names, or verify it, and are not named themselves.
// People and agents that cannot be used are left out.
func sparesOf(in settle.In, p *Plan, session *schemas.SessionSpec, named []*schemas.Object) (out []*schemas.Object) {
	add := func(name string) {
		if _, ok := slices.BinarySearch(p.Agents, name); ok {
			return
		}
		if e := in.Tree.Entry(schemas.AgentKind.Ref(name)); e != nil && usable(in, schemas.SpecAs[*schemas.AgentSpec](e.Object)) {
			out = append(out, e.Object)
		}
	}
	for _, o := range named {
		for _, name := range o.Spec().(*schemas.AgentSpec).Fallback {
			add(name)
		}
	}
	if len(named) > 0 {
		for _, a := range session.Pipeline.Agents() {
			add(a.Name)
		}
		for i := range p.Spec.Nodes {
			for _, a := range p.Spec.Nodes[i].Pipeline.Agents() {
				add(a.Name)
			}
		}
	}
	slices.SortFunc(out, func(a, b *schemas.Object) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(out)
}

func usable(in settle.In, s *schemas.AgentSpec) bool {
	return s != nil && s.Runner.AsCommand() != nil && profiles.Check(in.Tree.Settings().Profiles, &s.Runner) == ""
}

// object is that of an agent that the plan names, or a spare one; nil for any other.
func (b *Binding) object(p *Plan, name string) *schemas.Object {
	if i, ok := slices.BinarySearch(p.Agents, name); ok {
		return b.agents[i]
	}
	i, ok := slices.BinarySearchFunc(b.spares, name, func(o *schemas.Object, name string) int { return strings.Compare(o.Name, name) })
	if !ok {
		return nil
	}
	return b.spares[i]
}
