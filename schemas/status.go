package schemas

import (
	"fmt"
)

// Status is the observed state of one object: a pointer to one of the *Status structs, which all embed [Common].
type Status interface{ Base() *Common }

// Common is the part of a status that every kind has.
type Common struct {
	// ObservedDigest is the Object.Digest that this status is about.
	ObservedDigest string `json:"observedDigest,omitempty"`
	// Phase is a one-word summary; its values are the kind's own.
	Phase string `json:"phase,omitempty"`
	// Conditions follow kstatus: Ready always; Reconciling and Stalled only while true. Sorted by type.
	Conditions []Condition `json:"conditions"`
	// History holds the latest changes, newest last, at most HistoryLimit. It derives from records, never from turns.
	History []HistoryEntry `json:"history"`
}

// Base returns c itself; it makes every struct that embeds Common a Status.
func (c *Common) Base() *Common { return c }

// HistoryLimit bounds Common.History.
const HistoryLimit = 20

// Condition types.
const (
	Ready       = "Ready"
	Reconciling = "Reconciling"
	Stalled     = "Stalled"
)

// ConditionStatus is True, False or Unknown.
type ConditionStatus string

// The three values of a condition.
const (
	True    ConditionStatus = "True"
	False   ConditionStatus = "False"
	Unknown ConditionStatus = "Unknown"
)

// Condition is one aspect of an object's state, in the shape of Kubernetes' metav1.Condition.
type Condition struct {
	Type    string          `json:"type"`
	Status  ConditionStatus `json:"status"`
	Reason  string          `json:"reason"`
	Message string          `json:"message"`
	// LastTransitionTime moves only when Status changes.
	LastTransitionTime Time `json:"lastTransitionTime"`
}

// HistoryEntry is one line of an object's history.
type HistoryEntry struct {
	At      Time   `json:"at"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Condition returns the condition of type t, or nil.
func (c *Common) Condition(t string) *Condition {
	for i := range c.Conditions {
		if c.Conditions[i].Type == t {
			return &c.Conditions[i]
		}
	}
	return nil
}

// NodesIn returns the statuses of the nodes from the status of an object; nil for kinds without nodes.
func NodesIn(s Status) *NodeStatuses {
	if t, ok := s.(interface{ nodeStatuses() *NodeStatuses }); ok {
		return t.nodeStatuses()
	}
	return nil
}

// Progress counts nodes.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// String is done/total.
func (p Progress) String() string { return fmt.Sprintf("%d/%d", p.Done, p.Total) }

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

	ID string // of ClarificationRequests
}

// BriefOf sums up a status.
func BriefOf(s Status) Brief {
	b := BriefWithoutNodes(s)
	if dag, ok := s.(*DAGStatus); ok {
		for _, n := range dag.Nodes.All() {
			if n.State == NodeBlocked {
				b.Blocked = true
				break
			}
		}
	}
	return b
}

// BriefWithoutNodes is BriefOf, but without a look at each node: Blocked is false.
func BriefWithoutNodes(s Status) Brief {
	c := s.Base()
	b := Brief{Phase: c.Phase, ObservedDigest: c.ObservedDigest}
	if ready := c.Condition(Ready); ready != nil {
		b.Ready = ready.Status
	}
	if stalled := c.Condition(Stalled); stalled != nil {
		b.Stalled, b.StalledReason = stalled.Status, stalled.Reason
	}
	switch s := s.(type) {
	case *DAGStatus:
		b.Progress, b.Running, b.FinishedAt = s.Progress, s.Running, s.FinishedAt
	case *ClarificationRequestStatus:
		b.ID = s.ID
	}
	return b
}
