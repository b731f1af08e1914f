package agents

import (
	"maps"
	"slices"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// IsPerson reports whether a person answers for the agent.
func IsPerson(t *state.Tree, agent string) bool {
	e := t.Entry(schemas.AgentKind.Ref(agent))
	if e == nil {
		return false
	}
	spec := schemas.SpecAs[*schemas.AgentSpec](e.Object)
	return spec != nil && spec.Runner.Human != nil
}

// Acts reports whether the author of an action is an agent, and not a person.
func Acts(t *state.Tree, id settle.Identity) bool {
	return id.Proof == schemas.ProofRun || t.Exists(schemas.AgentKind.Ref(id.Who)) && !IsPerson(t, id.Who)
}

// Contact is the contact of an agent that is a person.
func Contact(t *state.Tree, agent string) string {
	if e := t.Entry(schemas.AgentKind.Ref(agent)); e != nil {
		spec := schemas.SpecAs[*schemas.AgentSpec](e.Object)
		if spec != nil && spec.Runner.Human != nil && spec.Runner.Human.Contact != "" {
			return spec.Runner.Human.Contact
		}
	}
	return agent
}

// IsEngineer reports whether an agent has the role of an engineer.
func IsEngineer(t *state.Tree, agent string) bool {
	e := t.Entry(schemas.AgentKind.Ref(agent))
	if e == nil {
		return false
	}
	spec := schemas.SpecAs[*schemas.AgentSpec](e.Object)
	return spec != nil && spec.Role == schemas.RoleEngineer
}

// RunnerDigest says by a digest whether an agent is still the same: how it is run, and by which instructions, without the time limit. Of instructions in a file it has the path.
func RunnerDigest(a *schemas.AgentSpec) string {
	o := keys.Begin(nil)
	if h := a.Runner.HTTP; h != nil {
		o.Text("http", h.BaseURL)
		o.Text("tools", h.Tools)
		o.Text("wire", h.Wire)
		o.Text("model of http", h.Model)
	} else if c := a.Runner.AsCommand(); c != nil {
		if a.Runner.ACP != nil {
			o.Text("acp", "1")
			o.Text("mode", a.Runner.ACP.Mode)
		}
		o.List("argv", c.Argv)
		o.Env("env", c.Env)
		o.Text("output", c.Output)
		o.Text("profile", c.Profile)
		o.Text("stdin", c.Stdin)
	} else {
		o.Text("human", "human")
	}
	o.Text("model", a.Model)
	o.Text("instructions", a.Instructions.Text)
	o.Text("instructionsFile", a.Instructions.File)
	for _, name := range slices.Sorted(maps.Keys(a.Runner.MCPServers)) {
		s := a.Runner.MCPServers[name]
		o.Text("server", name)
		o.List("argv of server", s.Argv)
		o.Env("env of server", s.Env)
	}
	return keys.Digest(o.End())
}

// Role is who an agent is, as its prompts say.
func Role(name string, spec *schemas.AgentSpec) agentio.Role {
	return agentio.Role{Name: name, Role: spec.Role, Description: spec.Description, Instructions: spec.Instructions.Text}
}
