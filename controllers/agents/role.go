package agents

import (
	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/schemas"
)

// Role is who an agent is, as its prompts say.
func Role(name string, spec *schemas.AgentSpec) agentio.Role {
	return agentio.Role{Name: name, Role: spec.Role, Description: spec.Description, Instructions: spec.Instructions.Text}
}
