package dags

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// ClassWaiting counts the nodes that wait, for people or for those that do.
func (n *nodeCounts) waiting() int { return n.pending + n.blocked }

func (f *fold) counts() nodeCounts {
	if f.goesOn != nil {
		return f.goesOn.counts
	}
	n := nodeCounts{firstBlocked: -1, firstFailed: -1}
	for _, i := range f.p.Order {
		s := f.next[i]
		switch s.State {
		case schemas.NodeSucceeded:
			n.done++
		case schemas.NodeSkipped:
			n.done++
			if s.Reason == settle.ReasonNeedCancelled {
				n.cancelled++
			}
		case schemas.NodeRunning:
			n.running++
		case schemas.NodeQueued:
			n.queued++
		case schemas.NodePending:
			n.pending++
		case schemas.NodeBlocked:
			n.blocked++
			n.firstBlocked = first(n.firstBlocked, i)
		case schemas.NodeFailed:
			switch {
			case f.spared(i):
				n.done++
				continue
			case s.Reason == settle.ReasonNeedFailed:
				continue // one that only joins others, which are counted
			}
			n.failed++
			n.firstFailed = first(n.firstFailed, i)
		case schemas.NodeCancelled:
			n.cancelled++
		}
		n.timedOut = n.timedOut || s.Reason == settle.ReasonDAGTimeout
	}
	return n
}

func first(have int, i int32) int {
	if have >= 0 {
		return have
	}
	return int(i)
}

// Judgement is the result of a decision about an object as a whole.
func (f *fold) judgement(n nodeCounts) settle.Judgement {
	if j, ok := f.scheduled(n); ok {
		return j
	}
	switch {
	case n.running+n.queued+n.pending+n.blocked == 0:
		return f.outcome(n)
	case n.running > 0:
		return f.progress(n, schemas.DAGRunning)
	case !f.gate.Open:
		return settle.Judgement{Phase: f.closedPhase(), Class: settle.ClassWaiting, Reason: f.gate.Reason, Message: f.gate.Message}
	case n.queued == 0 && n.blocked > 0:
		s, name := f.next[n.firstBlocked], f.p.Spec.Nodes[n.firstBlocked].Name
		j := settle.Judgement{Phase: schemas.DAGPaused, Class: settle.ClassWaiting, Reason: s.Reason,
			Message: name + schemas.AndOthers(n.blocked-1) + ": " + s.Message}
		if n.failed > 0 { // which must not be hidden by what waits
			waits := j.Message
			j = f.outcome(n)
			j.Message += "; " + waits
		}
		return j
	case f.start.IsZero():
		return f.progress(n, schemas.DAGPending)
	}
	return f.progress(n, schemas.DAGRunning)
}

// scheduled is the judgement over a DAG of which all that is left waits for the schedule.
func (f *fold) scheduled(n nodeCounts) (j settle.Judgement, ok bool) {
	if f.timed == nil || !f.timed.Waits || !f.gate.Open || n.running+n.queued+n.blocked > 0 || n.pending == 0 {
		return j, false
	}
	f.closeSchedule(true)
	message := "no time of the schedule is left"
	if !f.timed.Due.IsZero() {
		message = "is due since " + f.timed.Due.Format(time.RFC3339)
	} else if !f.timed.Next.IsZero() {
		message = fmt.Sprintf("runs at %s; reconcile run %s runs it now", f.timed.Next.Format(time.RFC3339), f.Ref)
	}
	return settle.Judgement{Phase: schemas.DAGPending, Class: settle.ClassWaiting, Reason: settle.ReasonScheduled, Message: message}, true
}

// closedPhase is the phase of a DAG that may not start anything: Pending where its session waits too, else Paused.
func (f *fold) closedPhase() string {
	switch f.gate.Reason {
	case settle.ReasonWaitsForGroup, settle.ReasonSessionLimit, settle.ReasonCompleted, settle.ReasonInvalidTransition, settle.ReasonSessionInvalid, settle.ReasonSessionMissing:
		if f.start.IsZero() {
			return schemas.DAGPending
		}
	}
	return schemas.DAGPaused
}

func (f *fold) progress(n nodeCounts, phase string) settle.Judgement {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d nodes done", n.done, len(f.next))
	for _, part := range []struct {
		n    int
		word string
	}{{n.running, "running"}, {n.queued, "queued"}, {n.blocked, "blocked"}, {n.failed, "failed"}} {
		if part.n > 0 {
			fmt.Fprintf(&b, ", %d %s", part.n, part.word)
		}
	}
	if n.running == 0 && n.queued > 0 {
		b.WriteString(f.limitMessage(n.queued))
	}
	if n.running+n.queued == 0 {
		b.WriteString(f.askMessage())
	}
	return settle.Judgement{Phase: phase, Class: settle.ClassWorking, Reason: phase, Message: b.String()}
}

// askMessage says which DAG a change waits for, in which an agent is asked which tools to use: a run of this DAG alone ends without it. "": none does.
func (f *fold) askMessage() string {
	for i, s := range f.next {
		if asks := f.recs[i].verify.asks; s.State == schemas.NodePending && asks != "" {
			return fmt.Sprintf("; %s waits for %s: run reconcile", f.p.Spec.Nodes[i].Name, asks)
		}
	}
	return ""
}

