package ops

import (
	"context"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers/research"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Research is what a knowledge agent was asked about the tools of a project.
type Research struct {
	Agent    string         `json:"agent,omitempty"`
	DAG      string         `json:"dag,omitempty"`      // in which it was asked
	Accepted []tools.Advice `json:"accepted,omitempty"` // written as inferred preferences
	Refused  []string       `json:"refused,omitempty"`  // why others do not count
	Why      string         `json:"why,omitempty"`      // why it was not asked, or its answer does not count
}

// AskTools asks a knowledge agent, one with the role academic, about the questions that a discovery leaves open, in a DAG of its own with the time
// limit of the request. Its recommendations become inferred preferences. Then it discovers the tools again: a person
// decides the remaining questions. Only people may, since it starts an agent.
func AskTools(ctx context.Context, env Env, q ToolsRequest) (r *ToolsResult, err error) {
	defer func() { err = typed(err) }()
	if err := env.authorize("AskTools"); err != nil {
		return nil, err
	}
	r, err = Tools(ctx, env, q)
	if err != nil || len(r.Undecided) == 0 {
		return r, err
	}
	asked := &Research{}
	if err := env.research(ctx, q, r.Undecided, asked); err != nil {
		return nil, err
	}
	if len(asked.Accepted) > 0 {
		if r, err = Tools(ctx, env, q); err != nil {
			return nil, err
		}
	}
	r.Research = asked
	return r, nil
}

// research asks the knowledge agent of the tree.
func (e Env) research(ctx context.Context, q ToolsRequest, all []tools.Open, r *Research) error {
	if _, err := state.Find(e.Tree.Dir, e.kinds()); err != nil {
		r.Why = "there is no tree of reconcile that has an agent"
		return nil
	}
	o, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer o.store.Close()
	session := activeSession(o.tree, e.Tree.Getenv("RECONCILE_SESSION"))
	switch r.Agent = research.Agent(o.tree); {
	case r.Agent == "":
		r.Why = "the tree has no agent with the role " + schemas.RoleAcademic
		return nil
	case session == "":
		r.Why = "no session is active"
		return nil
	}
	at := schemas.NewTime(e.Tree.Now())
	r.DAG = research.Name(session, fmt.Sprint(at.UnixMilli(), tools.ResearchPrompt(all)))
	spec := research.DAG(session, r.Agent, all, q.Timeout)
	if _, err := specs.Write(o.store, o.tree, schemas.DAGKind, r.DAG, spec); err != nil {
		return err
	}
	e.note("asking %s, at most %s", r.Agent, q.Timeout)
	ran, err := e.run(ctx, engine.Request{Only: &settle.Selection{DAG: r.DAG}})
	if err != nil {
		return err
	}
	s, t, err := e.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	dag := t.Entry(schemas.DAGKind.Ref(r.DAG))
	n := state.StatusOf[schemas.DAGStatus](dag).Nodes.Of(research.Node)
	switch r.Accepted, r.Refused, err = research.Answer(dag, all); {
	case n.State == schemas.NodeSucceeded && err != nil:
		r.Why = err.Error()
	case ran.Busy != nil:
		r.Why = "another run is at work: " + ran.Busy.Error()
	case err != nil:
		r.Why = fmt.Sprintf("it gave no answer within %s: it is %s", q.Timeout, orPending(n.State))
		if n.Message != "" {
			r.Why += ", " + n.Message
		}
	}
	return nil
}

func orPending(state string) string {
	if state == "" {
		return schemas.NodePending
	}
	return state
}

// activeSession is the preferred session if it is active, or else the first one that is; "" for none.
func activeSession(t *state.Tree, preferred string) string {
	var active []string
	for _, e := range t.Entries(schemas.SessionKind.Name) {
		if spec := state.SpecOf[*schemas.SessionSpec](e); spec != nil && spec.Phase == schemas.SessionActive {
			active = append(active, e.Name)
		}
	}
	switch {
	case slices.Contains(active, preferred):
		return preferred
	case len(active) > 0:
		return active[0]
	}
	return ""
}
