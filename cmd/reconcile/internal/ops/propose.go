package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// ProposeRequest asks for a change of a plan, or for help with a blocker.
type ProposeRequest struct {
	Target string // dag/NAME or session/NAME; "" in a run of a node: its DAG
	// Node escalates: it waits for the answer. "" is an ordinary request.
	Node            string
	Change          string // a Change constant of schemas
	Reason          string // of an escalation the blocker
	Tried           []string
	Blocked, Failed []string
	BlockerType     string            // of an escalation; one of schemas.BlockerTypes, "" for none
	Priority        schemas.Priority  // "" is high
	Context         map[string]string // what else is to be known, by name
	// Edit are the suggestions, as the JSON of a schemas.PlanEdit; "" for none.
	Edit  string
	By    string // the acting person or agent; "": the caller
	NoRun bool   // only write the request
}

// ProposeResult is a plan change after it was asked for.
type ProposeResult struct {
	Name, Path string
	// Seen says that the same was asked before: nothing was written.
	Seen bool
	// Phase and Message say how it is; both are empty before a run has taken it.
	Phase, Message string
	Verdict        Code // NotReady if it cannot be taken
}

// Propose asks for a change of a plan, or escalates a blocker of a node: it writes the PlanChange of a ProposeRequest, and runs the tree.
// Inside a run it only writes. A repeated call is the same request.
func Propose(ctx context.Context, env Env, q ProposeRequest) (r ProposeResult, err error) {
	spec, err := env.planChange(q)
	if err != nil {
		return r, typed(err)
	}
	o, err := env.open(ctx)
	if err != nil {
		return r, typed(err)
	}
	defer o.store.Close()
	if err := checkTarget(o.tree, spec); err != nil {
		return r, typed(err)
	}
	if err := planchanges.CheckSuggestions(o.tree, spec); err != nil {
		return r, typed(badField("file", ": it cannot be applied to %s: %v", spec.Target, err))
	}
	r.Name = proposalName(spec)
	ref := schemas.PlanChangeKind.Ref(r.Name)
	if e := o.tree.Entry(ref); e != nil && !e.Gone() {
		r.Seen = true
		env.note("already asked: %s", ref)
	} else if r.Path, err = specs.Write(o.store, o.tree, schemas.PlanChangeKind, r.Name, spec); err != nil {
		return r, typed(err)
	} else {
		env.note("wrote %s", r.Path)
	}
	if _, err := env.update(ctx, o, q.NoRun, engine.Request{}); err != nil {
		return r, typed(err)
	}
	if e := o.tree.Entry(ref); e != nil && e.HasStatus() {
		r.Phase, r.Message = e.Status().Base().Phase, readiness.Because(e)
		if r.Phase == "" {
			r.Verdict = NotReady
		}
	}
	return r, nil
}

// planChange returns the spec of a request. In a run it adds the asking agent, its DAG and its run.
func (e Env) planChange(q ProposeRequest) (*schemas.PlanChangeSpec, error) {
	who, err := e.Caller.Actor("--by", q.By)
	if err != nil {
		return nil, err
	}
	spec := &schemas.PlanChangeSpec{Target: q.Target, Node: q.Node, Change: q.Change, Reason: e.redact("the reason", strings.TrimSpace(q.Reason)),
		Blocked: q.Blocked, Failed: q.Failed, By: who.Name, Proof: who.Proof, At: schemas.NewTime(e.Tree.Now()),
		BlockerType: q.BlockerType, Priority: q.Priority}
	for name, text := range q.Context {
		if spec.Context == nil {
			spec.Context = map[string]any{}
		}
		spec.Context[e.redact("--context", name)] = e.redact("--context", text)
	}
	for _, text := range q.Tried {
		spec.Tried = append(spec.Tried, e.redact("--tried", text))
	}
	if dag, node, ok := schemas.SplitRunKey(e.Caller.RunKey()); ok {
		spec.Run = e.Caller.RunKey()
		if spec.Target == "" {
			spec.Target = schemas.DAGKind.Ref(dag).String()
		}
		if own := schemas.DAGKind.Ref(dag).String(); q.Node != "" && (spec.Target != own || q.Node != node) {
			return nil, badRequest("this run is of %s %s, and can escalate nothing else", own, node)
		}
	}
	if spec.Reason == "" {
		return nil, badRequest("say why: the reason is missing")
	}
	if q.BlockerType != "" && !slices.Contains(schemas.BlockerTypes(), q.BlockerType) {
		return nil, badField("type", " %s: a blocker is one of %s", q.BlockerType, strings.Join(schemas.BlockerTypes(), ", "))
	}
	if q.Priority != "" && !slices.Contains(schemas.Priorities(), q.Priority) {
		return nil, badField("priority", " %s: it is one of critical, high, normal, low, background", q.Priority)
	}
	if q.Edit == "" {
		return spec, nil
	}
	spec.Suggestions = new(schemas.PlanEdit)
	d := json.NewDecoder(bytes.NewReader([]byte(q.Edit)))
	d.DisallowUnknownFields()
	if err := d.Decode(spec.Suggestions); err != nil {
		return nil, badField("file", ": it is no edit: %v; its fields are dag, add, modify, remove, needs and text", schemas.PlainJSON(err))
	}
	if !spec.Suggestions.Changes() && strings.TrimSpace(spec.Suggestions.Text) == "" {
		return nil, badField("file", ": the edit is empty; its fields are dag, add, modify, remove, needs and text")
	}
	return spec, nil
}

// checkTarget returns an error for a target or nodes that do not exist, before anything is written.
func checkTarget(t *state.Tree, spec *schemas.PlanChangeSpec) error {
	if spec.Target == "" {
		return badRequest("name the DAG or the session whose plan is to change, as dag/NAME")
	}
	e, err := find(t, spec.Target)
	switch {
	case err != nil:
		return err
	case e.Kind != schemas.DAGKind.Name && e.Kind != schemas.SessionKind.Name:
		return badRequest("%s has no plan: name a DAG or a session", e.Ref)
	}
	spec.Target = e.Ref.String()
	if e.Kind == schemas.SessionKind.Name {
		return nil
	}
	if st, ok := e.Status().(*schemas.DAGStatus); ok && spec.Node != "" && st.Nodes.Of(spec.Node).State == schemas.NodeSucceeded {
		return fmt.Errorf("%s %s has succeeded: nothing blocks it", e.Ref, spec.Node)
	}
	for _, names := range [][]string{{spec.Node}, spec.Blocked, spec.Failed} {
		for _, name := range names {
			if name == "" || e.Object == nil {
				continue
			}
			if err := findNode(e, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// proposalName derives a name from the request, so that a repeated call is the same one: the target, the change, and a digest.
func proposalName(spec *schemas.PlanChangeSpec) string {
	const longest = 40
	_, name, _ := strings.Cut(spec.Target, "/")
	edit, err := json.Marshal(spec.Suggestions)
	if err != nil {
		edit = nil // it came from JSON
	}
	dag, node, _ := schemas.SplitRunKey(spec.Run)
	digest := specs.NameDigest(3, spec.Target, spec.Node, spec.Change, spec.Reason, fmt.Sprint(spec.Tried), fmt.Sprint(spec.Blocked), fmt.Sprint(spec.Failed),
		string(edit), spec.By, dag, node, spec.BlockerType, string(spec.Priority), spec.ShownContext())
	return specs.FitName(name[:min(len(name), longest)]+"-"+spec.Change, "-"+digest)
}
