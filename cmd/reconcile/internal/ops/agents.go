package ops

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// AgentsResult is the current activity of the agents.
type AgentsResult struct {
	File   map[string]json.RawMessage // the content of state/agent-status.json
	Agents []Agent                    // by name, including agents that no run has seen yet
}

// Agent is the activity of one agent.
type Agent struct {
	Name string
	schemas.AgentActivity
}

// Agents returns the agents by name with their activity, from the content of state/agent-status.json and the statuses
// in the tree, as the next run would write it. It runs nothing. An unreadable file is reported, and left to the next
// run.
func Agents(ctx context.Context, env Env) (r AgentsResult, err error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return r, typed(err)
	}
	defer s.Close()
	where := path.Join(t.Settings().Folders.State, "agent-status.json")
	old, err := regular.Read(s.Root(), where)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, typed(err)
	}
	data, err := agents.FoldStatus(old, t)
	if errors.Is(err, agents.ErrNoAgentStatus) {
		env.note("%s: %v; the next run writes it anew", where, err)
		data, err = agents.FoldStatus(nil, t)
	}
	if err == nil {
		err = json.Unmarshal(data, &r.File)
	}
	if err != nil {
		return r, typed(err)
	}
	names := slices.Collect(maps.Keys(r.File))
	for _, e := range t.Entries(schemas.AgentKind.Name) {
		if _, ok := r.File[e.Name]; !ok && !e.Gone() {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		agent := Agent{Name: name}
		if raw, ok := r.File[name]; ok {
			_ = json.Unmarshal(raw, &agent.AgentActivity) // fields of another program with a wrong type stay empty
		}
		r.Agents = append(r.Agents, agent)
	}
	return r, nil
}

func isAgent(t *state.Tree, name string) bool {
	e := t.Entry(agentRef(name))
	return e != nil && !e.Gone()
}
