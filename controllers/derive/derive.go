// Package derive finds the specs that follow from records and actions: the requests of nodes that asked, those for questions of other
// programs, the observations of what agents learned and of what clarifications resolved, and the runs of workflows that were started.
package derive

import (
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Deriver derives specs from the trees of a run, one after the other. It looks only at what differs from the tree before. Its
// zero value derives from any tree.
type Deriver struct{ changes changes }

// Derive lists the spec files that the tree lacks: the requests of nodes whose latest run ended with a question, and those
// of open questions that other programs wrote into ledgers; the session and the DAG of a start; and, if there is a memory,
// the observations of agents' lessons and of resolved clarifications. Forbidden questions are omitted: the node gets the
// reason. The tree is one that Settle has decided.
//
// scheduled are the DAGs of whose schedules a time has come, by decisions: the Action for it is listed, too.
//
// The checkpoints are the changes of those that follow from records.
func (d *Deriver) Derive(t *state.Tree, scheduled ...schemas.Ref) ([]Spec, Checkpoints) {
	v := &deriver{tree: t, w: clarifications.RequestsOf(settle.NewWorld(t, time.Time{}, nil)), remembers: t.Settings().Memory.On()}
	due := d.changes.since(t)
	again := map[schemas.Ref]bool{}
	look := func(ref schemas.Ref, by ...func()) {
		before, kept := len(v.out), len(v.kept.Add)
		for _, f := range by {
			f()
		}
		if len(v.out) > before || len(v.kept.Add) > kept {
			again[ref] = true // until it is there
		}
	}
	for _, e := range due.of(t, schemas.DAGKind.Name) {
		look(e.Ref, func() { v.asks(e) }, func() { v.planChanges(e) }, func() { v.learned(e) }, func() { v.handoffs(e) }, func() { v.checkpoints(e) },
			func() { v.tools(e) })
	}
	for _, e := range due.of(t, schemas.ActionKind.Name) {
		look(e.Ref, func() { v.starts(e) })
	}
	for _, ref := range scheduled {
		if e := t.Entry(ref); e != nil {
			if name, spec, ok := dags.ScheduledAction(e); ok {
				v.add(schemas.ActionKind, name, spec)
			}
		}
	}
	for _, e := range due.of(t, schemas.PlanChangeKind.Name) {
		look(e.Ref, func() { v.answers(e) })
	}
	for _, e := range due.of(t, schemas.SessionKind.Name) {
		look(e.Ref, func() { v.fixes(e) }, func() { v.research(e) })
	}
	for _, l := range due.ledgers(t) {
		look(l.Ref(), func() { v.imports(l) })
	}
	for _, e := range due.of(t, schemas.ClarificationRequestKind.Name) {
		look(e.Ref, func() { v.learned(e) }, func() { v.resolved(e) })
	}
	d.changes = changes{tree: t, again: again}
	return v.out, v.kept
}

// fixes adds the DAG that mends what the verification of a session found, or the one that plans it.
func (d *deriver) fixes(e *state.Entry) {
	if e.Object == nil || e.RunCount() == 0 {
		return
	}
	if name, dag := sessions.FixDAG(d.tree, e); dag != nil {
		d.add(schemas.DAGKind, name, dag)
	}
}

// asks adds what the latest runs of a DAG's nodes under their present keys asked.
func (d *deriver) asks(e *state.Entry) {
	if e.Object == nil || !e.RunsHave(state.Asks) {
		return
	}
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return
	}
	for i, r := range e.Runs() {
		if r.Asks == nil || st.Nodes.Of(r.Node).Key != r.NodeKey || supersededBy(e.Runs(), i) {
			continue
		}
		spec := clarifications.SpecOfRun(e, r, sessions.IssueOf(d.tree, e))
		if d.w.Index.Takes(e.Name, r) == nil && d.w.ScopeOf(spec.From, spec.Run).Check(spec) == nil {
			d.add(schemas.ClarificationRequestKind, clarifications.SpecName(e.Name, r), spec)
		}
	}
}

// imports adds the open questions of other programs whose agents both exist.
func (d *deriver) imports(l *state.Ledger) {
	if !l.Foreign {
		return
	}
	for i := range l.Records() {
		c := &l.Records()[i]
		if c.Open() && c.Request == "" && d.importable(c) {
			d.add(schemas.ClarificationRequestKind, strings.ToLower(c.ID), clarifications.SpecOfRecord(c, l.Issue))
		}
	}
}

// importable reports whether a question of another program can be a request here.
func (d *deriver) importable(c *schemas.Clarification) bool {
	if d.w.Index.WithID(c.ID) != nil || c.From == c.To {
		return false
	}
	for _, name := range []string{c.From, c.To} {
		if e := d.tree.Entry(schemas.AgentKind.Ref(name)); e == nil || e.Object == nil {
			return false
		}
	}
	var r schemas.Report
	clarifications.SpecOfRecord(c, 0).Check(&r)
	return len(r.Findings()) == 0
}
