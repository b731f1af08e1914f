package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// researchNode is the node in which the knowledge agent answers.
const researchNode = "research"

// Research is what a knowledge agent was asked about the tools of a project.
type Research struct {
	Agent    string         `json:"agent,omitempty"`
	DAG      string         `json:"dag,omitempty"`      // in which it was asked
	Accepted []tools.Advice `json:"accepted,omitempty"` // written as inferred preferences
	Refused  []string       `json:"refused,omitempty"`  // why others do not count
	Why      string         `json:"why,omitempty"`      // why it was not asked, or its answer does not count
}

// AskTools asks a knowledge agent, one with the role academic, about the questions that a discovery leaves open, in a DAG of its own with the time
// limit of the request, and writes its recommendations as inferred preferences. Then it discovers the tools again: a person
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
	research := &Research{}
	if err := env.research(ctx, q, r.Undecided, research); err != nil {
		return nil, err
	}
	if len(research.Accepted) > 0 {
		if r, err = Tools(ctx, env, q); err != nil {
			return nil, err
		}
	}
	r.Research = research
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
	switch r.Agent = academic(o.tree); {
	case r.Agent == "":
		r.Why = "the tree has no agent with the role " + schemas.RoleAcademic
		return nil
	case session == "":
		r.Why = "no session is active"
		return nil
	}
	at := schemas.NewTime(e.Tree.Now())
	limit := schemas.Duration(q.Timeout)
	spec := &schemas.DAGSpec{Session: session, Description: "Ask which tools the project should use", Nodes: []schemas.Node{{Name: researchNode, Agent: r.Agent,
		Prompt: tools.ResearchPrompt(all), Timeout: &limit, Retry: &schemas.Retry{Limit: 0}}}}
	r.DAG = specs.FitName("tools-"+at.UTC().Format("20060102t150405z"), "-"+specs.NameDigest(3, spec.Nodes[0].Prompt, at.UnixMilli()))
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
	st := state.StatusOf[schemas.DAGStatus](t.Entry(schemas.DAGKind.Ref(r.DAG)))
	n := st.Nodes.Of(researchNode)
	if n.State != schemas.NodeSucceeded {
		r.Why = fmt.Sprintf("it gave no answer within %s: it is %s", q.Timeout, orPending(n.State))
		if n.Message != "" {
			r.Why += ", " + n.Message
		}
		if ran.Busy != nil {
			r.Why = "another run is at work: " + ran.Busy.Error()
		}
		return nil
	}
	answer := []byte(n.Result)
	if len(answer) == 0 || string(answer) == "null" {
		answer = []byte(n.Output)
	}
	var text string
	if json.Unmarshal(answer, &text) == nil {
		answer = []byte(text) // an agent whose result is a text
	}
	r.Accepted, r.Refused, err = tools.ReadAdvice(answer, all)
	if err != nil {
		r.Why = "its answer does not count: " + err.Error()
		return nil
	}
	for _, a := range r.Accepted {
		spec := &schemas.PreferenceSpec{Domain: schemas.PreferenceTools, Key: a.Language + "/" + string(a.Category), Value: a.Tool, Confidence: a.Confidence,
			Source: schemas.PreferenceInferred, Reason: e.redact("the reason", a.Why), By: r.Agent, Proof: schemas.ProofRun, At: at}
		where, err := specs.Write(s, t, schemas.PreferenceKind, preferenceName(a.Category, spec), spec)
		if err != nil {
			return err
		}
		e.note("wrote %s", where)
	}
	if len(r.Accepted) > 0 {
		_, err = e.applyByRun(ctx, t, false)
	}
	return err
}

func orPending(state string) string {
	if state == "" {
		return schemas.NodePending
	}
	return state
}

// academic is the knowledge agent of a tree, the first by name that is a program; "" for none.
func academic(t *state.Tree) string {
	for _, e := range t.Entries(schemas.AgentKind.Name) {
		if spec := state.SpecOf[*schemas.AgentSpec](e); spec != nil && spec.Role == schemas.RoleAcademic && !agents.IsPerson(t, e.Name) {
			return e.Name
		}
	}
	return ""
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
