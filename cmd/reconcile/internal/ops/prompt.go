package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
)

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
	Tokens int          `json:"tokens"`
	Limit  int          `json:"limit"`
	Parts  []PromptPart `json:"parts"`
}

// PromptPart is one part of a prompt.
type PromptPart struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
	Text   string `json:"text"`
}

// Prompt computes the prompt that a node's agent would get if the node ran now. It changes nothing: what it recalls of the
// memory does not count as recalled.
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
		r.Parts = append(r.Parts, PromptPart{Name: p.Name, Tokens: n, Text: p.Text})
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
