package plan

import (
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/schemas"
)

// A node's key is the digest of a canonical JSON object (sorted names, no blanks) of what decides whether the node has
// to run (decisions 1 and 25):
//
//	{"definition":{…},"generation":1,"inputs":"sha256:…","needs":{"build":"sha256:…"}}
//
// From the second round of a loop on there are "round" and "roundOf", a digest of the definitions in the loop.
//
// The definition holds what is executed and what it sees, and leaves out what only says how to schedule it, what it
// is for, or who does it: description, metadata, priority, retry, timeout, budget, agent. Empty fields are omitted.
//
// With rerunOnAgentChange the definition has the agent, too, and the object a "runner": a digest of the agent's program and
// model. Earlier versions made all keys so. The key under which a node is on record stays, whichever it is, as long as one of
// the two is that of the present definition.

// Parameters and values of a matrix are in the definition as "given": those that the node uses. Earlier versions gave a command all
// parameters of its DAG: such a key counts, too, as long as none of them has another value (former.go).

// appendDefinition appends the definition of a node, with its agent or without, and with the values that it is given.
func appendDefinition(b []byte, n *schemas.Node, agent string, given []byte) []byte {
	o := keys.Begin(b)
	o.List("acceptance", n.Acceptance)
	o.Text("agent", agent)
	o.Env("env", n.Env)
	o.Raw("given", given)
	o.List("inputs", n.Inputs)
	o.Text("name", n.Name)
	o.Text("outputJSON", n.Outputs.JSON)
	o.Raw("outputSchema", n.Outputs.Schema)
	o.List("outputs", n.Outputs.Files)
	o.Text("prompt", n.Prompt)
	o.List("run", n.Run)
	o.Text("script", n.Script)
	o.List("tools", n.Tools)
	o.Text("when", n.When)
	o.Text("workingDir", n.WorkingDir)
	return o.End()
}
