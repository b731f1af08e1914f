// Package caller knows who calls: a person, or a run of an agent. What only people may do is refused to runs, and a run acts as
// its own agent.
package caller

import (
	"cmp"
	"fmt"
	"os/user"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
)

// Caller is who called this process.
type Caller struct {
	Dir      string                                  // of the tree
	Getenv   func(string) string                     // the environment of this process
	Ancestry func(yield func(environ []string) bool) // the environments of its ancestors; nil: they are not looked at
}

// AnyRun is the run of any tree that this process is part of; nil for a person.
func (c Caller) AnyRun() *runner.Inside {
	return runner.InsideRun(c.Dir, func(yield func([]string) bool) {
		var own []string
		for _, name := range runner.MarkVariables {
			if v := c.Getenv(name); v != "" {
				own = append(own, name+"="+v)
			}
		}
		if yield(own) && c.Ancestry != nil {
			c.Ancestry(yield)
		}
	})
}

// Run is the run of this tree that this process is part of; nil where it is part of none.
func (c Caller) Run() *runner.Inside {
	if in := c.AnyRun(); in != nil && !in.Elsewhere {
		return in
	}
	return nil
}

// InRun reports whether this process is part of a run of the same tree: then that run does the work.
func (c Caller) InRun() bool { return c.Run() != nil }

// OnlyPeople refuses inside of a run of this tree what only people may do.
func (c Caller) OnlyPeople(what string) error {
	if in := c.Run(); in != nil {
		return NotInRun(what, in)
	}
	return nil
}

// NotInRun refuses to a run what only people may do.
func NotInRun(what string, in *runner.Inside) error {
	return &PeopleOnlyError{fmt.Sprintf("only a person may %s, and this is part of %s: do it outside of a run", what, runName(in))}
}

// runName names a run for messages.
func runName(in *runner.Inside) string {
	name := "a run"
	if in.Key != "" {
		name = "the run " + in.Key
	}
	if in.Agent != "" {
		name += " of agent " + in.Agent
	}
	return name
}

// Actor is who acts: in a run its agent, "" where it has none, and else whom the flag names, the agent of the environment,
// or who is logged in. A run cannot act as anybody else.
func (c Caller) Actor(flag, name string) (string, error) {
	in := c.Run()
	switch {
	case in == nil:
		return cmp.Or(name, c.Getenv("RECONCILE_AGENT"), c.Login()), nil
	case name != "" && name != in.Agent:
		return "", &clarify.Error{Kind: clarify.ScopeViolation, Message: fmt.Sprintf(
			"%s %s cannot be given here: this is part of %s, which acts as nobody else; leave %[1]s out", flag, name, runName(in))}
	}
	return in.Agent, nil
}

// Speaker is [Caller.Actor] for what agents and persons say to each other: a run without an agent says nothing.
func (c Caller) Speaker(flag, name string) (string, error) {
	who, err := c.Actor(flag, name)
	if err == nil && who == "" {
		if in := c.Run(); in != nil {
			err = &clarify.Error{Kind: clarify.ScopeViolation, Message: fmt.Sprintf(
				"this is part of %s, which has no agent: only an agent or a person can take part", runName(in))}
		}
	}
	return who, err
}

// Worker is [Caller.Actor] for --agent of who takes up work. Outside of a run, and in one without an agent, the flag says it.
func (c Caller) Worker(agent string) (string, error) {
	if in := c.Run(); in == nil || in.Agent == "" {
		return agent, nil
	}
	return c.Actor("--agent", agent)
}

// RunKey is the key of the run of a node that this process is part of; "" where it is part of none.
func (c Caller) RunKey() string {
	if in := c.Run(); in != nil {
		if _, _, ok := schemas.SplitRunKey(in.Key); ok {
			return in.Key
		}
	}
	return ""
}

// Login is who sits at the terminal, as far as the system tells.
func (c Caller) Login() string {
	for _, name := range []string{"GITHUB_ACTOR", "USER", "USERNAME"} {
		if v := c.Getenv(name); v != "" {
			return v
		}
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// PeopleOnlyError refuses to a run what only people may do.
type PeopleOnlyError struct{ text string }

func (e *PeopleOnlyError) Error() string { return e.text }

// BadRequest marks an error about what was asked for.
func (e *PeopleOnlyError) BadRequest() {}
