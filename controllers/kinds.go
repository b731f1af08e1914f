package controllers

import "reconcile.dev/reconcile/schemas"

// Kinds is the table of kinds. A new kind is a line here, a file in schemas and a file beside this one.
var Kinds = []Kind{
	{schemas.SessionKind, decideSession, nil, sessionColumns},
	{schemas.AgentKind, decideAgent, nil, agentColumns},
	{schemas.WorkflowKind, decideWorkflow, nil, workflowColumns},
	{schemas.DAGKind, decideDAG, checkConditions, dagColumns},
	{schemas.ClarificationRequestKind, decideRequest, nil, requestColumns},
	{schemas.ReplyKind, decideReply, nil, replyColumns},
	{schemas.ObservationKind, decideObservation, nil, observationColumns},
	{schemas.ActionKind, decideAction, nil, actionColumns},
	{schemas.SettingsKind, nil, nil, nil},
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
