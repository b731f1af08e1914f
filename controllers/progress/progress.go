// Package progress follows a run for its display: running, waiting and finished nodes, the people that it waits for, and
// the estimated remaining time. It is a fold over the reports of the performer and the trees after each turn, and reads
// no clock.
package progress

import (
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Node is one node of a run as a person sees it.
type Node struct {
	Owner string // "dag/checks"
	Name  string
	// State is the node's state, or the outcome of the attempt that an event is about.
	State   string
	Message string
	// Attempt counts from 1; Attempts is how many there may be. 0: not known.
	Attempt, Attempts int
	Since             time.Time     // when the attempt that runs started; zero: none runs
	Due               time.Time     // when the next attempt starts; zero: none is due
	Took              time.Duration // of the attempt that ended
	Usual             time.Duration // the time of its last success; 0 if none is on record
}

// Event is one thing that happened to a node.
type Event struct {
	Node
	At time.Time
	// Again says that the attempt failed and another one follows.
	Again bool
	// Final reports that the node failed and is not retried automatically; Output is then the end of its output, and Log
	// the path of the whole output.
	Final       bool
	Output, Log string
}

// Ended reports whether the event ended an attempt, and so says how long it took.
func (e Event) Ended() bool { return e.Took > 0 }

// Tracker follows one run. CPUs is used if limits.concurrentTasks is 0. It is not safe for concurrent use.
type Tracker struct {
	CPUs int

	tree    *state.Tree
	started map[string]time.Time // by key, of started nodes that have not ended
	failed  []failure            // not known yet whether another attempt follows
	since   map[nodeID]Node      // reports after tree was decided
	others  map[nodeID]Node      // of owners that are not DAGs
	sum     time.Duration        // of the successes so far
	count   int                  // of them
	guess   time.Duration        // about their mean
	board   board
}

type nodeID struct{ owner, name string }

// failure is an event that waits for the decision that follows from it.
type failure struct {
	event Event
	key   string // of the node
}

// Report applies one report of the performer and returns the events that can be shown at once.
func (t *Tracker) Report(r controllers.Report) []Event {
	e := Event{At: r.At, Node: nodeOf(r.Key)}
	switch r.Kind {
	case controllers.Started:
		if t.started == nil {
			t.started = map[string]time.Time{}
		}
		t.started[r.Key] = r.At
		e.State, e.Since = schemas.NodeRunning, r.At
	case controllers.Finished:
		e.State, e.Took = r.Run.Outcome, ran(r.Run)
		if e.State == schemas.OutcomeSucceeded {
			t.sum += e.Took
			t.count++
		} else {
			e.Message = r.Run.Message
		}
	default:
		if _, ran := t.started[r.Key]; !ran && r.Kind != controllers.Held {
			return nil // its start was not reported; Broken ones are reported at the end of the run
		}
		e.State, e.Message = schemas.NodeQueued, r.Why
		if r.Err != nil {
			e.Message = r.Err.Error()
		}
	}
	if r.Kind != controllers.Started {
		delete(t.started, r.Key)
	}
	t.note(e.Node)
	if e.State != schemas.OutcomeFailed && e.State != schemas.OutcomeTimedOut {
		return []Event{e}
	}
	e.Output, e.Log = r.Run.Output, r.Run.Log
	t.failed = append(t.failed, failure{e, r.Run.NodeKey})
	return nil
}

// note keeps the reported state of a node until it is in the next tree, or for good if no DAG owns it.
func (t *Tracker) note(n Node) {
	if t.since == nil {
		t.since, t.others = map[nodeID]Node{}, map[nodeID]Node{}
	}
	id := nodeID{n.Owner, n.Name}
	if strings.HasPrefix(n.Owner, dagPrefix) {
		t.since[id] = n
	} else {
		t.others[id] = n
	}
}

// Tree sets the tree of the tracker after a turn, and returns the events of failed attempts, which it can resolve now.
// The tree includes all reports so far.
func (t *Tracker) Tree(tree *state.Tree) []Event {
	t.tree = tree
	clear(t.since)
	return t.Flush()
}

// Flush resolves the failed attempts of the tracker and returns their events, without waiting for a tree that shows the
// consequences.
func (t *Tracker) Flush() []Event {
	var out []Event
	for _, f := range t.failed {
		out = append(out, t.resolve(f))
	}
	t.failed = nil
	return out
}

// resolve tells whether a failure was the last one.
func (t *Tracker) resolve(f failure) Event {
	e := f.event
	dag, st := t.dag(e.Owner)
	if st == nil {
		e.Final = !strings.HasPrefix(e.Owner, dagPrefix)
		return e
	}
	n := st.Nodes[e.Name]
	if n.Key != f.key {
		return e // the node was changed or removed meanwhile
	}
	e.Attempt = n.Attempts
	if spec := schemas.SpecAs[*schemas.DAGSpec](dag.Object); spec != nil {
		for i := range spec.Nodes {
			if spec.Nodes[i].Name == e.Name {
				e.Attempts = attempts(spec, i)
			}
		}
	}
	switch n.State {
	case schemas.NodeQueued:
		e.Again, e.Due = true, n.RetryAt.Time
	case schemas.NodeRunning:
		e.Again, e.Attempt = true, n.Attempts-1
	default:
		e.Final = true
	}
	return e
}

// dag finds a DAG by its reference, and its status.
func (t *Tracker) dag(ref string) (*state.Entry, *schemas.DAGStatus) {
	name, ok := strings.CutPrefix(ref, dagPrefix)
	if !ok || t.tree == nil {
		return nil, nil
	}
	e := t.tree.Entry(schemas.Ref{Kind: schemas.DAGKind.Name, Name: name})
	if e == nil {
		return nil, nil
	}
	st, _ := e.Status().(*schemas.DAGStatus)
	return e, st
}

// attempts is how many attempts node i of a DAG may have.
func attempts(spec *schemas.DAGSpec, i int) int { return spec.Nodes[i].RetryOr(spec.Policy).Limit + 1 }

// ran is how long a run took. Records count milliseconds, so what took less counts as one.
func ran(r *schemas.Run) time.Duration {
	if r.StartedAt.IsZero() {
		return 0
	}
	return max(r.FinishedAt.Sub(r.StartedAt.Time), time.Millisecond)
}

// dagPrefix begins the references of DAGs.
const dagPrefix = "dag/"

// nodeOf reads a key: "dags/checks/build-0123456789abcdef-1" is build of dag/checks.
func nodeOf(key string) Node {
	parts := strings.SplitN(key, "/", 3)
	if len(parts) != 3 {
		return Node{Owner: key}
	}
	n := Node{Owner: parts[0] + "/" + parts[1], Name: parts[2]}
	if k, ok := controllers.Schemas().Find(parts[0]); ok {
		n.Owner = k.Singular() + "/" + parts[1]
	}
	for range 2 {
		n.Name = n.Name[:max(strings.LastIndexByte(n.Name, '-'), 0)]
	}
	return n
}
