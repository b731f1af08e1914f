package agents

import (
	"strings"

	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// metering says how the requests of an agent to its model are metered; nil where it uses its own login.
func metering(settings *schemas.SettingsSpec, name string, a *schemas.AgentSpec) *settle.Metering {
	r, in := &a.Runner, schemas.AgentKind.Ref(name).String()
	if h := r.HTTP; h != nil {
		return &settle.Metering{Upstream: h.BaseURL, Key: h.KeyFrom, In: in, Setting: "runner.http.baseURL"}
	}
	c := r.AsCommand()
	if r.KeyFrom == nil || c == nil || c.Profile == "" {
		return nil
	}
	p, ok := profiles.Find(settings.Profiles, c.Profile)
	if !ok {
		return nil
	}
	m := &settle.Metering{Upstream: p.Proxy.Upstream, Key: r.KeyFrom, In: in, Setting: "profiles." + c.Profile + ".proxy.upstream"}
	env := map[string]string{}
	if p.BaseURLVar != "" {
		env[p.BaseURLVar] = schemas.ArgURL
	}
	if p.KeyVar != "" {
		env[p.KeyVar] = schemas.ArgToken
	}
	for k, v := range p.Proxy.Env {
		if a.Model != "" || !strings.Contains(v, schemas.ArgValue) {
			env[k] = strings.ReplaceAll(v, schemas.ArgValue, a.Model)
		}
	}
	m.Env = settle.Environ(env)
	return m
}

// Destinations are the addresses to which the agents of a tree send keys and prompts by way of the metering proxy, by the names
// of the agents.
func Destinations(t *state.Tree) (out []schemas.Destination) {
	for _, e := range t.Entries(schemas.AgentKind.Name) {
		if spec := schemas.SpecAs[*schemas.AgentSpec](e.Object); spec != nil {
			if m := metering(t.Settings(), e.Name, spec); m != nil && m.Upstream != "" {
				out = append(out, m.Destination())
			}
		}
	}
	return out
}
