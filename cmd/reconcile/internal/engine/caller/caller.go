// Package caller identifies the caller of this process: a person, or a run of an agent. Some operations are only for
// people, and a run acts as its own agent.
package caller

import (
	"cmp"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
)

// Caller gives access to the environment of this process and of its ancestors.
type Caller struct {
	Dir      string                                  // of the tree
	Getenv   func(string) string                     // the environment of this process
	Ancestry func(yield func(environ []string) bool) // the environments of its ancestors; nil: ancestors are ignored
	// Inherits reports whether this process has inherited the lease of a run of the tree in dir; nil: that is not examined.
	Inherits func(dir string) bool
}

// AnyRun returns the run of any tree that the caller is inside of, by the marks in its own environment or its ancestry;
// nil for a person.
func (c Caller) AnyRun() *runner.Inside {
	in := runner.InsideRun(c.Dir, func(yield func([]string) bool) {
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
	if in == nil && c.Inherits != nil && c.Inherits(c.Dir) {
		return &runner.Inside{Unproved: true}
	}
	return in
}

// Run returns the run of this tree that the caller is inside of, or nil: a run elsewhere does not count.
func (c Caller) Run() *runner.Inside {
	if in := c.AnyRun(); in != nil && !in.Elsewhere {
		return in
	}
	return nil
}

// InRun reports whether the caller is in a run of the same tree, which then does the work.
func (c Caller) InRun() bool { return c.Run() != nil }

// OnlyPeople returns the NotInRun error if the caller is in a run of this tree. what names the operation that only
// people may do.
func (c Caller) OnlyPeople(what string) error {
	if in := c.Run(); in != nil {
		return NotInRun(what, in)
	}
	return nil
}

// NotInRun is the error for a run that attempts an operation reserved for people.
func NotInRun(what string, in *runner.Inside) error {
	return &peopleOnlyError{fmt.Sprintf("only a person may %s, and this is part of %s: do it outside of a run", what, runName(in))}
}

// runName names a run in messages.
func runName(in *runner.Inside) string {
	name := "a run"
	if in.Unproved {
		return "a run that it cannot prove to be (clear no variables, and name no other run)"
	}
	if in.Key != "" {
		name = "the run " + in.Key
	}
	if in.Agent != "" {
		name += " of agent " + in.Agent
	}
	return name
}

// Acting is who acts. Proof is one of the schemas.Proof constants.
type Acting struct{ Name, Proof string }

// Actor returns the acting agent or person: in a run its agent, otherwise the name from the flag, the agent of the environment, or
// the login name. The name is "" in a run without an agent. A run cannot act under another name.
func (c Caller) Actor(flag, name string) (Acting, error) {
	in := c.Run()
	switch {
	case in == nil:
		who := Acting{cmp.Or(name, c.Getenv("RECONCILE_AGENT"), c.Login()), schemas.ProofClaimed}
		if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil && u.Username == who.Name {
			who.Proof = schemas.ProofAccount
		}
		return who, nil
	case name != "" && name != in.Agent:
		return Acting{}, &clarify.Error{Kind: clarify.ScopeViolation, Message: fmt.Sprintf(
			"%s %s cannot be given here: this is part of %s, which acts as nobody else; leave %[1]s out", flag, name, runName(in))}
	}
	return Acting{in.Agent, schemas.ProofRun}, nil
}

// Speaker returns the agent or person who speaks in a clarification, as [Caller.Actor] does: a run without an agent
// cannot take part.
func (c Caller) Speaker(flag, name string) (Acting, error) {
	who, err := c.Actor(flag, name)
	if err == nil && who.Name == "" {
		if in := c.Run(); in != nil {
			err = &clarify.Error{Kind: clarify.ScopeViolation, Message: fmt.Sprintf(
				"this is part of %s, which has no agent: only an agent or a person can take part", runName(in))}
		}
	}
	return who, err
}

// Worker is like [Caller.Actor] for the --agent flag of commands that claim work. Outside of a run, and in a run
// without an agent, the flag decides.
func (c Caller) Worker(agent string) (string, error) {
	if in := c.Run(); in == nil || in.Agent == "" {
		return agent, nil
	}
	who, err := c.Actor("--agent", agent)
	return who.Name, err
}

// RunKey returns the key of the node's run that the caller is part of, or "".
func (c Caller) RunKey() string {
	if in := c.Run(); in != nil {
		if _, _, ok := schemas.SplitRunKey(in.Key); ok {
			return in.Key
		}
	}
	return ""
}

// Login returns the login name of the user, if the system knows it.
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

// peopleOnlyError says that a run attempted an operation reserved for people.
type peopleOnlyError struct{ text string }

func (e *peopleOnlyError) Error() string { return e.text }

// BadRequest marks an error of the request.
func (e *peopleOnlyError) BadRequest() {}
