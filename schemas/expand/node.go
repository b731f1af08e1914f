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
	s.e.count()
	join := joinOf(n)
	elements, open, problem := s.elements(n)
	if len(elements) == 0 { // what needs it still waits for what it needs
		join.Needs, join.Made.Open, join.Made.Problem = n.Needs, open, problem
		if missing := func(to string) bool { return !slices.Contains(n.Needs, to) }; slices.ContainsFunc(open, missing) {
			join.Needs = slices.Concat(n.Needs, open)
		}
		return []schemas.Node{join}
	}
	var out []schemas.Node
	for _, el := range elements {
		c := *n
		c.Name, c.Matrix, c.Optional = nameOf(n.Name, el.name), nil, false
		if out = append(out, s.work(c, el.values)...); s.e.made.Fault != "" {
			return nil
		}
		if n.DAG == "" {
			out[len(out)-1].Made.From = n.Name
		}
		join.Needs = append(join.Needs, c.Name)
		join.Made.Joins = append(join.Made.Joins, schemas.Joined{Node: c.Name, Name: el.name})
	}
	if n.Optional {
		spare(out)
	}
	return append(out, join)
}

// joinOf is the node that joins what a node represents.
func joinOf(n *schemas.Node) schemas.Node {
	return schemas.Node{Name: n.Name, Description: n.Description, Optional: n.Optional, Made: &schemas.Made{Join: true}}
}

// work returns the node with its values, or the nodes of the DAG that it calls.
func (s *scope) work(n schemas.Node, matrix map[string]any) []schemas.Node {
	s.e.count()
	if n.DAG != "" {
		return s.call(n, matrix)
	}
	if len(s.params) > 0 || matrix != nil {
		s.fill(&n, matrix)
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
	if problem := n.CheckMade(); problem != "" {
		s.e.fail("node %s: %s", s.full(n.Name), problem)
	}
	s.use(n)
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
