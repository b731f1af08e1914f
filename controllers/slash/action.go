package slash

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/permits"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// commandTarget is what the words behind a verb name.
type commandTarget struct {
	target schemas.Ref
	node   string
	reason string
	// objects are what /explain is about.
	objects []schemas.Ref
}

// fillers are words that begin the reason of a command, if no node has that name.
var fillers = []string{"because", "please", "pls", "again", "now", "thanks", "lgtm", "it", "since", "as"}

// beginsReason reports whether a reason begins: with a token that is not a word, as a dash, or with a filler.
func beginsReason(word string) bool {
	first := []rune(word)[0]
	return !unicode.IsLetter(first) && !unicode.IsDigit(first) || slices.Contains(fillers, strings.ToLower(strings.TrimRight(word, ",.:;!")))
}

// action makes an Action of a command.
func (d *commandDecider) action(c *Comment, cmd Command, name string) (*derive.Spec, string, error) {
	a, err := d.resolveTarget(cmd)
	if err != nil {
		return nil, "", err
	}
	spec := &schemas.ActionSpec{Target: a.target.String(), Node: a.node, Verb: cmd.Verb, By: writtenBy(c.Author), Proof: schemas.ProofGitHub,
		Reason: redactedText(a.reason), At: schemas.NewTime(c.Created)}
	if cmd.Verb == Approve || cmd.Verb == Deny {
		spec.Permission = d.asked(a, c.Created)
	}
	if cmd.Verb == Approve && spec.Permission == nil {
		if err := d.approval(a, spec); err != nil {
			return nil, "", err
		}
		d.authors[schemas.ActionKind.Ref(name)] = c.Author.Login
	}
	if cmd.Verb == Deny && spec.Permission == nil && a.target.Kind != schemas.PlanChangeKind.Name {
		return nil, "", fmt.Errorf("the agent of %s asked for nothing before this comment that waits for an answer", codeText(a.node))
	}
	out, _, err := d.propose(schemas.ActionKind, name, spec)
	if err == nil {
		err = d.applied(spec, name)
	}
	return out, "", err
}

// asked is the answer to the first request of the node's agent that waits for a person, once; nil without one. A request that was
// made after the comment was written is not answered by it.
func (d *commandDecider) asked(a commandTarget, written time.Time) *schemas.PermissionAnswer {
	e := d.tree.Entry(a.target)
	if e == nil || a.node == "" || schemas.NodesIn(e.Status()).Of(a.node).Reason != settle.ReasonWaitsForPermission {
		return nil
	}
	for _, r := range e.Runs() {
		if r.Node == a.node && r.Outcome == schemas.OutcomeNotPermitted && r.FinishedAt.After(written) {
			return nil
		}
	}
	if open := permits.Waiting(d.tree, e, a.node); len(open) > 0 {
		return permits.Answer(&open[0], schemas.PermitOnce)
	}
	return nil
}

// applied says why an action that is in the tree does nothing.
func (d *commandDecider) applied(spec *schemas.ActionSpec, name string) error {
	e := d.tree.Entry(schemas.Ref{Kind: schemas.ActionKind.Name, Name: name})
	base := e.Status().Base()
	ready := base.Condition(schemas.Ready)
	switch {
	case base.Phase != schemas.ActionApplied && ready != nil:
		return errors.New(codeText(ready.Message))
	case d.refused(spec, name) != "":
		return errors.New(codeText(d.refused(spec, name)))
	case d.moot(spec, name):
		return fmt.Errorf("there is nothing to %s", spec.Verb)
	}
	return nil
}

// moot reports whether an action changed nothing. One on a session is kept by its DAGs, too.
func (d *commandDecider) moot(spec *schemas.ActionSpec, name string) bool {
	target, err := spec.TargetRef()
	if err != nil || target.Kind == schemas.SessionKind.Name {
		return false
	}
	return slices.ContainsFunc(schemas.AppliedTo(d.tree.Entry(target).Status()), func(a schemas.AppliedAction) bool { return a.Name == name && a.Moot })
}

