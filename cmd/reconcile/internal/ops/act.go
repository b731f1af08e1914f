package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/edit"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/permits"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/commands"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// Verb is a command that controls runs, such as pause or retry.
type Verb struct {
	Name     string
	Short    string
	Session  bool // applies to sessions, too
	WholeDAG bool // applies to a DAG without a node
	Node     bool // applies to a node, too
	// Answers says that it is an answer to a plan change, too.
	Answers bool
	// Takes says that it takes the work of a session as it is, too.
	Takes bool
}

// Verbs lists the verbs of [Act].
var Verbs = []Verb{
	{schemas.VerbCancel, "End what runs and start nothing more, until a retry", true, true, true, false, false},
	{schemas.VerbRetry, "Run again what failed or was cancelled, or one node whatever its state", true, true, true, false, false},
	{schemas.VerbPause, "Start nothing new, and let what runs finish", true, true, true, false, false},
	{schemas.VerbResume, "Go on after a pause", true, true, true, false, false},
	{schemas.VerbSkip, "Go on without a node, as if it had succeeded", true, true, true, false, false},
	{schemas.VerbHold, "Keep a DAG or node from starting until it is approved", false, true, true, false, false},
	{schemas.VerbApprove, "Let a held node start, say that a person's task is done, accept a plan change or the work of a session, or allow what an agent asks for", false, true, true, true, true},
	{schemas.VerbDeny, "Refuse what the agent of a node asks for, or a plan change", false, false, true, true, false},
}

var cancelModes = []string{schemas.CancelGraceful, schemas.CancelImmediate, schemas.CancelWait}

// Usage returns the usage of a verb, such as "retry dag/NAME [NODE]|session/NAME".
func (v Verb) Usage() string {
	s := v.Name + " dag/NAME"
	switch {
	case !v.WholeDAG:
		s += " NODE"
	case v.Node:
		s += " [NODE]"
	}
	if v.Session {
		s += "|session/NAME|all"
	}
	if v.Answers {
		s += "|planchange/NAME"
	}
	if v.Takes {
		s += "|session/NAME"
	}
	return s
}

// ActRequest requests a verb on a DAG, a node or a session.
type ActRequest struct {
	Verb   string
	Target string // dag/NAME, session/NAME or all: all sessions
	Node   string // of a DAG; "": the whole DAG
	Reason string // for the record
	By     string // the acting person or agent; "": the caller
	All    bool   // with retry: run every node of the DAG again, including succeeded ones
	// Mode is how cancel treats what runs: a Cancel constant of schemas; "" is graceful.
	Mode string
	// Alone, with retry of a node: what depends on it stays as it is.
	Alone bool
	// Answer is what approve answers, as JSON or as text. Digest is that of the gate's content that the caller has seen; "": its present content.
	Answer, Digest string
	NoRun          bool // only write the action; the next run applies it
	// For is how long the answer to what an agent asks for is remembered: schemas.PermitOnce, schemas.PermitSession or
	// PermitAlways; "" is once.
	For string
}

// PermitAlways makes an answer a rule of the settings.
const PermitAlways = "always"

// ActResult is the outcome of an action.
type ActResult struct {
	Path string // the file of the action
	// Answered is what the agent asked for, if the action is the answer to it.
	Answered *schemas.Permission
	Run      *RunResult // the run that applied it; nil: another run applies it
	Moot     string     // why the action had no effect; "" if it had one or is not applied yet
}

