// Package preferences decides Preferences, and which of them holds.
package preferences

import (
	"cmp"
	"slices"

	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Kind is the row of kind Preference.
var Kind = settle.Kind{Kind: schemas.PreferenceKind, Decide: settle.DecideRecord[schemas.PreferenceStatus], Columns: []settle.Column{
	readiness.Ready,
	readiness.OfSpec("DOMAIN", func(s *schemas.PreferenceSpec) string { return s.Domain }),
	readiness.OfSpec("KEY", func(s *schemas.PreferenceSpec) string { return s.Key }),
	readiness.OfSpec("VALUE", func(s *schemas.PreferenceSpec) string { return s.Value }),
	readiness.OfSpec("SOURCE", func(s *schemas.PreferenceSpec) string { return s.Source }),
	readiness.OfSpec("BY", func(s *schemas.PreferenceSpec) string { return schemas.Acting(s.By, s.Proof) }),
}}

// Held is a preference, and its name.
type Held struct {
	Name string
	*schemas.PreferenceSpec
}

// Of lists the preferences of a tree.
func Of(t *state.Tree) (out []Held) {
	for _, e := range t.Entries(schemas.PreferenceKind.Name) {
		if s := state.SpecOf[*schemas.PreferenceSpec](e); s != nil && !e.Gone() {
			out = append(out, Held{e.Name, s})
		}
	}
	return out
}

// Holding returns the preferences of a domain that hold in a session, "" for outside of any, sorted by their keys: for each key one of a person
// before one that is inferred, one of the session before a general one, and the newest of these.
func Holding(all []Held, domain, session string) []Held {
	out := slices.DeleteFunc(slices.Clone(all), func(h Held) bool { return h.Domain != domain || h.Session != "" && h.Session != session })
	slices.SortFunc(out, func(a, b Held) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), boolOrder(a.Source == schemas.PreferenceInferred, b.Source == schemas.PreferenceInferred),
			boolOrder(a.Session == "", b.Session == ""), b.At.Compare(a.At.Time), cmp.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(out, func(a, b Held) bool { return a.Key == b.Key })
}

// boolOrder puts false first.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
