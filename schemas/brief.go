package schemas

// Brief has the fields of a status that are read for all objects of a tree.
type Brief struct {
	Phase          string
	ObservedDigest string
	// Ready and Stalled are the conditions of these names; empty if missing.
	Ready, Stalled ConditionStatus
	StalledReason  string

	// The rest is of DAGs.
	Progress   Progress
	Running    int
	FinishedAt Time
	Blocked    bool // some node is
}

// BriefOf sums up a status.
func BriefOf(s Status) Brief {
	c := s.Base()
	b := Brief{Phase: c.Phase, ObservedDigest: c.ObservedDigest}
	if ready := c.Condition(Ready); ready != nil {
		b.Ready = ready.Status
	}
	if stalled := c.Condition(Stalled); stalled != nil {
		b.Stalled, b.StalledReason = stalled.Status, stalled.Reason
	}
	dag, ok := s.(*DAGStatus)
	if !ok {
		return b
	}
	b.Progress, b.Running, b.FinishedAt = dag.Progress, dag.Running, dag.FinishedAt
	for _, n := range dag.Nodes {
		if n.State == NodeBlocked {
			b.Blocked = true
			break
		}
	}
	return b
}