// Act acts on a DAG, a node or a session: it writes the Action of an ActRequest with its verb, target and reason, and
// runs the tree once to apply it. While another run is active it only writes the action. The result is valid even with
// an error, if it has a path.
func Act(ctx context.Context, env Env, q ActRequest) (r ActResult, err error) {
	i := slices.IndexFunc(Verbs, func(v Verb) bool { return v.Name == q.Verb })
	if i < 0 {
		return r, badRequest("there is no verb %q", q.Verb)
	}
	v := Verbs[i]
	if schemas.OfPeople(v.Name) {
		if err := env.Caller.OnlyPeople(v.Name); err != nil {
			return r, typed(err)
		}
	}
	a, err := env.beginAction(ctx, v.Name, q.By, q.Reason)
	if err != nil {
		return r, typed(err)
	}
	defer a.store.Close()
	t, spec := a.tree, &a.spec
	spec.Node, spec.All, spec.Mode, spec.Alone, spec.Answer = q.Node, q.All, q.Mode, q.Alone, env.redact("--answer", q.Answer)
	if spec.Target, err = v.target(t, q.Target, q.Node); err != nil {
		return r, typed(err)
	}
	switch {
	case q.All && (v.Name != schemas.VerbRetry || q.Node != ""):
		return r, badField("all", " is about a whole DAG; usage: reconcile retry dag/NAME --all")
	case q.Alone && q.Node == "":
		return r, badField("alone", " is about a node; usage: reconcile retry dag/NAME NODE --alone")
	case q.Mode != "" && !slices.Contains(cancelModes, q.Mode):
		return r, badField("mode", " %q is not one of %s", q.Mode, strings.Join(cancelModes, ", "))
	}
	if r.Answered, err = env.answerPermission(a.store, t, spec, q); err != nil {
		return r, typed(err)
	}
	if v.Name == schemas.VerbApprove && r.Answered == nil {
		if err := errors.Join(env.approvable(t, *spec), env.bindApproval(t, spec, q.Digest)); err != nil {
			return r, typed(err)
		}
	}
	name := actionName(*spec)
	if r.Path, r.Run, err = a.write(ctx, name, q.NoRun); r.Path == "" {
		return r, typed(err)
	}
	if v.Name == schemas.VerbRetry && r.Run != nil {
		r.Run.explainNode(q.Target, q.Node)
	}
	var refused error
	r.Moot, refused = env.mootAction(ctx, name)
	return r, typed(errors.Join(err, refused))
}

// approvable returns an error for an approval without effect, and lists the objects that wait for one.
func (e Env) approvable(t *state.Tree, spec schemas.ActionSpec) error {
	ref, err := spec.TargetRef()
	session := ref.Kind == schemas.SessionKind.Name
	if err != nil || ref.Kind == schemas.PlanChangeKind.Name || session && sessions.Approvable(t.Entry(ref)) ||
		!session && dags.Approvable(t, ref, spec.Node, e.Tree.Now()) {
		return err
	}
	what := strings.TrimSpace(spec.Target + " " + spec.Node)
	if to := t.Entry(ref); to != nil && to.HasStatus() {
		for _, a := range actions.Unapplied(t, to, schemas.AppliedTo(to.Status())) {
			if a.Spec.Verb == spec.Verb && a.Spec.Node == spec.Node && !a.Spent {
				return fmt.Errorf("%s approves %s already, and the next run applies it: reconcile", a.Entry.Ref, what)
			}
		}
	}
	var waits []string
	for _, w := range work.Waits(t, nil, e.Tree.Now()) {
		if strings.HasPrefix(w.Command, "reconcile "+schemas.VerbApprove) {
			waits = append(waits, w.Command)
		}
	}
	if len(waits) == 0 {
		return fmt.Errorf("there is nothing to approve of %s, nor does anything else wait for an approval", what)
	}
	return fmt.Errorf("there is nothing to approve of %s; what waits: %s", what, schemas.Shorten(waits, 3))
}

// bindApproval binds an approval to what a gate or a person's task shows now, and checks the answer. digest is that of what the caller has seen.
func (e Env) bindApproval(t *state.Tree, spec *schemas.ActionSpec, digest string) error {
	ref, err := spec.TargetRef()
	entry := t.Entry(ref)
	dag := state.SpecOf[*schemas.DAGSpec](entry)
	if err != nil || dag == nil || spec.Node == "" {
		return err
	}
	now := e.Tree.Now()
	in := settle.In{Entry: entry, Tree: t, World: settle.NewWorld(t, now, nil), Now: now}
	gate := dags.GateOf(in, spec.Node)
	spec.Digest = dags.ShownOf(in, spec.Node)
	switch {
	case spec.Digest == "" && digest != "":
		return fmt.Errorf("%s %s does not wait for an approval; reconcile describe %[1]s says how it is", spec.Target, spec.Node)
	case digest != "" && digest != spec.Digest:
		return fmt.Errorf("what there is to approve of %s %s has changed: reconcile describe %[1]s shows it; its digest is now %[3]s", spec.Target, spec.Node, spec.Digest)
	}
	if n := plan.Of(entry.Object).Spec.Node(spec.Node); n != nil {
		return checkAnswer(t, n, gate, spec.Answer)
	}
	return nil
}

