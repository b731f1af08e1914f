package controllers

import "reconcile.dev/reconcile/schemas"

// Kinds is the table of kinds. A new kind is a line here, a file in schemas and a file beside this one.
var Kinds = []Kind{
	{schemas.SessionKind, decideSession},
	{schemas.AgentKind, decideAgent},
	{schemas.WorkflowKind, decideWorkflow},
	{schemas.DAGKind, decideDAG},
	{schemas.ClarificationRequestKind, decideRequest},
	{schemas.ReplyKind, decideReply},
	{schemas.ObservationKind, decideObservation},
	{schemas.ActionKind, decideAction},
	{schemas.SettingsKind, nil},
}

// Schemas returns the schema half of the table, for whoever decodes.
func Schemas() schemas.Kinds {
	kinds := make(schemas.Kinds, len(Kinds))
	for i, k := range Kinds {
		kinds[i] = k.Kind
	}
	return kinds
}
