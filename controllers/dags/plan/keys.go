package plan

import (
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
	o.List("acceptance", n.Acceptance)
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