// checkAnswer checks the answer to a person's task or a gate; gate is nil for none.
func checkAnswer(t *state.Tree, n *schemas.Node, gate *dags.Gate, answer string) error {
	var forms []json.RawMessage
	person := agents.IsPerson(t, n.Agent)
	asked := n.Approve
	if gate != nil {
		asked = gate.Approve
	}
	if asked != nil {
		forms = append(forms, asked.Form)
	}
	if person {
		forms = append(forms, n.Outputs.Schema)
	}
	if answer != "" && !person && asked == nil {
		return badField("answer", " is for a person's task or a gate, and node %q is neither", n.Name)
	}
	if _, err := schemas.AnswerValue(answer, forms...); err != nil {
		return badField("answer", ": %v", err)
	}
	return nil
}

// mootAction returns why an action had no effect, or "". The error is that of an action that was refused.
func (e Env) mootAction(ctx context.Context, name string) (string, error) {
	o, err := e.openChanged(ctx)
	if err != nil {
		return "", nil // the run reported the error
	}
	defer o.store.Close()
	t := o.tree
	action := t.Entry(schemas.ActionKind.Ref(name))
	if action != nil && action.HasStatus() {
		if c := action.Status().Base().Condition(schemas.Ready); c != nil && c.Reason == settle.ReasonUnproved {
			return readiness.Because(action), nil
		}
	}
	for _, d := range actedOn(t, state.SpecOf[*schemas.ActionSpec](action)) {
		for _, x := range schemas.AppliedTo(d.Status()) {
			switch {
			case x.Name != name:
			case x.Refused != "":
				return "", fmt.Errorf("%s does not count: %s", schemas.ActionKind.Ref(name), x.Refused)
			case x.Moot:
				return readiness.Because(action), nil
			}
		}
	}
	return "", nil
}

// actedOn are the objects that may say what came of an action; spec may be nil.
func actedOn(t *state.Tree, spec *schemas.ActionSpec) []*state.Entry {
	if spec != nil {
		if ref, err := (schemas.Kinds{schemas.DAGKind}).ParseRef(spec.Target); err == nil && t.Exists(ref) {
			return []*state.Entry{t.Entry(ref)}
		}
	}
	return slices.Concat(t.Entries(schemas.DAGKind.Name), t.Entries(schemas.PlanChangeKind.Name))
}

// target checks and returns the target of a verb, before anything is written.
func (v Verb) target(t *state.Tree, word, node string) (string, error) {
	switch {
	case word != schemas.TargetAll:
	case !v.Session:
		return "", badRequest("all sessions cannot be told to %s; usage: reconcile %s", v.Name, v.Usage())
	case node != "":
		return "", badRequest("all is about sessions, which have no nodes; leave %q out", node)
	default:
		return schemas.TargetAll, nil
	}
	e, err := find(t, word)
	if err != nil {
		return "", err
	}
	switch {
	case e.Kind == schemas.SessionKind.Name && (v.Session || v.Takes) && node == "", e.Kind == schemas.PlanChangeKind.Name && v.Answers && node == "":
	case e.Kind == schemas.SessionKind.Name && node != "":
		return "", badRequest("%s is a session and has no nodes; leave %q out", e.Ref, node)
	case e.Kind != schemas.DAGKind.Name:
		return "", badRequest("%s cannot be told to %s; usage: reconcile %s", e.Ref, v.Name, v.Usage())
	case node == "" && !v.WholeDAG:
		return "", badRequest("%s needs a node; usage: reconcile %s", v.Name, v.Usage())
	case node != "" && !v.Node:
		return "", badRequest("a node cannot be told to %s; usage: reconcile %s", v.Name, v.Usage())
	case node != "" && e.Object != nil:
		err = findNode(e, node)
	}
	return e.Ref.String(), err
}

