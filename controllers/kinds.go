package controllers

import (
	"slices"

	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/project"
)

// Kinds is the table of kinds. A new kind is a row here, a file in schemas and a file of this package.
var Kinds = Table{
	{Kind: schemas.SessionKind, Decide: decideSession, Columns: sessionColumns, Details: sessionDetails,
		Foretold: true, Affects: sessionAffects, Before: addReassigned, After: addAdmitted, OwnRound: true, Shared: true, KeepSpec: true, Mirror: &mirror.Session,
		Index: &project.Session},
	{Kind: schemas.AgentKind, Decide: decideAgent, Columns: agentColumns, Details: agentDetails,
		Foretold: true, Affects: agentAffects, KeepSpec: true},
	{Kind: schemas.WorkflowKind, Decide: decideWorkflow, Columns: workflowColumns,
		Affects: affectsEverything, Index: &project.Workflow}, // a workflow says who may ask whom
	{Kind: schemas.DAGKind, Decide: decideDAG, Columns: dagColumns, Details: dagDetails,
		DependsOn: []string{schemas.SessionKind.Name, schemas.AgentKind.Name},
		Performs:  true, Foretold: true, PartOf: nodeOfDAG, Steps: nodeSteps, Tries: nodeTries, Events: dagEvents, Why: whyDAG,
		Affects: dagAffects, After: addMovedQuestions, Shared: true, Same: sameDAG, Note: dagNote,
		Mirror: &mirror.DAG, Index: &project.DAG},
	{Kind: schemas.ClarificationRequestKind, Decide: decideRequest, Columns: requestColumns,
		DependsOn: []string{schemas.DAGKind.Name}, Sources: []string{state.LedgerKind},
		Performs: true, PartOf: askingNode, Steps: askSteps, Tries: askTries, Events: requestEvents,
		Affects: requestAffects, Before: addOrdered, After: addNumbered, Shared: true,
		Origin: requestOrigin, Note: requestNote, Mirror: &mirror.Clarification,
		Index: &project.Clarification},
	{Kind: schemas.ReplyKind, Decide: decideReply, Columns: replyColumns,
		Affects: replyAffects, Origin: replyOrigin, Retired: replyRetired},
	{Kind: schemas.ObservationKind, Decide: decideObservation, Columns: observationColumns,
		Origin: observationOrigin, Retired: observationRetired},
	{Kind: schemas.ActionKind, Decide: decideAction, Columns: actionColumns,
		DependsOn: []string{schemas.SessionKind.Name, schemas.DAGKind.Name}, Affects: actionAffects,
		Origin: actionOrigin, Retired: actionRetired},
	{Kind: schemas.SettingsKind,
		Affects: affectsEverything},
}

// Table is a table of kinds.
type Table []Kind

// Schemas returns the schema half of the table, for decoders. Each kind carries its row.
func (t Table) Schemas() schemas.Kinds {
	kinds := make(schemas.Kinds, len(t))
	for i := range t {
		kinds[i] = t[i].Kind
		kinds[i].Row = &t[i]
	}
	return kinds
}

// Schemas returns the schema half of [Kinds].
func Schemas() schemas.Kinds { return Kinds.Schemas() }

// TableOf is the table that a tree was read with; [Kinds] for a tree that was not read.
func TableOf(t *state.Tree) Table {
	if t.Schemas() == nil {
		return Kinds
	}
	return tableIn(t.Schemas())
}

// tableIn is the table that made the schema half kinds. A kind that carries no row has that of [Kinds].
func tableIn(kinds schemas.Kinds) Table {
	t := make(Table, 0, len(kinds))
	for _, k := range kinds {
		row, ok := k.Row.(*Kind)
		if !ok {
			row = Kinds.Row(k.Name)
		}
		if row != nil {
			t = append(t, *row)
		}
	}
	return t
}

// MirrorOptions adds to the options of the mirror what the table of a tree says.
func MirrorOptions(t *state.Tree, o mirror.Options) mirror.Options {
	o.Why = Why
	for _, k := range TableOf(t) {
		if k.Mirror != nil {
			o.Kinds = append(o.Kinds, mirror.Mirrored{Kind: k.Name, Projector: k.Mirror})
		}
	}
	return o
}

// Row is the row of a kind; nil if the table has none.
func (t Table) Row(kind string) *Kind {
	for i := range t {
		if t[i].Name == kind {
			return &t[i]
		}
	}
	return nil
}

// Details are those of the kind of e.
func (t Table) Details(e *state.Entry) []Column {
	if k := t.Row(e.Kind); k != nil {
		return k.Details
	}
	return nil
}

// responsible returns the row of a kind, or the row that lists it among its sources, or nil.
func (t Table) responsible(kind string) *Kind {
	for i := range t {
		if t[i].Name == kind || slices.Contains(t[i].Sources, kind) {
			return &t[i]
		}
	}
	return nil
}

func affectsEverything(c *Change) { c.AddAll() }
