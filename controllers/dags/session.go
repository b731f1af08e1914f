package dags

import (
	"fmt"
	"slices"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// A session of an agent goes on from turn to turn while its context has room. From the share on that the agent's memory names, a
// new one begins, with the checkpoints in its prompt; at 95 % the running turn is ended, which uses up no attempt.

// fullAt returns the share of the context, in percent, at which the running turn of node i has to end; 0: it may go on.
func (f *fold) fullAt(i int32) int {
	if c := f.recs[i].claim; c != nil {
		return f.endMark(i, c.Turn)
	}
	return 0
}

// endMark is the share that a turn reached, if it is one that ends turns; else 0.
func (f *fold) endMark(i int32, t *schemas.Turn) int {
	if t == nil || len(t.Marks) == 0 {
		return 0
	}
	if last := t.Marks[len(t.Marks)-1]; last.Percent >= f.memory(i).EndAt() {
		return int(last.Usage() * 100)
	}
	return 0
}

// memory is that of the node's agent.
func (f *fold) memory(i int32) schemas.AgentMemory {
	if a := f.b.Agent(f.p, f.agentOf(i)); a != nil && f.stoppedHandoffs(i) == nil {
		return a.MemoryOf()
	}
	return schemas.AgentMemory{CompactAt: 100}
}

// context says which shares of the agent's context are noted.
func (f *fold) context(i int32) *settle.Context {
	a := f.b.Agent(f.p, f.agentOf(i))
	if a == nil || a.Runner.AsCommand() == nil {
		return nil
	}
	return &settle.Context{Marks: a.MemoryOf().Marks(), Window: a.ContextWindow}
}

// isFull reports whether the context of a turn's session was so full at its end that the next turn begins a new one.
func (f *fold) isFull(i int32, t *schemas.Turn) bool {
	return f.contextUsed(f.agentOf(i), t) >= float64(f.memory(i).CompactAt)/100
}

// continues returns the turn whose session the next run of node i continues; nil for a new session.
func (f *fold) continues(i int32) *schemas.Turn {
	r := &f.recs[i]
	var run *schemas.Run
	switch {
	case r.notPermitted() != nil:
		run = r.last
	case r.limited != nil:
		run = r.limited
	case r.reopened != nil && r.last == r.reopened, r.last != nil && r.last.Outcome == schemas.OutcomeCancelled,
		r.last != nil && r.last == r.handoff: // whose hand-off was stopped
		run = r.last
	case agents.CutOff(r.failed):
		run = r.failed
	}
	if run == nil || run.Turn == nil || run.Turn.SessionID == "" || f.isFull(i, run.Turn) || f.endsSession(i, run) || f.changesAgent(i, run) {
		return nil
	}
	return run.Turn
}

// checkpoints are those of the node under its present key, for a new session after others.
func (f *fold) checkpoints(i int32) []*schemas.Checkpoint {
	all := f.Tree.Checkpoints()
	if len(all) == 0 || f.continues(i) != nil {
		return nil
	}
	node := "dag/" + f.p.Name + ":" + f.p.Spec.Nodes[i].Name
	var out []*schemas.Checkpoint
	for _, c := range all {
		if c.Node == node && c.NodeKey == f.b.Keys[i] && c.Handoff == nil && !f.superseded(i, c) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b *schemas.Checkpoint) int { return a.Timestamp.Compare(b.Timestamp.Time) })
	return out
}

// superseded reports whether a hand-off of node i has what a checkpoint says.
func (f *fold) superseded(i int32, c *schemas.Checkpoint) bool {
	_, seq := clarifications.SplitSeq(c.Run)
	return f.endsSession(i, &schemas.Run{Seq: seq})
}

// endsTurn reports whether the running turn of node i is to end: its context is full, or a person interrupts it. If so, it has set
// the state.
func (f *fold) endsTurn(i int32) bool {
	if at := f.fullAt(i); at > 0 {
		f.set(i, schemas.NodeRunning, settle.ReasonContextFull, fmt.Sprintf("%d %% of its context are used: its turn is being ended, and goes on in a new session", at))
		return true
	}
	if a := f.interrupts(i); a != nil {
		by := ""
		if a.By != "" {
			by = " by " + schemas.Acting(a.By, a.Proof)
		}
		what := "interrupts it"
		if a.Verb == schemas.VerbHandoff {
			what = "hands its work over"
		}
		f.set(i, schemas.NodeRunning, settle.ReasonInterrupted, "its turn is being ended: action "+a.Name+" "+what+by)
		return true
	}
	return false
}
