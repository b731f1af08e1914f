package agents

import (
	"maps"

	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Command is what an agent's spec contributes to its commands: program, limits, and how the output is read. The second
// result is the agent's environment; callers may change it.
func Command(settings *schemas.SettingsSpec, a *schemas.AgentSpec) (settle.Command, map[string]string) {
	c := a.Runner.AsCommand()
	if c == nil {
		return settle.Command{}, map[string]string{}
	}
	t := settle.Command{Argv: c.Argv, Output: c.Output, StdinFormat: c.Stdin}
	if c.Timeout != nil {
		t.Timeout = c.Timeout.Std()
	}
	if c.Silence != nil {
		t.Silence = c.Silence.Std()
	}
	env := map[string]string{}
	if p, ok := profiles.Find(settings.Profiles, c.Profile); ok && c.Profile != "" {
		t.Profile, t.ProfileName, t.PassEnv = &p, c.Profile, p.PassEnv
		t.Silence = profiles.Silence(&p, c)
		t.Argv, t.PromptArg = profiles.Args(&p, c, a.Model, "")
		maps.Copy(env, p.Env)
	}
	maps.Copy(env, c.Env)
	return t, env
}
