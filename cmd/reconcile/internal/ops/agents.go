package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/budget"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// AgentsResult is the current activity of the agents.
type AgentsResult struct {
	File   map[string]json.RawMessage // the content of state/agent-status.json
	Agents []schemas.NamedActivity    // by name, including agents that no run has seen yet
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
		agent := schemas.NamedActivity{Name: name}
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

// PromptRequest requests what the agent of a node would be told now.
type PromptRequest struct {
	DAG  string // kind/name
	Node string
}

// PromptResult is a prompt by parts.
type PromptResult struct {
	DAG   string `json:"dag"`
	Node  string `json:"node"`
	Agent string `json:"agent"`
	// Tokens is the size of the whole; Limit is that of the prompt without memory and artifacts.
	Tokens int                 `json:"tokens"`
	Limit  int                 `json:"limit"`
	Parts  []agentio.SizedPart `json:"parts"`
}

// Prompt computes the prompt that a node's agent would get if the node ran now. It changes nothing: observations in it do not count as recalled.
func Prompt(ctx context.Context, env Env, q PromptRequest) (PromptResult, error) {
	if q.DAG == "" || q.Node == "" {
		return PromptResult{}, badRequest("reconcile prompt needs a DAG and a node; for example: reconcile prompt dag/checks review")
	}
	s, t, err := env.load(ctx)
	if err != nil {
		return PromptResult{}, typed(err)
	}
	defer s.Close()
	e, err := find(t, q.DAG)
	if err != nil {
		return PromptResult{}, typed(err)
	}
	work, command, err := env.agentWork(t, e, q.Node)
	if err != nil {
		return PromptResult{}, typed(err)
	}
	parts, err := env.partsOf(ctx, s, work, command)
	if err != nil {
		return PromptResult{}, typed(err)
	}
	r := PromptResult{DAG: e.Name, Node: q.Node, Agent: work.Agent, Limit: promptLimit(t, work.Agent)}
	for _, p := range parts {
		n := tokens.Count(p.Text)
		r.Tokens += n
		r.Parts = append(r.Parts, agentio.SizedPart{Name: p.Name, Tokens: n, Text: p.Text})
	}
	return r, nil
}

// agentWork returns the task of a node that an agent's program works on.
func (e Env) agentWork(t *state.Tree, owner *state.Entry, node string) (*agentio.Work, *settle.Command, error) {
	dag := schemas.SpecAs[*schemas.DAGSpec](owner.Object)
	if dag == nil {
		return nil, nil, badRequest("%s is no DAG, or its spec is broken: only nodes of a DAG have a prompt", owner.Ref)
	}
	i := slices.IndexFunc(dag.Nodes, func(n schemas.Node) bool { return n.Name == node })
	switch {
	case i < 0:
		names := make([]string, len(dag.Nodes))
		for k := range dag.Nodes {
			names[k] = dag.Nodes[k].Name
		}
		return nil, nil, badRequest("%s has no node %q%s", owner.Ref, node, schemas.DidYouMean(node, names))
	case dag.Nodes[i].Agent == "":
		return nil, nil, badRequest("node %q of %s runs a command; only nodes with an agent have a prompt", node, owner.Ref)
	}
	now := e.Tree.Now()
	w, c, ok := dags.Prompt(settle.In{Entry: owner, Tree: t, World: settle.NewWorld(t, now, nil), Now: now}, node)
	if !ok {
		return nil, nil, fmt.Errorf("no program works on node %q of %s: its agent is a person or not usable; "+
			"reconcile describe %s says why", node, owner.Ref, owner.Ref)
	}
	return w, c, nil
}

// partsOf returns the parts of a prompt in their order, with those that are added when the program starts.
func (e Env) partsOf(ctx context.Context, s *state.Store, work *agentio.Work, c *settle.Command) (parts []agentio.Part, err error) {
	run, err := runner.New(runner.Options{Root: e.Tree.Dir, Now: e.Tree.Now, Redact: secrets.RedactBytes})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, run.Close(ctx)) }()
	before, after, err := run.Preview(c)
	if err == nil {
		changes, changesErr := e.changesOf(ctx, c)
		after, err = append(after, changes...), changesErr
	}
	if err != nil || c.Recall == nil {
		return slices.Concat(before, work.Parts(), after), err
	}
	m := e.memory(s)
	found, err := m.Recall(ctx, memstore.Request{Agent: c.Recall.Agent, Issue: c.Recall.Issue, Context: c.Recall.Context, Dry: true})
	if err = errors.Join(err, m.Close()); err != nil && !errors.Is(err, memstore.ErrDisabled) {
		return nil, err
	}
	if text := agentio.Remind("", "", found.Text); len(found.IDs) > 0 {
		after = append(after, agentio.Part{Name: agentio.PartMemory, Text: strings.TrimLeft(text, "\n")})
	}
	return slices.Concat(before, work.Parts(), after), nil
}