// resolveTarget resolves the target of a command: [dag/NAME] [NODE] [why]. Missing parts follow from the issue, if they
// are unambiguous there.
func (d *commandDecider) resolveTarget(cmd Command) (commandTarget, error) {
	var a commandTarget
	words, rest := strings.Fields(cmd.Line), cmd.Text
	next := func() {
		rest = strings.TrimSpace(rest[strings.Index(rest, words[0])+len(words[0]):])
		words = words[1:]
	}
	dags := d.dags()
	if len(words) > 0 && strings.Contains(words[0], "/") {
		target, err := d.object(cmd.Verb, words[0])
		if err != nil {
			return a, err
		}
		if a.target = target; target.Kind == schemas.PlanChangeKind.Name {
			next()
			a.reason = strings.TrimSpace(strings.TrimLeft(rest, "-–—:,;. \t"))
			return a, nil
		}
		dags = slices.DeleteFunc(dags, func(e *state.Entry) bool { return e.Ref != target })
		next()
	}
	if len(words) > 0 && (hasNode(dags, words[0]) || !beginsReason(words[0])) {
		if err := d.node(&a, cmd.Verb, dags, words[0]); err != nil {
			return a, err
		}
		next()
	}
	a.reason = strings.TrimSpace(strings.TrimLeft(rest, "-–—:,;. \t"))
	if a.target == (schemas.Ref{}) {
		return a, d.guess(&a, cmd.Verb, dags)
	}
	switch {
	case a.node == "" && cmd.Verb == Skip:
		return a, errors.New("say which node is to be skipped")
	case a.node == "" && cmd.Verb == Deny:
		return a, d.held(&a, Deny, dags)
	}
	return a, nil
}

// dags returns the usable DAGs of the issue.
func (d *commandDecider) dags() []*state.Entry { return d.objects(schemas.DAGKind) }

func (d *commandDecider) objects(k schemas.Kind) []*state.Entry {
	var out []*state.Entry
	for _, ref := range d.issue.Objects {
		if e := d.tree.Entry(ref); ref.Kind == k.Name && e != nil && e.Object != nil {
			out = append(out, e)
		}
	}
	return out
}

// object is the DAG or session that a word names, or the plan change that is answered; it has to be one of this issue.
func (d *commandDecider) object(verb, word string) (schemas.Ref, error) {
	kinds := schemas.Kinds{schemas.DAGKind, schemas.SessionKind}
	if verb == Approve || verb == Deny {
		kinds = append(kinds, schemas.PlanChangeKind)
	}
	ref, err := kinds.ParseRef(strings.TrimRight(word, ",.:;"))
	if err != nil {
		return schemas.Ref{}, fmt.Errorf("%s is neither a DAG nor a session, as dag/checks", codeText(word))
	}
	var words []string
	for _, o := range d.issue.Objects {
		if o == ref && d.tree.Entry(ref) != nil {
			return ref, nil
		}
		if o.Kind != schemas.ClarificationRequestKind.Name {
			words = append(words, o.String())
		}
	}
	return schemas.Ref{}, fmt.Errorf("this issue does not stand for %s%s", codeText(ref.String()), nearestQuestion(ref.String(), words))
}

// targetNodes are the nodes that a command in a comment may name.
func targetNodes(dag *state.Entry) []string {
	var out []string
	for _, n := range schemas.SpecAs[*schemas.DAGSpec](dag.Object).Nodes {
		out = append(out, n.Name)
	}
	return out
}

func hasNode(dags []*state.Entry, word string) bool {
	return slices.ContainsFunc(dags, func(e *state.Entry) bool { return slices.Contains(targetNodes(e), strings.TrimRight(word, ",.:;")) })
}

// node finds the DAG that has a node.
func (d *commandDecider) node(a *commandTarget, verb string, dags []*state.Entry, word string) error {
	word = strings.TrimRight(word, ",.:;")
	var have, names, ways []string
	for _, e := range dags {
		if slices.Contains(targetNodes(e), word) {
			have, a.target, a.node = append(have, e.Name), e.Ref, word
			ways = append(ways, "/"+verb+" "+e.Ref.String()+" "+word)
		}
		names = append(names, targetNodes(e)...)
	}
	switch {
	case len(have) == 1:
		return nil
	case len(have) > 1:
		return fmt.Errorf("say which is meant: %s", questionChoices(ways))
	case len(dags) == 0 && a.target != (schemas.Ref{}):
		return fmt.Errorf("%s has no nodes; leave %s out", codeText(a.target.String()), codeText(word))
	}
	return fmt.Errorf("there is no node %s here%s", codeText(word), nearestQuestion(word, names))
}

// guess finds the target of a command that names none.
func (d *commandDecider) guess(a *commandTarget, verb string, dags []*state.Entry) error {
	switch {
	case verb == Skip:
		return errors.New("say which node is to be skipped")
	case verb == Approve, verb == Deny:
		return d.held(a, verb, dags)
	}
	targets := dags
	if verb != Hold && len(dags) != 1 { // one DAG is all that its session has here
		targets = append(targets, d.objects(schemas.SessionKind)...)
	}
	switch len(targets) {
	case 0:
		return fmt.Errorf("there is nothing on this issue to %s", verb)
	case 1:
		a.target = targets[0].Ref
		return nil
	}
	var ways []string
	for _, e := range targets {
		ways = append(ways, "/"+verb+" "+e.Ref.String())
	}
	return fmt.Errorf("say which is meant: %s", questionChoices(ways))
}

