// Package research has a knowledge agent asked which tools a project should use, where nothing in the project says it, and takes what it
// recommends as inferred preferences.
package research

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/preferences"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
)

// Node is the node of a DAG in which the knowledge agent answers.
const Node = "research"

// timeout is how long a knowledge agent has for its answer to the questions of a verification.
const timeout = 30 * time.Second

// Agent is the knowledge agent of a tree: the first by name with the role academic that is a program; "" for none.
func Agent(t *state.Tree) string {
	for _, e := range t.Entries(schemas.AgentKind.Name) {
		if a := state.SpecOf[*schemas.AgentSpec](e); a != nil && a.Role == schemas.RoleAcademic && a.Runner.AsCommand() != nil {
			return e.Name
		}
	}
	return ""
}

// DAG asks an agent the questions, once, within the limit.
func DAG(session, agent string, all []tools.Open, limit time.Duration) *schemas.DAGSpec {
	timeout := schemas.Duration(limit)
	return &schemas.DAGSpec{Session: session, Description: "Ask which tools the project should use", Nodes: []schemas.Node{{Name: Node, Agent: agent,
		Priority: schemas.High, Prompt: tools.ResearchPrompt(all), Timeout: &timeout, Optional: true, Retry: &schemas.Retry{Limit: 0}}}}
}

// IsDAG reports whether a DAG may be one that asks, by its name.
func IsDAG(name string) bool { return strings.HasPrefix(name, preferences.Asking) }

// Name is the name of a DAG that asks, or of a preference that follows; what tells it from others is its last part.
func Name(of, what string) string {
	digest := strings.TrimPrefix(keys.Digest([]byte(of+"\n"+what)), "sha256:")[:8]
	const longest = 63 - len(preferences.Asking) - 1 - 8
	return preferences.Asking + strings.TrimRight(of[:min(len(of), longest)], "-._") + "-" + digest
}

// groups are the questions of a verification by the DAG that asks them in a session: one for each language, for the inspector or the tester.
func groups(session string, all []schemas.ToolQuestion) map[string][]schemas.ToolQuestion {
	out := map[string][]schemas.ToolQuestion{}
	for _, q := range all {
		name := Name(session, fmt.Sprint(q.Language, q.Category == string(checks.TestFramework)))
		out[name] = append(out[name], q)
	}
	return out
}

// DAGs are the DAGs that the tree lacks to have its knowledge agent asked the questions of a verification in a session, by name.
func DAGs(t *state.Tree, session string, all []schemas.ToolQuestion) map[string]*schemas.DAGSpec {
	agent := Agent(t)
	if agent == "" || len(all) == 0 {
		return nil
	}
	out := map[string]*schemas.DAGSpec{}
	for name, questions := range groups(session, all) {
		if e := t.Entry(schemas.DAGKind.Ref(name)); e == nil || e.Gone() {
			open := make([]tools.Open, len(questions))
			for i, q := range questions {
				open[i] = tools.Reopen(q)
			}
			out[name] = DAG(session, agent, open, timeout)
		}
	}
	return out
}

// State is how far the questions of a verification are.
type State struct {
	// Asks names the DAG that asks them, and its agent; "" where none will, or all have answered.
	Asks string
	// Answered says that a preference by now decides one of them: another verification has a tool for it.
	Answered bool
}

// Of finds the state of the questions of a verification in a session.
func Of(t *state.Tree, session string, all []schemas.ToolQuestion) (s State) {
	if agent := Agent(t); agent != "" {
		of := groups(session, all)
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if asks(t, t.Entry(schemas.DAGKind.Ref(name))) {
				s.Asks = fmt.Sprintf("dag/%s, in which agent/%s is asked which tools to use", name, agent)
				break
			}
		}
	}
	held := preferences.Holding(preferences.Of(t), schemas.PreferenceTools, session)
	for _, q := range all {
		for _, h := range held {
			if h.Key == q.Key() && h.Value != q.Chosen && slices.Contains(tools.For(q.Language, checks.Category(q.Category)), h.Value) {
				s.Answered = true
			}
		}
	}
	return s
}

