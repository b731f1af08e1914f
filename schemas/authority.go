package schemas

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
)

// OnlyPeople says what only people may do of a change of a spec, as a verb phrase; "" if agents may make it, too. before is the object
// that the change replaces, nil for a new one; after is nil for a removal. Settings and agents decide what agents may do, some verbs
// of actions are decisions of people, an action that exists may be one, a preference that is not inferred is one, the phase of a session holds or releases its work, a
// budget that is set bounds agents, notifications send what they did elsewhere, checks of landings and approvals hold back what they
// made, and the session of a DAG decides which of all these count. What an architect decides about a plan change is the result of a DAG
// that no one else writes.
func OnlyPeople(ref Ref, before, after *Object) string {
	if ref.Kind == SettingsKind.Name || ref.Kind == AgentKind.Name {
		return "write " + ref.String()
	}
	switch was, is := SpecAs[*ActionSpec](before), SpecAs[*ActionSpec](after); {
	case was != nil:
		return "change " + ref.String()
	case is != nil && OfPeople(is.Verb):
		return is.Verb
	}
	if SpecAs[*PreferenceSpec](before).OfPeople() || SpecAs[*PreferenceSpec](after).OfPeople() {
		return "write " + ref.String() + ", unless its source is inferred"
	}
	if was, is := SpecAs[*SessionSpec](before), SpecAs[*SessionSpec](after); was != nil && is != nil && was.Phase != is.Phase {
		return "change the phase of " + ref.String()
	}
	was, is := budgetsOf(before), budgetsOf(after)
	for place, b := range was {
		if !reflect.DeepEqual(b, is[place]) {
			return "change the budget of " + cmp.Or(place, ref.String())
		}
	}
	if !reflect.DeepEqual(noticesOf(before), noticesOf(after)) {
		return "change the notifications of " + ref.String()
	}
	return weakens(ref, before, after)
}

// noticesOf are the notifications that an object asks for: programs that run, and addresses that get results.
func noticesOf(o *Object) [2]Notifications {
	if d := SpecAs[*DAGSpec](o); d != nil {
		return [2]Notifications{d.OnFailure, d.OnSuccess}
	}
	return [2]Notifications{}
}

// weakens says which check a change takes away or replaces, as [OnlyPeople] does. Checks of a node that is new would replace those of its
// session.
func weakens(ref Ref, before, after *Object) string {
	was, is := SpecAs[*SessionSpec](before), SpecAs[*SessionSpec](after)
	if was != nil && (was.Land != nil && (is == nil || !reflect.DeepEqual(was.Land, is.Land)) ||
		was.Pipeline != nil && (is == nil || !reflect.DeepEqual(was.Pipeline, is.Pipeline)) ||
		was.Quality != nil && (is == nil || !reflect.DeepEqual(was.Quality, is.Quality) || was.Branch != is.Branch || !reflect.DeepEqual(was.Env, is.Env))) {
		return "change the checks of " + ref.String()
	}
	old, now := SpecAs[*DAGSpec](before), SpecAs[*DAGSpec](after)
	if old != nil && old.Answers != "" || now != nil && now.Answers != "" {
		return "answer a plan change by " + ref.String()
	}
	if old != nil && old.Fixes != "" || now != nil && now.Fixes != "" {
		return "decide what mends a session by " + ref.String()
	}
	if old == nil { // a new DAG may have what it likes
		return ""
	}
	if now != nil && old.Session != now.Session {
		return "change the session of " + ref.String()
	}
	were, are := old.named(), now.named()
	for _, names := range []map[string]*Node{were, are} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if what := weakenedBy(were[name], are[name]); what != "" {
				return "change the " + what + " of node " + name
			}
		}
	}
	return ""
}

// named are the nodes of a DAG by their names, also those that run finally. s may be nil.
func (s *DAGSpec) named() map[string]*Node {
	out := map[string]*Node{}
	if s == nil {
		return out
	}
	for _, nodes := range [][]Node{s.Nodes, s.Finally} {
		for i := range nodes {
			out[nodes[i].Name] = &nodes[i]
		}
	}
	return out
}

// weakenedBy says which check of a node is not the same in its next version. Both may be nil. Checks that a node gets replace those of its
// session.
func weakenedBy(n, next *Node) string {
	n, next = cmp.Or(n, new(Node)), cmp.Or(next, new(Node))
	switch {
	case !reflect.DeepEqual(n.Land, next.Land), !reflect.DeepEqual(n.Pipeline, next.Pipeline):
		return "checks"
	case n.Approve != nil && !reflect.DeepEqual(n.Approve, next.Approve):
		return "approval"
	}
	return ""
}

// OfPeople reports whether a verb is a decision of a person. An agent may stop work; it may not let go on what was stopped, has failed
// or waits for a person.
func OfPeople(verb string) bool {
	switch verb {
	case VerbCancel, VerbPause, VerbHold:
		return false
	}
	return true
}

// How it is known who acted.
const (
	ProofRun     = "run"     // the token of a run: its agent
	ProofAccount = "account" // the account that the process runs as
	ProofGitHub  = "github"  // the author of a comment there
	// ProofSignature: the signature of the commit that added the object.
	ProofSignature = "signature"
	ProofClaimed   = "claimed" // nothing but the name that was given
)

// ActingOf returns who acts by an object, and the proof of it; "" for objects that do not say.
func ActingOf(o *Object) (name, proof string) {
	if o == nil {
		return "", ""
	}
	switch s := o.Spec().(type) {
	case *ActionSpec:
		return s.By, s.Proof
	case *ReplySpec:
		return s.From, s.Proof
	case *ClarificationRequestSpec:
		return s.From, s.Proof
	case *PlanChangeSpec:
		return s.By, s.Proof
	}
	return "", ""
}

// Acting is the name of who acted, with a note if it was only claimed.
func Acting(name, proof string) string {
	if name != "" && proof == ProofClaimed {
		return name + " (claimed)"
	}
	return name
}
