package schemas

import (
	"cmp"
	"reflect"
)

// OnlyPeople says what only people may do of a change of a spec, as a verb phrase; "" if agents may make it, too. before is the object
// that the change replaces, nil for a new one; after is nil for a removal. Settings and agents decide what agents may do, some verbs
// of actions are decisions of people, and a budget that is set bounds agents.
func OnlyPeople(ref Ref, before, after *Object) string {
	if ref.Kind == SettingsKind.Name || ref.Kind == AgentKind.Name {
		return "write " + ref.String()
	}
	for _, o := range []*Object{after, before} {
		if o == nil {
			continue
		}
		if a := SpecAs[*ActionSpec](o); a != nil && OfPeople(a.Verb) {
			return a.Verb
		}
	}
	was, is := budgetsOf(before), budgetsOf(after)
	for place, b := range was {
		if !reflect.DeepEqual(b, is[place]) {
			return "change the budget of " + cmp.Or(place, ref.String())
		}
	}
	return ""
}

// OfPeople reports whether a verb is a decision of a person.
func OfPeople(verb string) bool {
	return verb == VerbSkip || verb == VerbApprove || verb == VerbDeny || IsMessage(verb)
}

// budgetsOf returns the budgets that an object sets; those of nodes by their names, its own by "".
func budgetsOf(o *Object) map[string]*Budget {
	out := map[string]*Budget{}
	if o == nil {
		return out
	}
	if s := SpecAs[*SessionSpec](o); s != nil && s.Budget != nil {
		out[""] = s.Budget
	}
	if d := SpecAs[*DAGSpec](o); d != nil {
		if d.Budget != nil {
			out[""] = d.Budget
		}
		for i := range d.Nodes {
			if b := d.Nodes[i].Budget; b != nil {
				out["node "+d.Nodes[i].Name] = b
			}
		}
	}
	return out
}
