package settle

import (
	"strings"

	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Interrupted is the record of what the turn of an agent used until it was interrupted: r is its run so far, without an outcome, and
// process who performed it. nil for a run without an agent, that was never started, or of whose use nothing is known or was reserved.
// The run itself begins again under its own key, so the record has another one, and counts for nothing but its use.
func Interrupted(r *schemas.Run, process, message string) *schemas.Run {
	at := strings.LastIndexByte(r.Key, '/')
	known := r.Budget != nil || r.Turn != nil && (r.Turn.Usage != nil || r.Turn.CostUSD != nil)
	if r.Agent == "" || r.StartedAt.IsZero() || at < 0 || !known {
		return nil
	}
	digest := keys.Digest([]byte("interrupted " + r.Key + " " + process + " " + r.StartedAt.String()))
	out := &schemas.Run{APIVersion: schemas.APIVersion, Kind: "Run", Key: r.Key[:at+1] + keys.Effect(r.Node, digest, 1), Owner: r.Owner,
		Node: r.Node, Agent: r.Agent, NodeKey: digest, Seq: 1, Outcome: schemas.OutcomeInterrupted, Message: message, StartedAt: r.StartedAt,
		FinishedAt: schemas.Later(r.StartedAt, r.FinishedAt), Budget: r.Budget}
	out.Metadata.Name = out.Key[at+1:]
	if t := r.Turn; t != nil {
		out.Turn = &schemas.Turn{Runner: t.Runner, Profile: t.Profile, Model: t.Model, SessionID: t.SessionID, ToolCalls: t.ToolCalls,
			Usage: t.Usage, UsageFrom: t.UsageFrom, CostUSD: t.CostUSD, CostFrom: t.CostFrom}
	}
	return out
}

// InterruptedBy are the records of what the turns used that killed processes had claimed.
func InterruptedBy(orphans []state.Orphan) (out []*schemas.Run) {
	for _, o := range orphans {
		o.FinishedAt = o.Heard
		if r := Interrupted(&o.Run, o.Process, "the process that ran it was killed"); r != nil {
			out = append(out, r)
		}
	}
	return out
}
