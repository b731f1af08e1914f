package dags

import "reconcile.dev/reconcile/schemas"

// usageOf is the part of its context, 0 to 1, that an agent had used at the end of a run; 0 where that is not known.
func (f *fold) usageOf(run *schemas.Run) float64 { return max(f.contextUsed(run.Agent, run.Turn), 0) }

// contextUsed is the part of its context, 0 to 1, that an agent had used at the end of a turn: what it reported, else what was noted while it
// worked. It is negative where neither is known.
func (f *fold) contextUsed(agent string, t *schemas.Turn) float64 {
	window := 0
	if a := f.b.Agent(f.p, agent); a != nil {
		window = a.ContextWindow
	}
	share := t.ContextShare(window)
	if share < 0 && t != nil && len(t.Marks) > 0 {
		return t.Marks[len(t.Marks)-1].Usage()
	}
	return float64(share) / 100
}
