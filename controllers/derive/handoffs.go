package derive

import (
	"cmp"

	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// handoffs adds the records of the hand-offs of a DAG's nodes with which no new conversation has begun yet, and the requests to the
// architect. No node goes on before its record is written, in the same turn.
func (d *deriver) handoffs(e *state.Entry) {
	if e.Object == nil || !e.RunsHave(state.OfAgent) { // a hand-off follows a turn that has ended
		return
	}
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok || len(plan.Of(e.Object).Agents) == 0 {
		return
	}
	var record func(string, *schemas.Handoff) (*schemas.PipelineHandoff, *schemas.Run)
	for node, n := range st.Nodes.All() {
		of := n.Handoff.Last()
		if of == nil || of.Phase == schemas.HandoffCancelled || dags.WentOn(e, node, n.Key, of.Run) {
			continue
		}
		if of.PlanChange != "" && of.Phase == schemas.HandoffRequested {
			d.add(schemas.PlanChangeKind, of.PlanChange, planchanges.HandoffRequest(e.Name, node, of))
		}
		c := &schemas.Checkpoint{APIVersion: schemas.APIVersion, Kind: schemas.CheckpointName, Timestamp: of.At, SessionID: cmp.Or(sessionWith(e), e.Name),
			ContextUsage: of.ContextUsage, Agent: of.Agent, Run: of.Run, Node: "dag/" + e.Name + ":" + node, NodeKey: n.Key,
			Handoff: &schemas.PipelineHandoff{HandoffReason: of.Reason}}
		if d.hasCheckpoint(c) {
			continue
		}
		if record == nil {
			in := settle.In{Entry: e, Tree: d.tree, Now: of.At.Time}
			in.World = settle.NewWorld(d.tree, in.Now, nil)
			record = dags.HandedOver(in)
		}
		h, run := record(node, of)
		if h == nil {
			continue
		}
		at := moment{run: run, mark: &schemas.ContextMark{At: of.At, Said: h.Engineer.ContextNotes}}
		for _, f := range h.Engineer.FilesChanged {
			at.mark.Files = append(at.mark.Files, f.Path)
		}
		if t := run.Turn; t != nil && len(t.Marks) > 0 {
			at.mark.Tools = t.Marks[len(t.Marks)-1].Tools
		}
		if c.Handoff = h; run.Turn != nil {
			c.AgentSession = run.Turn.SessionID
		}
		d.keepCheckpoint(c, e, at)
	}
}
