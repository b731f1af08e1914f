package main

import (
	"cmp"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
)

// caller is the run that this process is part of; nil for a person.
func (a *app) caller() *runner.Inside {
	return runner.InsideRun(a.global.dir, func(yield func([]string) bool) {
		var own []string
		for _, name := range runner.MarkVariables {
			if v := a.getenv(name); v != "" {
				own = append(own, name+"="+v)
			}
		}
		if yield(own) && a.ancestry != nil {
			a.ancestry(yield)
		}
	})
}

// runHere is the run of this tree that this process is part of; nil where it is part of none.
func (a *app) runHere() *runner.Inside {
	if in := a.caller(); in != nil && !in.Elsewhere {
		return in
	}
	return nil
}

// insideRun reports whether this process is part of a run of the same tree: then that run does the work.
func (a *app) insideRun() bool { return a.runHere() != nil }

// onlyPeople refuses inside of a run of this tree what only people may do.
func (a *app) onlyPeople(what string) error {
	if in := a.runHere(); in != nil {
		return notInRun(what, in)
	}
	return nil
}

func notInRun(what string, in *runner.Inside) error {
	return badUsage("only a person may %s, and this is part of %s: do it outside of a run", what, runName(in))
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

// actor is who acts: in a run its agent, "" where it has none, and else whom the flag names, the agent of the environment,
// or who is logged in. A run cannot act as anybody else.
func (a *app) actor(flag, name string) (string, error) {
	in := a.runHere()
	switch {
	case in == nil:
		return cmp.Or(name, a.getenv("RECONCILE_AGENT"), a.login()), nil
	case name != "" && name != in.Agent:
		return "", &clarify.Error{Kind: clarify.ScopeViolation, Message: fmt.Sprintf(
			"%s %s cannot be given here: this is part of %s, which acts as nobody else; leave %[1]s out", flag, name, runName(in))}
	}
	return in.Agent, nil
}

// speaker is [app.actor] for what agents and persons say to each other: a run without an agent says nothing.
func (a *app) speaker(flag, name string) (string, error) {
	who, err := a.actor(flag, name)
	if err == nil && who == "" {
		if in := a.runHere(); in != nil {
			err = &clarify.Error{Kind: clarify.ScopeViolation, Message: fmt.Sprintf(
				"this is part of %s, which has no agent: only an agent or a person can take part", runName(in))}
		}
	}
	return who, err
}

// worker is [app.actor] for --agent of who takes up work. Outside of a run, and in one without an agent, the flag says it.
func (a *app) worker(agent string) (string, error) {
	if in := a.runHere(); in == nil || in.Agent == "" {
		return agent, nil
	}
	return a.actor("--agent", agent)
}

// runKey is the key of the run of a node that this process is part of; "" where it is part of none.
func (a *app) runKey() string {
	if in := a.runHere(); in != nil {
		if _, _, ok := schemas.SplitRunKey(in.Key); ok {
			return in.Key
		}
	}
	return ""
}
