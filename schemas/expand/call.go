package expand

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/condition"
	"reconcile.dev/reconcile/schemas/template"
)

// call puts the nodes of another DAG in place of a node. Those without needs need what the node needs.
func (s *scope) call(n schemas.Node, matrix map[string]any) []schemas.Node {
	join := joinOf(&n)
	object := s.e.object(schemas.DAGKind.Ref(n.DAG))
	callee := schemas.SpecAs[*schemas.DAGSpec](object)
	if callee == nil {
		s.e.fail("node %s calls dag/%s, which is missing or invalid", s.full(n.Name), n.DAG)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(n.With)) {
		if _, ok := callee.Params[name]; !ok {
			s.e.fail("node %s: with.%s: dag/%s has no such parameter", s.full(n.Name), name, n.DAG)
		}
	}
	open, problem := s.arguments(&n, callee, matrix)
	if join.Made.Open, join.Made.Problem = open, problem; len(open) > 0 || problem != "" {
		join.Needs = n.Needs
		return []schemas.Node{join}
	}
	inner := s.e.dag(n.DAG, callee, s.full(n.Name), n.With, func(name string) string { return s.full(nameOf(n.Name, name)) })
	for i := range inner {
		c := &inner[i]
		short := c.Name
		c.Name = nameOf(n.Name, short)
		s.inside(c, &n, short, object.Path)
		if c.Retry == nil {
			c.Retry = callee.Policy.Retry
		}
		join.Needs = append(join.Needs, c.Name)
		if callee.Node(short) != nil {
			join.Made.Joins = append(join.Made.Joins, schemas.Joined{Node: c.Name, Name: short})
		}
	}
	s.bound(&schemas.Call{Node: s.full(n.Name), DAG: n.DAG, Path: object.Path, MaxConcurrency: callee.Policy.MaxConcurrency,
		Budget: callee.Budget, Timeout: callee.Policy.Timeout}, inner)
	if n.Optional {
		spare(inner)
	}
	return append(inner, join)
}

// bound notes the bounds of a call for its nodes.
func (s *scope) bound(call *schemas.Call, inner []schemas.Node) {
	if call.MaxConcurrency == 0 && call.Budget == nil && call.Timeout == nil {
		return
	}
	if s.e.made.Calls == nil {
		s.e.made.Calls = map[string][]*schemas.Call{}
	}
	for i := range inner {
		name := s.full(inner[i].Name)
		s.e.made.Calls[name] = append(s.e.made.Calls[name], call)
	}
}

// spare has the failures of nodes not fail the DAG: the node that joins them says whether it does.
func spare(nodes []schemas.Node) {
	for i := range nodes {
		made := schemas.Made{}
		if nodes[i].Made != nil {
			made = *nodes[i].Made
		}
		made.Spared = true
		nodes[i].Made = &made
	}
}

// arguments puts values into the arguments of a call. open are the needs that have to succeed first, since arguments read their results;
// problem says why what these left cannot be an argument.
func (s *scope) arguments(n *schemas.Node, callee *schemas.DAGSpec, matrix map[string]any) (open []string, problem string) {
	names := condition.Scope{Needs: n.Needs, Params: slices.Sorted(maps.Keys(s.params)), AnyMatrix: matrix != nil}
	env := &template.Env{Needs: map[string]template.Need{}, Session: s.e.session, DAG: s.e.name, Params: s.params, Matrix: matrix}
	n.With = maps.Clone(n.With)
	for _, name := range slices.Sorted(maps.Keys(n.With)) {
		text, ok := n.With[name].(string)
		if !ok || !template.Has(text) {
			continue
		}
		t, err := template.Compile(text, names)
		if err != nil {
			s.e.fail("node %s: with.%s: %v", s.full(n.Name), name, err)
			return nil, ""
		}
		of := t.Needs
		if t.AllNeeds {
			of = n.Needs
		}
		if missing := s.take(env, of); len(missing) > 0 {
			open = append(open, missing...)
			continue
		}
		if text, err = t.Execute(env, nil); err == nil && len(of) > 0 {
			p := callee.Params[name]
			_, err = p.Take(text)
		}
		switch {
		case err == nil:
			n.With[name] = text
		case len(of) > 0:
			return of, fmt.Sprintf("with.%s: %v", name, err)
		default:
			s.e.fail("node %s: with.%s: %v", s.full(n.Name), name, err)
		}
	}
	slices.Sort(open)
	return slices.Compact(open), ""
}

// take adds the results of nodes to what expressions see, and returns those that have not succeeded.
func (s *scope) take(env *template.Env, needs []string) (missing []string) {
	for _, need := range needs {
		full := s.full(need)
		raw, ok := s.e.Result(full)
		if s.e.made.Results[full] = resultOf(s.e.World, full); !ok {
			missing = append(missing, need)
			continue
		}
		env.Needs[need] = template.Need{State: schemas.NodeSucceeded, Result: condition.Result(raw)}
	}
	return missing
}

// inside gives the names in a node of a called DAG their prefix. short is its own name there, file that of the DAG.
func (s *scope) inside(c, call *schemas.Node, short, file string) {
	made := schemas.Made{}
	if c.Made != nil {
		made = *c.Made
	}
	if made.Path == "" {
		made.From, made.Path = cmp.Or(made.From, short), file
	}
	known := c.NeedNames()
	made.Joins, made.Open = slices.Clone(made.Joins), slices.Clone(made.Open)
	for k := range made.Joins {
		made.Joins[k].Node = nameOf(call.Name, made.Joins[k].Node)
	}
	for k := range made.Open {
		made.Open[k] = nameOf(call.Name, made.Open[k])
	}
	if r := c.Repeat; r != nil && r.From != "" {
		moved := *r
		moved.From = nameOf(call.Name, r.From)
		c.Repeat = &moved
	}
	if len(c.Needs) == 0 {
		c.Needs = call.Needs
	} else {
		needs := make([]string, len(c.Needs))
		for k, need := range c.Needs {
			needs[k] = nameOf(call.Name, need)
		}
		c.Needs, made.Known = needs, known
	}
	c.Made = &made
}
