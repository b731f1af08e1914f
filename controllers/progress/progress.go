// Package progress follows a run for its display: running, waiting and finished nodes, the people that it waits for, and
// the estimated remaining time. It is a fold over the reports of the performer and the trees after each turn, and reads
// no clock.
package progress

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/settle"
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
	Step              string        // that verifies or lands the work of the node; "" for its work
	Held              string        // the work it waits for, which touches the same files; "": none
	Asks              string        // what its agent asks a person to allow, while it runs; "": nothing
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
	// Verdict is that of a verification: "Passed", "Failed" or "Unknown"; "" for all else.
	Verdict string
}

// Ended reports whether the event ended an attempt, and so says how long it took.
func (e Event) Ended() bool { return e.Took > 0 }

// Tracker follows one run. CPUs is used if limits.concurrentTasks is 0. It is not safe for concurrent use.
type Tracker struct {
	CPUs int

	tree    *state.Tree
	started map[string]string // the steps of started effects that have not ended, by key
	failed  []failure         // not known yet whether another attempt follows
	since   map[nodeID]Node   // reports after tree was decided
	others  map[nodeID]Node   // of owners that are not DAGs
	sum     time.Duration     // of the successes so far
	count   int               // of them
	guess   time.Duration     // about their mean
	touched *dags.Touching    // of tree; nil until asked for
	board   board
}

func verdict(o checks.Outcome) string {
	switch o {
	case checks.Passed:
		return "Passed"
	case checks.Failed:
		return "Failed"
	}
	return "Unknown"
}

type nodeID struct{ owner, name string }

// failure is an event that waits for the decision that follows from it.
type failure struct {
	event Event
	key   string // of the node
}

// Report applies one report of the performer and returns the events that can be shown at once.
func (t *Tracker) Report(r settle.Report) []Event {
	if r.Kind == settle.Progressed {
		return nil
	}
	e := Event{At: r.At, Node: nodeOf(r.Key)}
	switch r.Kind {
	case settle.Started:
		if t.started == nil {
			t.started = map[string]string{}
		}
		t.started[r.Key] = r.Step
		e.State, e.Since, e.Step = schemas.NodeRunning, r.At, r.Step
	case settle.Finished:
		e.State, e.Took, e.Step = r.Run.Outcome, ran(r.Run), r.Run.Part()
		switch {
		case r.Run.Verifies != "" && e.State == schemas.OutcomeSucceeded:
			found := checks.EvidenceOf(r.Run)
			e.Verdict, e.Message = verdict(found.Outcome), found.Summary
		case e.State != schemas.OutcomeSucceeded, !r.Run.IsWork():
			e.Message = r.Run.Message
		default:
			t.sum += e.Took
			t.count++
		}
	default:
		step, ran := t.started[r.Key]
		if !ran && r.Kind != settle.Held {
			return nil // its start was not reported; Broken ones are reported at the end of the run
		}
		e.State, e.Step, e.Message = schemas.NodeQueued, step, r.Why
		if r.Err != nil {
			e.Message = r.Err.Error()
		}
	}
	if r.Kind != settle.Started {
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

// Tree sets the tree of the tracker after a turn, and returns the events of failed attempts, which it can resolve now, and of agents
// that wait for a permission. These have no time. The tree includes all reports so far.
func (t *Tracker) Tree(tree *state.Tree) []Event {
	asks := t.asking(tree)
	t.tree = tree
	clear(t.since)
	return append(t.Flush(), asks...)
}

// asking returns an event for each permission that agents at work have begun to wait for since the tree before.
func (t *Tracker) asking(tree *state.Tree) (out []Event) {
	if t.tree == nil || tree == nil || !slices.ContainsFunc(tree.Entries(schemas.AgentKind.Name), waits) {
		return nil
	}
	for was, is := range tree.Since(t.tree, schemas.DAGKind.Name) {
		if is == nil {
			continue
		}
		var before *schemas.NodeStatuses
		if was != nil {
			before = schemas.NodesIn(was.Status())
		}
		for name, n := range schemas.NodesIn(is.Status()).All() {
			if asked := asks(n); asked != "" && asked != asks(before.Find(name)) {
				out = append(out, Event{Node: Node{Owner: is.Ref.String(), Name: name, State: settle.ReasonWaitsForPermission, Message: asked}})
			}
		}
	}
	return out
}

// waits reports whether an agent waits for a permission.
func waits(agent *state.Entry) bool {
	st, ok := agent.Status().(*schemas.AgentStatus)
	if !ok {
		return false
	}
	ready := st.Condition(schemas.Ready)
	return ready != nil && ready.Reason == settle.ReasonWaitsForPermission
}

// asks is what the agent of a node asks a person to allow while it works; "": nothing. The node may be nil.
func asks(n *schemas.NodeStatus) string {
	if n == nil || n.State != schemas.NodeRunning || n.Reason != settle.ReasonWaitsForPermission {
		return ""
	}
	return n.Message
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
	n := st.Nodes.Of(e.Name)
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

// dagPrefix begins the references of DAGs.
const dagPrefix = "dag/"

// Reset deletes the DAGs from the tracker's board that have no running and no queued nodes. They were reported.
func (t *Tracker) Reset() {
	t.refresh()
	maps.DeleteFunc(t.board.play, func(_ string, d *dag) bool { return d.running == 0 && d.queued == 0 })
	t.board.order = nil
	maps.DeleteFunc(t.others, func(_ nodeID, n Node) bool { return n.State != schemas.NodeRunning })
}

// View tells how the run stands now, with at most rows nodes.
func (t *Tracker) View(now time.Time, rows int) View {
	t.refresh()
	var v View
	var shown []Node
	for _, d := range t.board.sorted() {
		v.add(d.tally)
		if d.running+d.queued+d.waiting == 0 {
			continue
		}
		for i, state := range d.states {
			n := d.nodes[i]
			if n.Held = d.held(i, t.touching); state == schemas.NodeRunning || state == schemas.NodeBlocked || !n.Due.IsZero() || n.Held != "" {
				shown = append(shown, n)
			}
		}
	}
	shown = t.overlay(&v, shown)
	t.estimate(&v, now)
	slices.SortStableFunc(shown, func(a, b Node) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Since.Compare(b.Since), a.Due.Compare(b.Due),
			cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name))
	})
	v.Nodes = shown[:min(rows, len(shown))]
	v.Hidden = len(shown) - len(v.Nodes)
	return v
}