// answerable are the reasons of nodes that wait for a verb, Approve or Deny.
func answerable(verb string) []string {
	if verb == Deny {
		return []string{settle.ReasonWaitsForPermission}
	}
	return []string{settle.ReasonHeld, settle.ReasonWaitsForPerson, settle.ReasonWaitsForPermission, settle.ReasonWaitsForApproval}
}

// held finds the one node that waits for a verb, Approve or Deny.
func (d *commandDecider) held(a *commandTarget, verb string, dags []*state.Entry) error {
	var ways []string
	for _, e := range dags {
		st, ok := e.Status().(*schemas.DAGStatus)
		if !ok {
			continue
		}
		var here []string
		for _, name := range targetNodes(e) {
			n := st.Nodes.Of(name)
			if n.State == schemas.NodeBlocked && slices.Contains(answerable(verb), n.Reason) {
				a.target, a.node = e.Ref, name
				here = append(here, "/"+verb+" "+e.Ref.String()+" "+name)
			}
		}
		if len(here) > 1 && verb == Approve {
			here = append([]string{"/approve " + e.Ref.String()}, here...)
		}
		ways = append(ways, here...)
	}
	switch len(ways) {
	case 0:
		if verb == Deny {
			return errors.New("no agent here asks for a permission")
		}
		return errors.New("nothing here waits for an approval")
	case 1:
		return nil
	}
	return fmt.Errorf("say which is meant: %s", questionChoices(ways))
}

// resolveExplained resolves the target of explain: the named one, else all objects of the issue.
func (d *commandDecider) resolveExplained(words []string) (commandTarget, error) {
	if len(words) == 0 || beginsReason(words[0]) && !hasNode(d.dags(), words[0]) {
		return commandTarget{objects: d.issue.Objects}, nil
	}
	a, err := d.resolveTarget(Command{Verb: Explain, Line: strings.Join(words, " "), Text: strings.Join(words, " ")})
	a.objects = []schemas.Ref{a.target}
	return a, err
}

// OutcomeOf returns the outcome of the specs of a comment, in a tree that a run has decided: HandledAccepted once all are
// in force, HandledRefused with the reply to the author if one cannot be, "" while a run has yet to decide. Most are
// refused before they are written, but another program may be faster. A spec that was removed since counts as accepted.
func OutcomeOf(t *state.Tree, h *schemas.MirrorHandled) (outcome, reply string) {
	for _, p := range h.Specs {
		ref, ok := refOf(p)
		e := t.Entry(ref)
		if !ok || e == nil || e.Gone() {
			continue
		}
		decided, err := standing(t, e)
		switch {
		case err != nil:
			return schemas.HandledRefused, refusalText([]string{err.Error()})
		case !decided:
			return "", ""
		}
	}
	return schemas.HandledAccepted, ""
}

// refOf is the object of a path that [Decide] made.
func refOf(p string) (schemas.Ref, bool) {
	k, ok := controllers.Schemas().Find(path.Base(path.Dir(p)))
	return schemas.Ref{Kind: k.Name, Name: strings.TrimSuffix(path.Base(p), ".yaml")}, ok
}

// standing is [Standing] for one spec.
func standing(t *state.Tree, e *state.Entry) (decided bool, why error) {
	if e.Broken() {
		return true, errors.New(codeText(e.Problems[0].Message))
	}
	switch spec := e.Object.Spec().(type) {
	case *schemas.ActionSpec:
		return e.HasStatus() && e.Status().Base().Phase == schemas.ActionApplied, nil
	case *schemas.ReplySpec:
		return replyStanding(t, e, spec)
	}
	return true, nil
}

func replyStanding(t *state.Tree, e *state.Entry, spec *schemas.ReplySpec) (decided bool, why error) {
	for _, request := range t.Entries(schemas.ClarificationRequestKind.Name) {
		st, ok := request.Status().(*schemas.ClarificationRequestStatus)
		if !ok || request.Name != spec.Clarification && st.ID != spec.Clarification {
			continue
		}
		s, message := clarify.StandingOf(st, clarify.Reply{Name: e.Name, Digest: e.Object.Digest, Spec: spec})
		if s == clarify.Refused {
			return true, errors.New(codeText(message))
		}
		return s != clarify.Unheard, nil
	}
	return false, nil
}
