package agents

import (
	"cmp"
	"maps"
	"slices"

	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Task is the task that runs an agent: a turn at an HTTP endpoint or over the Agent Client Protocol where the runner says so, or where
// it is a profile that has such a program; else the command. It continues the session of the turn before; nil: it begins one.
func Task(a *schemas.AgentSpec, c *settle.Command, before *schemas.Turn) settle.Task {
	t := &settle.AgentTurn{Command: *c, Model: a.Model, Servers: servers(a)}
	switch {
	case a.Runner.ACP != nil:
		t.Mode = a.Runner.ACP.Mode
	case a.Runner.HTTP != nil:
		h := a.Runner.HTTP
		return &settle.HTTPTurn{Command: *c, Wire: h.Wire, Model: cmp.Or(h.Model, a.Model), Tools: h.Tools, MaxRequests: h.MaxRequests,
			MaxTokens: h.MaxTokens}
	case c.Profile != nil && profiles.OverACP(c.Profile, &a.Runner):
		t.Argv, t.PromptArg, t.Profile, t.Mode = c.Profile.ACP, 0, nil, c.Profile.ACPMode
		if len(t.Servers) == 0 {
			t.Otherwise = c
		}
	default:
		return c
	}
	if before != nil && before.Runner == schemas.RunnerACP {
		t.Resume, t.Resumes = before.SessionID, before
	}
	return t
}

// servers are those that the agent starts.
func servers(a *schemas.AgentSpec) (all []settle.Server) {
	for _, name := range slices.Sorted(maps.Keys(a.Runner.MCPServers)) {
		s := a.Runner.MCPServers[name]
		texts, from := settle.Variables(s.Env)
		all = append(all, settle.Server{Name: name, Argv: s.Argv, Env: texts, EnvFrom: from})
	}
	return all
}

// CutOff reports whether a run failed since its agent was cut off, so that its session can go on; run may be nil.
func CutOff(run *schemas.Run) bool {
	if run == nil || run.Turn == nil || run.Turn.Failure == nil || run.Turn.Runner != schemas.RunnerACP {
		return false
	}
	class := run.Turn.Failure.Class
	return class == schemas.FailureConnection || class == schemas.FailureLimit || class == schemas.FailureBudget
}

// Resume makes a command of an agent continue the session of an earlier turn, if its profile can; before may be nil.
func Resume(t *settle.Command, before *schemas.Turn) {
	if before != nil && before.Runner == schemas.RunnerCommand && t.Continue != nil && t.ProfileName == before.Profile {
		t.Resumes = before
	}
}

// Command is what the spec of an agent of a name contributes to its commands: program, limits, how the output is read, and how its
// requests are metered. The second result is the agent's environment; callers may change it.
func Command(settings *schemas.SettingsSpec, name string, a *schemas.AgentSpec) (settle.Command, schemas.Env) {
	c := a.Runner.AsCommand()
	if c == nil {
		return settle.Command{}, schemas.Env{}
	}
	t := settle.Command{Argv: c.Argv, Output: c.Output, StdinFormat: c.Stdin, InstructionsFile: a.Instructions.File,
		Metering: metering(settings, name, a)}
	metered := t.Metering != nil
	if c.Timeout != nil {
		t.Timeout = c.Timeout.Std()
	}
	if c.Silence != nil {
		t.Silence = c.Silence.Std()
	}
	env := schemas.Env{}
	if p, ok := profiles.Find(settings.Profiles, c.Profile); ok && c.Profile != "" {
		t.Profile, t.ProfileName, t.PassEnv = &p, c.Profile, p.PassEnv
		t.Silence = profiles.Silence(&p, c)
		t.Argv, t.PromptArg = profiles.Args(&p, c, a.Model, "", metered)
		if len(p.Resume) > 0 {
			t.Continue = new(settle.Continuation)
			t.Continue.Argv, t.Continue.PromptArg = profiles.Args(&p, c, a.Model, schemas.ArgValue, metered)
		}
		if p.ModelVar != "" && a.Model != "" {
			env[p.ModelVar] = schemas.EnvValue{Text: a.Model}
		}
		maps.Copy(env, schemas.EnvOf(p.Env))
	}
	maps.Copy(env, c.Env)
	return t, env
}
