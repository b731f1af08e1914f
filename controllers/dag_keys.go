package controllers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"reconcile.dev/reconcile/schemas"
)

// A node's key is the digest of a canonical JSON object (sorted names, no blanks) of what decides whether the node has
// to run (decision 1):
//
//	{"definition":{…},"generation":1,"inputs":"sha256:…","needs":{"build":"sha256:…"},"runner":"sha256:…"}
//
// The definition holds what is executed and what it sees, and leaves out what only says how to schedule it or what it
// is for: description, metadata, priority, retry, timeout. What is empty is left out.

const keyPrefix = "sha256:"

// appendDefinition appends the definition of a node.
func appendDefinition(b []byte, n *schemas.Node) []byte {
	o := object{append(b, '{')}
	o.text("agent", n.Agent)
	o.texts("env", n.Env)
	o.list("inputs", n.Inputs)
	o.text("name", n.Name)
	o.text("outputJSON", n.Outputs.JSON)
	o.raw("outputSchema", n.Outputs.Schema)
	o.list("outputs", n.Outputs.Files)
	o.text("prompt", n.Prompt)
	o.list("run", n.Run)
	o.text("script", n.Script)
	o.text("when", n.When)
	o.text("workingDir", n.WorkingDir)
	return append(o.b, '}')
}

// nodeKey digests what decides about node i, given the keys of its needs.
func (p *plan) nodeKey(buf []byte, i int32, keys []string, generation int, inputs, runner string) (string, []byte) {
	o := object{append(buf[:0], '{')}
	o.name("definition")
	o.b = append(o.b, p.defs[i]...)
	if generation != 0 {
		o.name("generation")
		o.b = strconv.AppendInt(o.b, int64(generation), 10)
	}
	o.text("inputs", inputs)
	if needs := p.needs[i]; len(needs) > 0 {
		o.name("needs")
		o.b = append(o.b, '{')
		inner := object{o.b}
		for _, to := range p.sorted(needs) {
			inner.text(p.spec.Nodes[to].Name, keys[to])
		}
		o.b = append(inner.b, '}')
	}
	o.text("runner", runner)
	o.b = append(o.b, '}')
	return digest(o.b), o.b
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

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	var out [len(keyPrefix) + 2*sha256.Size]byte
	copy(out[:], keyPrefix)
	hex.Encode(out[len(keyPrefix):], sum[:])
	return string(out[:])
}

// runnerDigest digests how an agent is run, without the time limit.
func runnerDigest(a *schemas.AgentSpec) string {
	o := object{[]byte{'{'}}
	if c := a.Runner.Command; c != nil {
		o.list("argv", c.Argv)
		o.texts("env", c.Env)
		o.text("output", c.Output)
		o.text("stdin", c.Stdin)
	} else {
		o.text("human", "human")
	}
	o.text("model", a.Model)
	return digest(append(o.b, '}'))
}

// object writes the fields of a JSON object, leaving out those that are empty.
type object struct{ b []byte }

func (o *object) name(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = appendText(o.b, name)
	o.b = append(o.b, ':')
}

func (o *object) text(name, value string) {
	if value != "" {
		o.name(name)
		o.b = appendText(o.b, value)
	}
}

// raw writes a value that is canonical JSON already.
func (o *object) raw(name string, value []byte) {
	if len(value) > 0 {
		o.name(name)
		o.b = append(o.b, value...)
	}
}

func (o *object) list(name string, values []string) {
	if len(values) == 0 {
		return
	}
	o.name(name)
	for i, v := range values {
		o.b = append(o.b, "[,"[min(i, 1)])
		o.b = appendText(o.b, v)
	}
	o.b = append(o.b, ']')
}

func (o *object) texts(name string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	o.name(name)
	inner := object{append(o.b, '{')}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		inner.name(k)
		inner.b = appendText(inner.b, values[k])
	}
	o.b = append(inner.b, '}')
}

// appendText appends a JSON string. What needs no escape, nearly everything, is copied.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
