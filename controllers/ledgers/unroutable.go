package ledgers

import (
	"fmt"
	"strings"

	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Unroutable says why an open question that another program wrote into a ledger cannot be put to anybody, and what to do
// about it; "" for one that can be, that is a request already, or that is closed.
func Unroutable(t *state.Tree, c *schemas.Clarification) string {
	if c.Request != "" || !c.Open() {
		return ""
	}
	name := strings.ToLower(c.ID)
	if e := t.Entry(schemas.ClarificationRequestKind.Ref(name)); e != nil && !e.Gone() && clarifications.Status(e).ID == c.ID {
		return "" // the next fold names it in the ledger
	}
	for _, agent := range []string{c.From, c.To} {
		if e := t.Entry(schemas.AgentKind.Ref(agent)); e == nil || e.Gone() {
			return fmt.Sprintf("there is no agent %q: %s, or have the program that asks name one of the tree", agent,
				declareAgent(t, agent))
		}
	}
	if c.From == c.To {
		return fmt.Sprintf("agent %q cannot ask itself: have the program that asks name another one", c.To)
	}
	issue, _, _ := clarify.ParseID(c.ID)
	spec := clarifications.SpecOfRecord(c, issue)
	if err := clarifications.ScopeOf(t, c.From, "").Check(spec); err != nil {
		return fmt.Sprintf("%v; list %s in canClarify of agent/%s, or ask somebody whom it may ask", err, c.To, c.From)
	}
	var r schemas.Report
	spec.Check(&r)
	for _, f := range r.Findings() {
		return fmt.Sprintf("its %v is wrong: %s; have the program that asks correct it", f.Field[0], f.Message)
	}
	return ""
}

// declareAgent says how an agent comes into the tree; a name that no agent can have cannot.
func declareAgent(t *state.Tree, agent string) string {
	if schemas.CheckName(agent) != nil {
		return "no agent can be called so"
	}
	return fmt.Sprintf("write %s/%s/%s.yaml", t.Settings().Folders.Specs, schemas.AgentKind.Plural, agent)
}

// UnroutableRecords are the open questions of ledgers that cannot be put to anybody, by id, with the reason.
func UnroutableRecords(t *state.Tree) (ids []string, why map[string]string) {
	why = map[string]string{}
	for _, l := range t.Ledgers() {
		if l.Open == 0 {
			continue
		}
		for i := range l.Records() {
			c := &l.Records()[i]
			if text := Unroutable(t, c); text != "" && why[c.ID] == "" {
				ids, why[c.ID] = append(ids, c.ID), text
			}
		}
	}
	return ids, why
}
