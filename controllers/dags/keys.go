package dags

import (
	"slices"

	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/schemas"
)

// A node's key is the digest of a canonical JSON object (sorted names, no blanks) of what decides whether the node has
// to run (decision 1):
//
//	{"definition":{…},"generation":1,"inputs":"sha256:…","needs":{"build":"sha256:…"},"runner":"sha256:…"}
//
// The definition holds what is executed and what it sees, and leaves out what only says how to schedule it or what it
// is for: description, metadata, priority, retry, timeout. What is empty is left out.

// appendDefinition appends the definition of a node.
func appendDefinition(b []byte, n *schemas.Node) []byte {
	o := keys.Begin(b)
	o.Text("agent", n.Agent)
	o.Texts("env", n.Env)
	o.List("inputs", n.Inputs)
	o.Text("name", n.Name)
	o.Text("outputJSON", n.Outputs.JSON)
	o.Raw("outputSchema", n.Outputs.Schema)
	o.List("outputs", n.Outputs.Files)
	o.Text("prompt", n.Prompt)
	o.List("run", n.Run)
	o.Text("script", n.Script)
	o.Text("when", n.When)
	o.Text("workingDir", n.WorkingDir)
	return o.End()
}

// nodeKey digests what decides about node i, given the keys of its needs.
func (p *plan) nodeKey(buf []byte, i int32, of []string, generation int, inputs, runner string) (string, []byte) {
	o := keys.Begin(buf[:0])
	o.Raw("definition", p.defs[i])
	o.Int("generation", generation)
	o.Text("inputs", inputs)
	if needs := p.needs[i]; len(needs) > 0 {
		o.Open("needs")
		for _, to := range p.sorted(needs) {
			o.Text(p.spec.Nodes[to].Name, of[to])
		}
		o.Close()
	}
	o.Text("runner", runner)
	buf = o.End()
	return keys.Digest(buf), buf
}

// sorted returns the nodes in the order of their names.
func (p *plan) sorted(nodes []int32) []int32 {
	byName := func(a, b int32) int { return compareStrings(p.spec.Nodes[a].Name, p.spec.Nodes[b].Name) }
	if slices.IsSortedFunc(nodes, byName) {
		return nodes
	}
	return slices.SortedFunc(slices.Values(nodes), byName)
}

func compareStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
