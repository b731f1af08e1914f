package schemas

import (
	"cmp"
	"reflect"
)

// OnlyPeople says what only people may do of a change of a spec, as a verb phrase; "" if the agent of the task may make it, too. before is the object
// that the change replaces, nil for a new one; after is nil for a removal. Settings and agents decide what agents may do, some verbs
// of actions are decisions of people, an action that exists may be one, a preference that is not inferred is one, the phase of a session holds or releases its work, a
// budget that is set bounds agents, notifications send what they did elsewhere, checks of landings and approvals hold back what they
// made, and the session of a DAG decides which of all these count, so that only people make sessions. What an architect decides about a plan
// change is the result of a DAG that no one else writes.
func (b *Bounds) OnlyPeople(ref Ref, before, after *Object) string {
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
	for place, budget := range was {
		if !reflect.DeepEqual(budget, is[place]) {
			return "change the budget of " + cmp.Or(place, ref.String())
		}
	}
	if !reflect.DeepEqual(noticesOf(before), noticesOf(after)) {
		return "change the notifications of " + ref.String()
	}
	return b.weakens(ref, before, after)
}

// noticesOf are the notifications that an object asks for: programs that run, and addresses that get results.
func noticesOf(o *Object) [2]Notifications {
	if d := SpecAs[*DAGSpec](o); d != nil {
		return [2]Notifications{d.OnFailure, d.OnSuccess}
	}
	return [2]Notifications{}
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
