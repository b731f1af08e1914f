package controllers

import "reconcile.dev/reconcile/schemas"

// Kinds is the table of kinds. A new kind is a line here, a file in schemas and a file beside this one.
var Kinds = []Kind{
	{schemas.SessionKind, decideSession, nil},
	{schemas.AgentKind, decideAgent, nil},
	{schemas.WorkflowKind, decideWorkflow, nil},
	{schemas.DAGKind, decideDAG, checkConditions},
	{schemas.ClarificationRequestKind, decideRequest, nil},
	{schemas.ReplyKind, decideReply, nil},
	{schemas.ObservationKind, decideObservation, nil},
	{schemas.ActionKind, decideAction, nil},
	{schemas.SettingsKind, nil, nil},
}

// Schemas returns the schema half of the table, for whoever decodes.
func Schemas() schemas.Kinds {
	kinds := make(schemas.Kinds, len(Kinds))
	for i, k := range Kinds {
		kinds[i] = k.Kind
		kinds[i].CheckObject = k.Check
	}
	return kinds
}
