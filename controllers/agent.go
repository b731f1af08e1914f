package controllers

import (
	"fmt"

	"reconcile.dev/reconcile/schemas"
)

// decideAgent tells what an agent does and did last, from claims and records.
func decideAgent(in In) Out {
	if in.Gone() {
		return Out{}
	}
	st := &schemas.AgentStatus{Common: common(in.Status)}
	old, _ := in.Status.(*schemas.AgentStatus)
	d := in.World.deedsOf(in.Name)
	st.LastActivity = schemas.NewTime(in.Now)
	if old != nil {
		st.LastActivity = later(old.LastActivity, d.last)
	} else if !d.last.IsZero() {
		st.LastActivity = d.last
	}
	st.AgentActivity.Status = schemas.AgentIdle
	for _, c := range d.claims {
		st.AgentActivity.Status = schemas.AgentWorking
		st.Running = append(st.Running, c.Key)
	}
	if d.issue > 0 {
		st.Issue = &d.issue
	}
	past := chronicle{old: st.History}
	for _, r := range d.runs {
		if past.admits(r.FinishedAt) {
			past.add(r.FinishedAt, r.Outcome, r.Owner+": "+runMessage(r))
		}
	}
	st.History = past.entries()
	if in.Broken() {
		brokenJudgement(in, st.AgentActivity.Status).settle(&st.Common, st.ObservedDigest, in.Now)
		return Out{Status: st}
	}
	judgeAgent(st).settle(&st.Common, in.Object.Digest, in.Now)
	return Out{Status: st}
}

func judgeAgent(st *schemas.AgentStatus) judgement {
	j := judgement{phase: st.AgentActivity.Status, class: ready, reason: ReasonIdle, message: "idle"}
	if n := len(st.Running); n > 0 {
		j.reason, j.message = ReasonWorking, fmt.Sprintf("works on %s%s", st.Running[0], more(n-1))
	}
	return j
}