// overlay applies the reports since the last tree to the nodes of that tree.
func (t *Tracker) overlay(v *View, shown []Node) []Node {
	for _, n := range t.others {
		v.Total++
		switch n.State {
		case schemas.NodeRunning:
			v.Running++
			shown = append(shown, n)
		case schemas.NodeQueued:
			v.Queued++
		default:
			v.Done++
		}
	}
	for id, n := range t.since {
		d := t.board.play[strings.TrimPrefix(id.owner, dagPrefix)]
		if d == nil {
			continue
		}
		i := slices.IndexFunc(d.nodes, func(n Node) bool { return n.Name == id.name })
		if i < 0 || d.states[i] == n.State {
			continue
		}
		was, is := count(d.states[i]), count(n.State)
		v.add(tally{is.done - was.done, 0, is.running - was.running, is.queued - was.queued, is.waiting - was.waiting, 0})
		shown = slices.DeleteFunc(shown, func(n Node) bool { return n.Owner == id.owner && n.Name == id.name })
		if n.State == schemas.NodeRunning {
			n.Attempt, n.Attempts, n.Usual = max(d.nodes[i].Attempt, 1), d.nodes[i].Attempts, d.nodes[i].Usual
			shown = append(shown, n)
		}
	}
	return shown
}

// refresh brings the board up to date with the tree.
func (t *Tracker) refresh() {
	b := &t.board
	if b.play == nil {
		b.play = map[string]*dag{}
	}
	if t.tree == nil {
		return
	}
	if b.seen == nil {
		b.seen = t.tree
		for _, e := range t.tree.Active(schemas.DAGKind.Name) {
			b.update(e)
		}
	}
	for was, is := range t.tree.Since(b.seen, schemas.DAGKind.Name) {
		if is == nil {
			b.drop(was.Name)
		} else {
			b.update(is)
		}
	}
	if b.seen != t.tree {
		t.touched = nil
	}
	b.seen = t.tree
}

// touching says which work holds what nodes touch.
func (t *Tracker) touching() *dags.Touching {
	if t.touched == nil {
		t.touched = dags.TouchingIn(t.tree)
	}
	return t.touched
}
