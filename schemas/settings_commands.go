package schemas

import "reconcile.dev/reconcile/schemas/commands"

// CommandSettings says which commands an agent may run that asks for a permission; commands in DAGs are not subject to it.
// What is neither allowed nor blocked is asked of a person. docs/sandbox.md has the form of patterns and the default lists.
type CommandSettings struct {
	// Allow lists patterns of commands that need no person; "@default" stands for the default list. Default: that list.
	Allow []string `json:"allow,omitempty" jsonschema:"maxItems=1000"`
	// Block lists patterns of commands that are refused, also where allow has them; "@default" stands for the default list.
	// Default: that list.
	Block []string `json:"block,omitempty" jsonschema:"maxItems=1000"`
	// Roles are lists by the role of the agent, which replace allow for it; "@default" stands for the role's default list.
	// Default: lists for architect and tester that only read.
	Roles map[string][]string `json:"roles,omitempty"`
	// Wait is how long a running agent waits for a person's answer; then its turn ends, and the node waits. Default 5m;
	// in a run that neither watches nor has a terminal, 0s.
	Wait *Duration `json:"wait,omitempty"`
}

// Lists are the lists of patterns.
func (c *CommandSettings) Lists() commands.Lists {
	return commands.Lists{Allow: c.Allow, Block: c.Block, Roles: c.Roles}
}

// Rules are the rules for agents of a role.
func (c *CommandSettings) Rules(role string) *commands.Rules {
	lists := c.Lists()
	return commands.Compile(lists.For(role))
}

func (c *CommandSettings) check(r *Report) {
	for i, p := range c.Allow {
		checkFilled(r.At("commands", "allow", i), p)
	}
	for i, p := range c.Block {
		checkFilled(r.At("commands", "block", i), p)
	}
	for role, list := range c.Roles {
		checkRef(r.At("commands", "roles", role), role)
		for i, p := range list {
			checkFilled(r.At("commands", "roles", role, i), p)
		}
	}
}
