package expand

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/condition"
	"reconcile.dev/reconcile/schemas/template"
)

// scope is the DAG whose nodes are expanded.
type scope struct {
	e      *expander
	spec   *schemas.DAGSpec
	full   func(string) string
	params map[string]any
}

// node returns what becomes of a node: itself, its elements and the one that joins them, or the nodes of the DAG that it calls.
func (s *scope) node(n *schemas.Node) []schemas.Node {
	if n.Matrix == nil {
		return s.work(*n, nil)
	}
	join := schemas.Node{Name: n.Name, Description: n.Description, Made: &schemas.Made{Join: true}}
	elements, open, problem := s.elements(n)
	if join.Made.Open, join.Made.Problem = open != "", problem; join.Made.Open {
		join.Needs = []string{open}
		return []schemas.Node{join}
	}
	var out []schemas.Node
	for _, el := range elements {
		c := *n
		c.Name, c.Matrix = nameOf(n.Name, el.name), nil
		out = append(out, s.work(c, el.values)...)
		join.Needs = append(join.Needs, c.Name)
		join.Made.Joins = append(join.Made.Joins, schemas.Joined{Node: c.Name, Name: el.name})
	}
	if n.Matrix.From != "" && slices.ContainsFunc(out, func(c schemas.Node) bool { return len(c.Inputs) > 0 }) {
		s.e.fail("node %s: nodes that are made of a result cannot have inputs; let the node before them read the files", s.full(n.Name))
	}
	return append(out, join)
}

// work returns the node with its values, or the nodes of the DAG that it calls.
func (s *scope) work(n schemas.Node, matrix map[string]any) []schemas.Node {
	if len(s.params) > 0 || matrix != nil {
		s.fill(&n, matrix)
	}
	if n.DAG != "" {
		return s.call(n)
	}
	return []schemas.Node{n}
}

// fill gives a node the values of parameters and of the matrix, and puts them into the texts that have to be known before it starts.
func (s *scope) fill(n *schemas.Node, matrix map[string]any) {
	made := &schemas.Made{Params: s.params, Matrix: matrix}
	n.Made = made
	env := &template.Env{Session: s.e.session, DAG: s.e.name, Params: s.params, Matrix: matrix}
	names := condition.Scope{Params: slices.Sorted(maps.Keys(s.params)), AnyMatrix: matrix != nil}
	put := func(field, text string) string {
		if !template.Has(text) {
			return text
		}
		t, err := template.Compile(text, names)
		if err == nil {
			text, err = t.Execute(env, nil)
		}
		if err != nil {
			s.e.fail("node %s: %s: %v", s.full(n.Name), field, err)
		}
		return text
	}
	all := func(field string, texts []string) []string {
		texts = slices.Clone(texts)
		for i := range texts {
			texts[i] = put(field, texts[i])
		}
		return texts
	}
	n.Inputs, n.Outputs.Files = all("inputs", n.Inputs), all("outputs.files", n.Outputs.Files)
	n.Outputs.JSON, n.WorkingDir = put("outputs.json", n.Outputs.JSON), put("workingDir", n.WorkingDir)
	if n.With = maps.Clone(n.With); n.DAG != "" {
		for name, v := range n.With {
			if text, ok := v.(string); ok {
				n.With[name] = put("with."+name, text)
			}
		}
		return
	}
	if problem := n.CheckMade(); problem != "" {
		s.e.fail("node %s: %s", s.full(n.Name), problem)
	}
	s.use(n)
}

// call puts the nodes of another DAG in place of a node. Those without needs need what the node needs.
func (s *scope) call(n schemas.Node) []schemas.Node {
	join := schemas.Node{Name: n.Name, Description: n.Description, Made: &schemas.Made{Join: true}}
	callee := schemas.SpecAs[*schemas.DAGSpec](s.e.object(schemas.DAGKind.Ref(n.DAG)))
	if callee == nil {
		s.e.fail("node %s calls dag/%s, which is missing or invalid", s.full(n.Name), n.DAG)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(n.With)) {
		if _, ok := callee.Params[name]; !ok {
			s.e.fail("node %s: with.%s: dag/%s has no such parameter", s.full(n.Name), name, n.DAG)
		}
	}
	inner := s.e.dag(n.DAG, callee, n.With, func(name string) string { return s.full(nameOf(n.Name, name)) })
	for i := range inner {
		c := &inner[i]
		short := c.Name
		c.Name = nameOf(n.Name, short)
		s.inside(c, &n)
		if c.Retry == nil {
			c.Retry = callee.Policy.Retry
		}
		join.Needs = append(join.Needs, c.Name)
		if callee.Node(short) != nil {
			join.Made.Joins = append(join.Made.Joins, schemas.Joined{Node: c.Name, Name: short})
		}
	}
	return append(inner, join)
}

// inside gives the names in a node of a called DAG their prefix.
func (s *scope) inside(c, call *schemas.Node) {
	made := schemas.Made{}
	if c.Made != nil {
		made = *c.Made
	}
	known := c.NeedNames()
	made.Joins = slices.Clone(made.Joins)
	for k := range made.Joins {
		made.Joins[k].Node = nameOf(call.Name, made.Joins[k].Node)
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

// final returns the final nodes, which need all nodes of the DAG.
func (s *scope) final() []schemas.Node {
	var out []schemas.Node
	for i := range s.spec.Finally {
		n := s.spec.Finally[i]
		needs := make([]string, 0, len(s.spec.Nodes)+len(n.Needs))
		for k := range s.spec.Nodes {
			needs = append(needs, s.spec.Nodes[k].Name)
		}
		for _, need := range n.Needs {
			if !slices.Contains(needs, need) {
				needs = append(needs, need)
			}
		}
		n.Needs = needs
		n = s.work(n, nil)[0]
		made := schemas.Made{}
		if n.Made != nil {
			made = *n.Made
		}
		made.Finally = true
		n.Made = &made
		out = append(out, n)
	}
	return out
}

// maxName bounds the name of a node.
const maxName = 63

// nameOf is the name of a part of a node. One that is too long is cut, and gets a digest of the whole.
func nameOf(node, part string) string {
	name := node + "_" + part
	if len(name) <= maxName {
		return name
	}
	digest := short([]byte(name))
	return name[:maxName-len(digest)-1] + "-" + digest
}

func short(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:4])
}