// answerPermission makes an approval or a refusal the answer to the first request of the node's agent that is open, and returns
// the request; nil without one. With PermitAlways it writes a rule.
func (e Env) answerPermission(s *state.Store, t *state.Tree, spec *schemas.ActionSpec, q ActRequest) (*schemas.Permission, error) {
	if spec.Verb != schemas.VerbApprove && spec.Verb != schemas.VerbDeny {
		return nil, nil
	}
	var open []schemas.Permission
	ref, err := spec.TargetRef()
	if entry := t.Entry(ref); err == nil && entry != nil && spec.Node != "" {
		open = permits.Waiting(t, entry, spec.Node)
	}
	if len(open) == 0 {
		if ref.Kind == schemas.PlanChangeKind.Name && q.For == "" {
			return nil, nil
		}
		if spec.Verb == schemas.VerbDeny || q.For != "" {
			return nil, fmt.Errorf("the agent of %s asks for nothing; reconcile ready lists what waits", strings.TrimSpace(spec.Target+" "+spec.Node))
		}
		return nil, nil
	}
	asked := &open[0]
	if q.For == PermitAlways {
		if err := e.allowAlways(s, t, ref, spec.Node, asked); err != nil {
			return nil, err
		}
		q.For = ""
	}
	spec.Permission = permits.Answer(asked, q.For)
	return asked, nil
}

// allowAlways writes a rule that allows a command into the list of the settings that applies to the node's agent.
func (e Env) allowAlways(s *state.Store, t *state.Tree, dag schemas.Ref, node string, asked *schemas.Permission) error {
	if len(asked.Argv) == 0 {
		return badField("always", " makes a rule about a command, and the agent asks to use %q: use --session", asked.Title)
	}
	patterns, err := commands.Exact(commands.Command{Argv: asked.Argv, Shell: asked.Shell})
	if err != nil {
		return badField("always", " cannot make a rule about this command: %v; use --session", err)
	}
	settings, agent := t.Settings(), ""
	for _, n := range state.SpecOf[*schemas.DAGSpec](t.Entry(dag)).Nodes {
		if n.Name == node {
			agent = n.Agent
		}
	}
	field, list := []string{"commands", "allow"}, settings.Commands.Allow
	if role := permits.Role(t, agent); role != "" {
		field, list = []string{"commands", "roles", role}, settings.Commands.Roles[role]
	}
	src, err := regular.Read(s.Root(), schemas.SettingsPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return regular.Cause(err)
	}
	if err != nil {
		src = []byte("apiVersion: " + schemas.APIVersion + "\nkind: Settings\nmetadata: {name: settings}\nspec: {}\n")
	}
	if len(list) == 0 {
		patterns = append([]string{commands.Default}, patterns...)
	}
	data, err := edit.AddToList(src, field, patterns)
	if err == nil {
		err = checkRule(t, src, data, field, append(patterns[:len(patterns):len(patterns)], list...))
	}
	if err != nil {
		return fmt.Errorf("%s: %w; add %q to spec.%s by hand, and approve without --always", schemas.SettingsPath, err, patterns, strings.Join(field, "."))
	}
	if err := durable.Apply(s.Root(), specs.Scratch, []durable.Op{{Path: schemas.SettingsPath, Data: data}}); err != nil {
		return err
	}
	e.note("%s allows %s", schemas.SettingsPath, schemas.Shorten(patterns, 3))
	return nil
}

// checkRule verifies with the decoder that the edit changed one list of the settings and nothing else.
func checkRule(t *state.Tree, before, after []byte, field, want []string) error {
	decode := func(src []byte) *schemas.SettingsSpec {
		d := schemas.DecoderFor(append(settle.TableOf(t).Schemas(), schemas.SettingsKind), t.Settings()).Decode(schemas.SettingsPath, src)
		if d.Object == nil {
			return nil
		}
		return schemas.SpecAs[*schemas.SettingsSpec](d.Object)
	}
	was, is := decode(before), decode(after)
	if was == nil || is == nil {
		return errors.New("the text cannot be changed safely")
	}
	expected := *was
	if len(field) == 2 {
		expected.Commands.Allow = want
	} else {
		expected.Commands.Roles = map[string][]string{field[2]: want}
		for role, list := range was.Commands.Roles {
			if role != field[2] {
				expected.Commands.Roles[role] = list
			}
		}
	}
	if !reflect.DeepEqual(&expected, is) {
		return errors.New("the text cannot be changed safely")
	}
	return nil
}
