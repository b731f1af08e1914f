// Package permits decides about the permissions that agents ask for: by the rules in the tree's settings, and by the answers of
// people, which are actions.
package permits

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/commands"
	"reconcile.dev/reconcile/state"
)

// Request is what the agent of a node asks for.
type Request struct {
	DAG   schemas.Ref
	Node  string
	Agent string
	Asked *schemas.Permission
}

// Verdict is a decision. The zero value says that a person is to decide.
type Verdict struct {
	Decided bool
	Allow   bool
	By      string // a rule, or a person and their action
	Reason  string // of the person
	Once    string // the action, if its answer is for one request
}

// actionName begins the name of an action that decides.
const actionName = "action/"

// Decide decides about a request. used reports whether an answer for one request was given to another one.
func Decide(t *state.Tree, q Request, used func(action string) bool) Verdict {
	if v := Rule(t, q); v.Decided {
		return v
	}
	return Answered(t, q, used)
}

// Rule decides about a request by the settings.
func Rule(t *state.Tree, q Request) Verdict {
	if len(q.Asked.Argv) == 0 {
		return Verdict{}
	}
	rules := t.Settings().Commands.Rules(roleOf(t, q.Agent))
	switch v := rules.Decide(commandOf(q.Asked)); v.Decision {
	case commands.Block:
		return Verdict{Decided: true, By: "rule: " + v.Pattern}
	case commands.Allow:
		return Verdict{Decided: true, Allow: true, By: "rule"}
	}
	return Verdict{}
}

func commandOf(p *schemas.Permission) commands.Command {
	return commands.Command{Argv: p.Argv, Shell: p.Shell}
}

func roleOf(t *state.Tree, agent string) string {
	if spec := state.SpecOf[*schemas.AgentSpec](t.Entry(schemas.AgentKind.Ref(agent))); spec != nil {
		return spec.Role
	}
	return ""
}

// Role is the role whose list of patterns applies to an agent; "" if commands.allow does.
func Role(t *state.Tree, agent string) string {
	lists := t.Settings().Commands.Lists()
	if role := roleOf(t, agent); lists.HasRole(role) {
		return role
	}
	return ""
}

// Answer returns the answer to a request, for the given time.
func Answer(p *schemas.Permission, remember string) *schemas.PermissionAnswer {
	a := &schemas.PermissionAnswer{For: cmp.Or(remember, schemas.PermitOnce)}
	if len(p.Argv) > 0 {
		a.Command = commands.Line(commandOf(p))
	} else {
		a.Tool = p.Title
	}
	return a
}

// answers reports whether an answer is about a request.
func answers(a *schemas.PermissionAnswer, p *schemas.Permission) bool {
	want := Answer(p, "")
	return a != nil && a.Command == want.Command && a.Tool == want.Tool
}

// Answered decides by the latest answer of a person.
func Answered(t *state.Tree, q Request, used func(string) bool) (v Verdict) {
	var at schemas.Time
	for _, e := range t.Entries(schemas.ActionKind.Name) {
		spec := state.SpecOf[*schemas.ActionSpec](e)
		if spec == nil || e.Gone() || edited(e) || distrusted(e) || !answers(spec.Permission, q.Asked) || !concerns(t, spec, q) || spec.At.Before(at.Time) {
			continue
		}
		if spec.Permission.For != schemas.PermitSession && (used(e.Name) || expired(t, q, spec.At)) {
			continue
		}
		at = spec.At
		v = Verdict{Decided: true, Allow: spec.Verb == schemas.VerbApprove, By: actionName + e.Name, Reason: spec.Reason}
		if spec.Permission.For != schemas.PermitSession {
			v.Once = e.Name
		}
		if spec.By != "" {
			v.By += " by " + schemas.Acting(spec.By, spec.Proof)
		}
	}
	return v
}

// expired reports whether an answer for one request is over: an attempt of the node has ended since, with or without using it.
func expired(t *state.Tree, q Request, answered schemas.Time) bool {
	e := t.Entry(q.DAG)
	return e != nil && slices.ContainsFunc(e.Runs(), func(r *schemas.Run) bool {
		return r.Node == q.Node && r.FinishedAt.After(answered.Time) && endsAttempt(r)
	})
}

// endsAttempt reports whether a record is the end of an attempt: the next turn does not go on with its request.
func endsAttempt(r *schemas.Run) bool {
	switch r.Outcome {
	case schemas.OutcomeSucceeded:
		return r.IsWork()
	case schemas.OutcomeFailed, schemas.OutcomeTimedOut:
		return r.IsWork() && r.LimitedUntil().IsZero() && !r.StoppedByBudget()
	}
	return false
}