// asks reports whether a DAG has yet to ask, or what it recommends has yet to be written.
func asks(t *state.Tree, dag *state.Entry) bool {
	if dag == nil || dag.Gone() {
		return true
	}
	switch dag.Brief().Phase {
	case "", schemas.DAGPending, schemas.DAGRunning:
		return true
	}
	for name := range Preferences(t, dag) {
		if t.Entry(schemas.PreferenceKind.Ref(name)) == nil {
			return true
		}
	}
	return false
}

// Preferences are the recommendations of a DAG that have led to no preference yet, as inferred preferences by name: nil for one that asks nothing, or
// has no usable answer.
func Preferences(t *state.Tree, dag *state.Entry) map[string]*schemas.PreferenceSpec {
	out := recommended(t, dag)
	if st := state.StatusOf[schemas.DAGStatus](dag); st != nil {
		for _, name := range st.Advised {
			delete(out, name)
		}
	}
	return out
}

// Advised names the preferences that the recommendations of a DAG have led to, also where a person has removed them since; sorted.
func Advised(t *state.Tree, dag *state.Entry) []string {
	st := state.StatusOf[schemas.DAGStatus](dag)
	if !IsDAG(dag.Name) || st == nil {
		return nil
	}
	out := st.Advised
	for name := range Preferences(t, dag) {
		if e := t.Entry(schemas.PreferenceKind.Ref(name)); e != nil && !e.Gone() {
			out = append(slices.Clip(out), name)
		}
	}
	return slices.Sorted(slices.Values(out))
}

// recommended are the recommendations of a DAG.
func recommended(t *state.Tree, dag *state.Entry) map[string]*schemas.PreferenceSpec {
	spec := state.SpecOf[*schemas.DAGSpec](dag)
	if !IsDAG(dag.Name) || dag.Gone() || spec == nil || len(spec.Nodes) != 1 || spec.Nodes[0].Name != Node {
		return nil
	}
	agent := state.SpecOf[*schemas.AgentSpec](t.Entry(schemas.AgentKind.Ref(spec.Nodes[0].Agent)))
	if agent == nil || agent.Role != schemas.RoleAcademic {
		return nil
	}
	accepted, _, err := Answer(dag, tools.QuestionsIn(spec.Nodes[0].Prompt))
	if err != nil || len(accepted) == 0 {
		return nil
	}
	out := map[string]*schemas.PreferenceSpec{}
	for _, a := range accepted {
		p := &schemas.PreferenceSpec{Domain: schemas.PreferenceTools, Key: a.Language + "/" + string(a.Category), Value: a.Tool, Confidence: a.Confidence,
			Source: schemas.PreferenceInferred, Reason: secrets.Redact(a.Why), By: spec.Nodes[0].Agent, Proof: schemas.ProofRun,
			At: state.StatusOf[schemas.DAGStatus](dag).FinishedAt}
		out[Name(strings.ReplaceAll(string(a.Category), "_", "-"), dag.Name+" "+p.Key)] = p
	}
	return out
}

// Answer is what the knowledge agent recommends in a DAG that asked the questions, and what of that does not count. The error says why
// there is no answer that counts.
func Answer(dag *state.Entry, questions []tools.Open) (accepted []tools.Advice, refused []string, err error) {
	n := state.StatusOf[schemas.DAGStatus](dag).Nodes.Of(Node)
	if n.State != schemas.NodeSucceeded {
		return nil, nil, errors.New("it gave no answer")
	}
	answer := []byte(n.Result)
	if len(answer) == 0 || string(answer) == "null" {
		answer = []byte(n.Output)
	}
	var text string
	if json.Unmarshal(answer, &text) == nil {
		answer = []byte(text) // an agent whose result is a text
	}
	if accepted, refused, err = tools.ReadAdvice(answer, questions); err != nil {
		err = fmt.Errorf("its answer does not count: %w", err)
	}
	return accepted, refused, err
}

// Choice is what a person can do about questions, in one line.
func Choice(all []schemas.ToolQuestion) string {
	q := all[0]
	names := tools.For(q.Language, checks.Category(q.Category))
	return fmt.Sprintf("nothing says which %s checks %s (%s)%s; reconcile tools choose %s %s TOOL has it verified again", strings.ReplaceAll(q.Category, "_", " "), q.Language,
		strings.Join(names[:min(len(names), 4)], ", "), schemas.AndOthers(len(all)-1), q.Category, q.Language)
}