// limitMessage says until when the queued nodes wait, if all of them wait for the ends of rate limits; else "".
func (f *fold) limitMessage(queued int) string {
	at := -1
	for i, s := range f.next {
		switch {
		case s.State != schemas.NodeQueued:
		case s.Reason != settle.ReasonRateLimited:
			return ""
		case at < 0 || s.RetryAt.Before(f.next[at].RetryAt.Time):
			at = i
		}
	}
	wait := "waits"
	if queued > 1 {
		wait = "wait"
	}
	return fmt.Sprintf("; %s%s %s for the end of a rate limit at %s, and a run goes on then, or --watch", f.p.Spec.Nodes[at].Name,
		schemas.AndOthers(queued-1), wait, f.next[at].RetryAt.Format(time.RFC3339))
}

// outcome is the phase of a DAG in which every node is at its end.
func (f *fold) outcome(n nodeCounts) settle.Judgement {
	switch {
	case n.failed > 0:
		s, name := f.next[n.firstFailed], f.p.Spec.Nodes[n.firstFailed].Name
		msg := name + schemas.AndOthers(n.failed-1) + " failed"
		if s.Message != "" {
			msg += ": " + s.Message
		}
		return settle.Judgement{Phase: schemas.DAGFailed, Class: settle.ClassFailed, Reason: s.Reason, Message: msg}
	case n.timedOut:
		return settle.Judgement{Phase: schemas.DAGFailed, Class: settle.ClassFailed, Reason: settle.ReasonDAGTimeout,
			Message: fmt.Sprintf("the timeout of %s is over", f.p.Spec.Policy.Timeout)}
	case n.cancelled > 0:
		return settle.Judgement{Phase: schemas.DAGCancelled, Class: settle.ClassWaiting, Reason: settle.ReasonCancelled,
			Message: fmt.Sprintf("%d of %d nodes were cancelled; retry runs them", n.cancelled, len(f.next))}
	}
	return settle.Judgement{Phase: schemas.DAGSucceeded, Class: settle.ClassReady, Reason: settle.ReasonSucceeded,
		Message: fmt.Sprintf("%d of %d nodes done", n.done, len(f.next))}
}

// same is reflect.DeepEqual for the status that can be large; results are compared as JSON.
func same(x, y schemas.Status) bool {
	a, ok := x.(*schemas.DAGStatus)
	b, ok2 := y.(*schemas.DAGStatus)
	if !ok || !ok2 {
		return false
	}
	if a.Progress != b.Progress || a.Running != b.Running || a.Session != b.Session ||
		a.Hold != b.Hold || !sameValue(a.Schedule, b.Schedule) || !sameValue(a.Group, b.Group) || a.IssueStatus != b.IssueStatus || a.StartedAt != b.StartedAt || a.FinishedAt != b.FinishedAt ||
		!reflect.DeepEqual(a.Common, b.Common) || !slices.EqualFunc(a.Actions, b.Actions, sameAction) || !slices.Equal(a.Notices, b.Notices) || !slices.Equal(a.Active, b.Active) || !slices.Equal(a.Advised, b.Advised) ||
		!slices.EqualFunc(a.Layers, b.Layers, slices.Equal) {
		return false
	}
	return a.Nodes.Same(b.Nodes, sameNode)
}

// sameAction compares two actions by value, also behind their pointers.
func sameAction(a, b schemas.AppliedAction) bool {
	if a.Delivery != nil && b.Delivery != nil && *a.Delivery == *b.Delivery {
		a.Delivery = b.Delivery
	}
	return a == b
}

// sameNode compares two states. Results are compared as JSON: files hold them indented, records do not.
func sameNode(a, b *schemas.NodeStatus) bool {
	return a.State == b.State && a.Key == b.Key && a.Task == b.Task && a.Generation == b.Generation && a.Inputs == b.Inputs && maps.Equal(a.Tools, b.Tools) && a.Round == b.Round &&
		a.Verb == b.Verb && a.Reason == b.Reason && a.Message == b.Message && a.Attempts == b.Attempts &&
		a.QueuedAt == b.QueuedAt && a.StartedAt == b.StartedAt && a.FinishedAt == b.FinishedAt && a.RetryAt == b.RetryAt &&
		sameValue(a.ExitCode, b.ExitCode) && a.Output == b.Output && a.Log == b.Log && sameJSON(a.Result, b.Result) && sameValue(a.Landed, b.Landed) && reflect.DeepEqual(a.Pipeline, b.Pipeline) && reflect.DeepEqual(a.Handoff, b.Handoff) &&
		slices.EqualFunc(a.Approvals, b.Approvals, sameApproval)
}

func sameApproval(a, b schemas.Approval) bool {
	return a.Action == b.Action && a.By == b.By && a.Proof == b.Proof && a.At == b.At && a.Digest == b.Digest && sameJSON(a.Answer, b.Answer)
}

// sameValue compares two that may be nil.
func sameValue[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
