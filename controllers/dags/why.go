package dags

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/admission"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// why names the nodes that keep a DAG from being done, and describes what its session waits for.
func why(e *state.Entry, t *state.Tree) []string {
	var out []string
	if st, ok := e.Status().(*schemas.DAGStatus); ok {
		out = whyNodes(e, st, placesOf(e, t))
	}
	return append(out, whySession(e, t)...)
}

// whySession says what a DAG's session waits for.
func whySession(e *state.Entry, t *state.Tree) []string {
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if spec == nil {
		return nil
	}
	s := t.Entry(schemas.SessionKind.Ref(spec.Session))
	if s == nil || !s.HasStatus() || s.Status().Base().Phase == schemas.SessionActive {
		return nil
	}
	c := s.Status().Base().Condition(schemas.Ready)
	if c == nil || s.Brief().Phase == schemas.SessionFailed {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s: %s", s.Ref, s.Brief().Phase, c.Message)}
}

// whyNodes lists the nodes that keep the DAG from being done, the most telling first, at most ten.
func whyNodes(e *state.Entry, st *schemas.DAGStatus, waits *places) []string {
	const most = 10
	order := []string{schemas.NodeFailed, schemas.NodeBlocked, schemas.NodeRunning, schemas.NodeQueued,
		schemas.NodeCancelled}
	var out []string
	for _, want := range order {
		for _, layer := range st.Layers {
			for _, name := range layer {
				if n := st.Nodes.Of(name); n.State == want {
					out = append(out, whyNode(name, waits.held(name, n))+waits.since(name, n))
				}
			}
		}
	}
	if n := len(out) - most; n > 0 {
		out = append(slices.Clip(out[:most]), "and "+schemas.Count(n, "node")+" more")
	}
	return out
}

func whyNode(name string, n schemas.NodeStatus) string {
	line := fmt.Sprintf("%s is %s", name, n.State)
	if n.Message != "" {
		line += ": " + n.Message
	}
	if !n.RetryAt.IsZero() {
		line += " at " + n.RetryAt.Format(time.RFC3339)
	}
	return line
}

// places says how the nodes of a DAG wait for their places.
type places struct {
	spec    *schemas.DAGSpec
	session *schemas.SessionSpec
	ageing  time.Duration
	tree    *state.Tree
	touched *Touching // nil until it is asked for
}

func placesOf(e *state.Entry, t *state.Tree) *places {
	p := &places{spec: schemas.SpecAs[*schemas.DAGSpec](e.Object), ageing: t.Settings().Limits.Ageing.Std(), tree: t}
	if p.spec != nil {
		p.session = state.SpecOf[*schemas.SessionSpec](t.Entry(schemas.SessionKind.Ref(p.spec.Session)))
	}
	return p
}

// since says since when a node waits for a place, in which lane, and when it is in a higher one; "" for one that waits for none.
func (p *places) since(name string, n schemas.NodeStatus) string {
	if n.State != schemas.NodeQueued || n.QueuedAt.IsZero() || p.spec == nil || p.session == nil {
		return ""
	}
	rank := p.rank(name)
	text := fmt.Sprintf(", since %s in lane %s", n.QueuedAt.Format(time.RFC3339), schemas.Priorities()[rank])
	if high := schemas.High.Rank(); p.ageing > 0 && rank > high {
		at := n.QueuedAt.Add(time.Duration(rank-high) * p.ageing)
		text += fmt.Sprintf(", a lane higher each %s, in high from %s", schemas.Duration(p.ageing), at.Format(time.RFC3339))
	}
	return text
}

// held is the status of a node, with the work that holds what it touches in its message.
func (p *places) held(name string, n schemas.NodeStatus) schemas.NodeStatus {
	if n.Reason != settle.ReasonWaitsForPlace || p.spec == nil {
		return n
	}
	if p.touched == nil {
		p.touched = TouchingIn(p.tree)
	}
	if node := p.spec.Node(name); node != nil {
		n.Message = cmp.Or(p.touched.Why(node, n), n.Message)
	}
	return n
}

// rank is that of a node's priority, else of the session's.
func (p *places) rank(name string) int {
	if node := p.spec.Node(name); node != nil {
		return rankOf(node, p.session)
	}
	return p.session.Priority.Rank()
}

// LanesOf says how many nodes of a DAG wait for places in which lanes now, the highest first; "" for none.
func LanesOf(e *state.Entry, t *state.Tree, now time.Time) string {
	p := placesOf(e, t)
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok || p.spec == nil || p.session == nil {
		return ""
	}
	lanes := schemas.Priorities()
	count := make([]int, len(lanes))
	for name, n := range st.Nodes.All() {
		if n.State == schemas.NodeQueued {
			count[admission.Lane(&settle.Effect{Rank: p.rank(name), QueuedAt: n.QueuedAt, Ageing: p.ageing}, now)]++
		}
	}
	var out []string
	for lane, n := range count {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, lanes[lane]))
		}
	}
	return strings.Join(out, ", ")
}

// rankOf is the rank of the priority of a node, else of its session.
func rankOf(n *schemas.Node, s *schemas.SessionSpec) int {
	return cmp.Or(n.Priority, s.Priority).Rank()
}

// whyRun explains why a node has to run: which part of its key changed, or which node runs first.
func whyRun(n *schemas.Node, s schemas.NodeStatus, was *schemas.NodeStatuses, runs map[string]bool,
	now *schemas.NodeStatuses, retries int) string {
	old := was.Of(n.Name)
	why := ""
	switch {
	case old.Key == "":
		why = "never ran"
	case old.Generation != s.Generation:
		why = "retried by an action"
	case old.Key == s.Key && strings.HasPrefix(s.Verb, verbAgain):
		why = "retried by an action, without what depends on it"
	case old.Key == s.Key && s.Reason == settle.ReasonOutputsMissing:
		why = s.Message
	case old.Key == s.Key && old.State == schemas.NodeSucceeded:
		why = "runs again: outputs of its success are not here"
	case old.Key == s.Key && s.Attempts > 0:
		why = fmt.Sprintf("retry %d of %d", s.Attempts, retries)
	case old.Key == s.Key:
		why = "has not run yet"
	case old.Inputs != s.Inputs:
		why = "inputs changed"
	case old.Reason == settle.ReasonToolUnknown:
		why = "has not run yet"
	case changedTool(old.Tools, s.Tools) != "":
		why = changedTool(old.Tools, s.Tools)
	default:
		why = whyKey(n, was, now)
	}
	if !s.RetryAt.IsZero() {
		return why + "; the next attempt is due at " + s.RetryAt.Format(time.RFC3339)
	}
	for _, need := range n.Needs {
		switch {
		case !runs[need]:
		case why == changedNeed(need):
			return why + " and runs first"
		default:
			return why + "; needs " + need + ", which runs first"
		}
	}
	return why
}

func changedNeed(need string) string { return "needs " + need + ", which changed" }

// whyKey finds what changed a key where neither the generation nor the inputs did.
func whyKey(n *schemas.Node, was, now *schemas.NodeStatuses) string {
	for _, need := range n.Needs {
		if was.Of(need).Key != now.Of(need).Key {
			return changedNeed(need)
		}
	}
	if n.Agent != "" {
		return "definition or agent changed"
	}
	return "definition changed"
}