// distrusted reports whether a program may have written the action.
func distrusted(e *state.Entry) bool {
	st, _ := e.Status().(*schemas.ActionStatus)
	return st.Distrusted(e.Object.Digest) != ""
}

// edited reports whether an action was changed after it was applied: then it has no effect.
func edited(e *state.Entry) bool {
	b := e.Brief()
	return b.Phase == schemas.ActionApplied && b.ObservedDigest != e.Object.Digest
}

// concerns reports whether an action is about the node of a request, or for its session.
func concerns(t *state.Tree, a *schemas.ActionSpec, q Request) bool {
	to, err := a.TargetRef()
	if err != nil {
		return false
	}
	if to == q.DAG && a.Node == q.Node {
		return true
	}
	if a.Permission.For != schemas.PermitSession {
		return false
	}
	there, here := state.SpecOf[*schemas.DAGSpec](t.Entry(to)), state.SpecOf[*schemas.DAGSpec](t.Entry(q.DAG))
	return there != nil && here != nil && there.Session == here.Session && agentOf(there, a.Node) == q.Agent
}

func agentOf(dag *schemas.DAGSpec, node string) string {
	for i := range dag.Nodes {
		if dag.Nodes[i].Name == node {
			return dag.Nodes[i].Agent
		}
	}
	return ""
}

// Used returns a function that reports whether an action is on record as the answer to a request of a node.
func Used(e *state.Entry, node string) func(action string) bool {
	return func(action string) bool {
		return e != nil && slices.ContainsFunc(e.Runs(), func(r *schemas.Run) bool {
			return r.Node == node && r.Turn != nil && slices.ContainsFunc(r.Turn.Permissions, func(p schemas.Permission) bool {
				name, _, _ := strings.Cut(p.By, " ")
				return name == actionName+action
			})
		})
	}
}

// Open are the requests in a run, or in a claim of it, that a person can still answer.
func Open(run *schemas.Run) (open []schemas.Permission) {
	if run.Turn == nil || run.Outcome != "" && run.Outcome != schemas.OutcomeNotPermitted {
		return nil
	}
	for _, p := range run.Turn.Permissions {
		if p.Open() {
			open = append(open, p)
		}
	}
	return open
}

// Waiting are the requests of a node's agent that wait for a person, in the order in which they were made.
func Waiting(t *state.Tree, e *state.Entry, node string) []schemas.Permission {
	st, ok := e.Status().(*schemas.DAGStatus)
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if !ok || spec == nil {
		return nil
	}
	key := st.Nodes.Of(node).Key
	last := new(schemas.Run)
	for i := range e.Claims {
		if c := &e.Claims[i]; c.Node == node && c.NodeKey == key && !c.StartedAt.IsZero() {
			last = &c.Run
		}
	}
	if last.Key == "" {
		for _, r := range e.Runs() {
			if r.Node == node && r.NodeKey == key && r.Seq >= last.Seq {
				last = r
			}
		}
	}
	return Undecided(t, e, node, agentOf(spec, node), last)
}

// Undecided are the open requests of a run about which neither a rule nor a person has decided.
func Undecided(t *state.Tree, e *state.Entry, node, agent string, run *schemas.Run) (out []schemas.Permission) {
	used := Used(e, node)
	for _, p := range Open(run) {
		if !Decide(t, Request{DAG: e.Ref, Node: node, Agent: agent, Asked: &p}, used).Decided {
			out = append(out, p)
		}
	}
	return out
}

// Describe says what an agent asks for, with its folder and its reason.
func Describe(p *schemas.Permission) string {
	text := "use: " + p.Title
	if len(p.Argv) > 0 {
		text = "run: " + commands.Line(commandOf(p))
	}
	text = strings.Join(strings.Fields(text), " ")
	if p.Dir != "" {
		text += " (in " + p.Dir + ")"
	}
	if p.Why != "" {
		text += fmt.Sprintf("; it says: %q", p.Why)
	}
	return text
}

// Allowed are the commands, as lines for a shell, that the agent of a node may run without a question: those that patterns without a
// wildcard allow, and those of its last run that a person allowed meanwhile.
func Allowed(t *state.Tree, e *state.Entry, node, agent string, last *schemas.Run) []string {
	lists := t.Settings().Commands.Lists()
	allow, _ := lists.For(roleOf(t, agent))
	out := commands.Literal(allow)
	if last == nil {
		return out
	}
	used := Used(e, node)
	for _, p := range Open(last) {
		v := Decide(t, Request{DAG: e.Ref, Node: node, Agent: agent, Asked: &p}, used)
		if line := Answer(&p, "").Command; v.Allow && line != "" && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}