// changesOf is the part of a prompt with what sessions before changed in the workspace; nil without any.
func (e Env) changesOf(ctx context.Context, c *settle.Command) ([]agentio.Part, error) {
	if !c.Continues || c.Workspace == nil {
		return nil, nil
	}
	m, err := e.workspaces(ctx)
	if err != nil {
		return nil, err
	}
	diff, err := m.DiffOf(ctx, c.Workspace.Attempts)
	text := strings.TrimPrefix(agentio.Changed("", "", string(secrets.RedactBytes(diff))), "\n")
	if err != nil || text == "" {
		return nil, err
	}
	return []agentio.Part{{Name: agentio.PartChanges, Text: text}}, nil
}

func promptLimit(t *state.Tree, agent string) int {
	if spec := schemas.SpecAs[*schemas.AgentSpec](t.Entry(agentRef(agent)).Object); spec != nil {
		return spec.PromptTokens
	}
	return 0
}

// BudgetRequest requests the size of an agent's context.
type BudgetRequest struct {
	Agent        string
	Issue        int   // the issue that memory is recalled for; 0: none
	Conversation *Text // nil: the log of the agent's last run
	FailOn       int   // percentage of the window from which on the result is an error; 0: never
}

// Budget counts the tokens of an agent's context against its window, and fails at the share of a BudgetRequest. The
// result is valid even with an error, if it names an agent.
func Budget(ctx context.Context, env Env, q BudgetRequest) (b render.Budget, err error) {
	switch {
	case q.Agent == "":
		return b, badRequest("reconcile budget needs --agent; for example: reconcile budget --agent engineer")
	case schemas.CheckName(q.Agent) != nil:
		return b, badField("agent", " %q: %v", q.Agent, schemas.CheckName(q.Agent))
	case q.FailOn < 0 || q.FailOn > 100:
		return b, badField("fail-on", " %d: write a share of the window in percent, 1 to 100", q.FailOn)
	}
	s, t, err := env.load(ctx)
	if err != nil {
		return b, typed(err)
	}
	defer s.Close()
	if e := t.Entry(agentRef(q.Agent)); e != nil && e.Broken() { // a broken spec may not have its intended content
		var all []error
		for _, p := range e.Problems {
			all = append(all, &Error{Code: Invalid, Err: errors.New(p.Error())})
		}
		return b, errors.Join(append(all, &Error{Code: Invalid,
			Err: fmt.Errorf("%s cannot be used as it is, so that nothing can be said of its context", e.Ref)})...)
	}
	m := env.memory(s)
	b, err = budget.Count(ctx, s, t, m, budget.Request{Agent: q.Agent, Issue: q.Issue, Conversation: (*budget.Text)(q.Conversation)})
	if errors.Is(err, budget.ErrNoAgent) {
		err = notFound(t, agentRef(q.Agent))
	}
	if err = errors.Join(err, m.Close()); err != nil {
		return render.Budget{}, typed(err)
	}
	if q.FailOn > 0 && b.Percent >= float64(q.FailOn) {
		err = fmt.Errorf("the context of %s is filled to %.1f %%, and --fail-on %d was asked for: shorten what it is "+
			"given, or give the agent a larger contextWindow", q.Agent, b.Percent, q.FailOn)
	}
	return b, typed(err)
}
