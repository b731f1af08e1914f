// Package preferences decides Preferences, and which of them holds.
package preferences

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Kind is the row of kind Preference.
var Kind = settle.Kind{Kind: schemas.PreferenceKind, Decide: decide, Affects: affects, Columns: []settle.Column{
	readiness.Ready,
	readiness.OfSpec("DOMAIN", func(s *schemas.PreferenceSpec) string { return s.Domain }),
	readiness.OfSpec("KEY", func(s *schemas.PreferenceSpec) string { return s.Key }),
	readiness.OfSpec("VALUE", func(s *schemas.PreferenceSpec) string { return s.Value }),
	readiness.OfSpec("SOURCE", func(s *schemas.PreferenceSpec) string { return s.Source }),
	readiness.OfSpec("BY", func(s *schemas.PreferenceSpec) string { return schemas.Acting(s.By, s.Proof) }),
}}

// decide takes note of the preferences of people, so that one that appears later is known to be new. What an agent without a sandbox may have written
// counts as inferred.
func decide(in settle.In) settle.Out {
	if in.Gone() || in.Broken() {
		return settle.DecideRecord[schemas.PreferenceStatus](in)
	}
	if spec := in.Object.Spec().(*schemas.PreferenceSpec); !spec.OfPeople() {
		return settle.Out{}
	}
	st := &schemas.PreferenceStatus{Common: settle.Common(in.Status())}
	j := settle.Judgement{Class: settle.ClassReady, Reason: settle.ReasonValid, Message: "it counts"}
	if old, _ := in.Status().(*schemas.PreferenceStatus); old != nil {
		if why := old.Distrusted(in.Object.Digest); why != "" {
			st.During, j.Message = old.During, "it counts as inferred: "+why
		}
	}
	j.Settle(&st.Common, in.Object.Digest, in.Now)
	return settle.Out{Status: st}
}

// Held is a preference, and its name.
type Held struct {
	Name string
	*schemas.PreferenceSpec
}

// Of lists the preferences of a tree.
func Of(t *state.Tree) (out []Held) {
	for _, e := range t.Entries(schemas.PreferenceKind.Name) {
		if s := state.SpecOf[*schemas.PreferenceSpec](e); s != nil && !e.Gone() {
			if state.StatusOf[schemas.PreferenceStatus](e).Distrusted(e.Object.Digest) != "" {
				inferred := *s
				inferred.Source = schemas.PreferenceInferred
				s = &inferred
			}
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

// Tools are the choices of tools that hold in a session, "" for outside of any.
func Tools(t *state.Tree, session string) (out []tools.Choice) {
	for _, h := range Holding(Of(t), schemas.PreferenceTools, session) {
		language, category, _ := strings.Cut(h.Key, "/")
		by := (schemas.Ref{Kind: schemas.PreferenceKind.Name, Name: h.Name}).String()
		if h.By != "" {
			by = h.By + ", " + by
		}
		out = append(out, tools.Choice{Language: language, Category: checks.Category(category), Tool: h.Value, By: by, Inferred: h.Source == schemas.PreferenceInferred})
	}
	return out
}

// WithTools adds to variables the one that has a verification use the choices of a tree, and not those in the commit that it is about. Without
// any it adds nothing.
func WithTools(env []string, t *state.Tree, session string) []string {
	all := Tools(t, session)
	if len(all) == 0 {
		return env
	}
	data, err := json.Marshal(all)
	if err != nil {
		return env // they have only texts
	}
	return append(slices.Clip(env), tools.ChoicesVar+"="+string(data))
}

// Asking begins the names of the DAGs that ask an agent which tools to use, and of the preferences that follow.
const Asking = "tools-"

// affects adds what waits for preferences, and the DAGs that may have led to this one, which note that it was there.
func affects(c *settle.Change) {
	if !c.Everything() && c.Note("questions about tools") {
		AddUndecided(c.Worklist)
		for _, e := range c.Tree().Entries(schemas.DAGKind.Name) {
			if strings.HasPrefix(e.Name, Asking) {
				c.Add(e.Ref)
			}
		}
	}
}

// AddUndecided adds what waits for the answer to a question about tools: DAGs and sessions.
func AddUndecided(c settle.Worklist) {
	for _, e := range c.Tree().Active(schemas.SessionKind.Name) {
		if st, ok := e.Status().(*schemas.SessionStatus); ok && st.Quality != nil && len(st.Quality.Undecided) > 0 {
			c.AddChanged(e.Ref)
		}
	}
	for _, e := range c.Tree().Active(schemas.DAGKind.Name) {
		if len(schemas.UndecidedOf(e.Brief(), e.Status)) > 0 {
			c.AddChanged(e.Ref)
		}
	}
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
