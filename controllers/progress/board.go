package progress

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// View is the state of a run at one moment. It counts the nodes of the DAGs that have work, or had some since Reset.
type View struct {
	Done, Total                      int
	Running, Queued, Waiting, Failed int
	// Left is how long the rest may take, by what its nodes took before; 0: not known. Least says that some of the rest is
	// of unknown length.
	Left  time.Duration
	Least bool
	// Nodes are the running ones, the longest first, then those that are retried soon, then those that wait for a person,
	// each with its message. There are Hidden more.
	Nodes  []Node
	Hidden int
}

// Idle reports whether the view has no running and no queued nodes: nothing can run without an action of a person.
func (v *View) Idle() bool { return v.Running == 0 && v.Queued == 0 }

// board is what View knows of the tree that it has seen last. Looking at the next one costs as much as what differs.
type board struct {
	seen  *state.Tree
	play  map[string]*dag // by name: those that have work, or had some
	order []*dag          // sorted by name; nil: to be made
}

// dag is one DAG in play.
type dag struct {
	entry  *state.Entry
	object *schemas.Object // the source of plan
	plan   []plannedNode
	tasks  []int32 // each node after its dependencies
	nodes  []Node  // by position, as in the status
	states []string
	tally
	rest rest
}

// plannedNode is the data of a node from a spec and earlier records.
type plannedNode struct {
	needs    []int32
	attempts int
	usual    time.Duration
}

// tally counts nodes by state.
type tally struct{ done, total, running, queued, waiting, failed int }

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
			if state == schemas.NodeRunning || state == schemas.NodeBlocked || !d.nodes[i].Due.IsZero() {
				shown = append(shown, d.nodes[i])
			}
		}
	}
	shown = t.overlay(&v, shown)
	t.estimate(&v, now)
	slices.SortStableFunc(shown, func(a, b Node) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Since.Compare(b.Since), a.Due.Compare(b.Due),
			cmp.Compare(a.Owner, b.Owner))
	})
	v.Nodes = shown[:min(rows, len(shown))]
	v.Hidden = len(shown) - len(v.Nodes)
	return v
}

func (v *View) add(c tally) {
	v.Done += c.done
	v.Total += c.total
	v.Running += c.running
	v.Queued += c.queued
	v.Waiting += c.waiting
	v.Failed += c.failed
}

// rank orders nodes: running, to be retried, waiting.
func rank(n Node) int {
	switch {
	case n.State == schemas.NodeRunning:
		return 0
	case !n.Due.IsZero():
		return 1
	}
	return 2
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

// count is the tally of one node in a state.
func count(state string) tally {
	c := tally{total: 1}
	switch state {
	case schemas.NodeSucceeded, schemas.NodeSkipped:
		c.done++
	case schemas.NodeRunning:
		c.running++
	case schemas.NodeQueued:
		c.queued++
	case schemas.NodeBlocked:
		c.waiting++
	case schemas.NodeFailed:
		c.failed++
	}
	return c
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
	b.seen = t.tree
}

func (b *board) drop(name string) {
	if b.play[name] != nil {
		delete(b.play, name)
		b.order = nil
	}
}

func (b *board) sorted() []*dag {
	if b.order == nil {
		for _, name := range slices.Sorted(maps.Keys(b.play)) {
			b.order = append(b.order, b.play[name])
		}
	}
	return b.order
}

// update applies the change of one DAG.
func (b *board) update(e *state.Entry) {
	d := b.play[e.Name]
	st, _ := e.Status().(*schemas.DAGStatus)
	if d != nil && st != nil && d.entry.Status() == e.Status() && d.object == e.Object {
		d.entry = e
		return
	}
	if st == nil || e.Object == nil || d == nil && !hasWork(st) {
		b.drop(e.Name)
		return
	}
	if d == nil {
		d = &dag{}
		b.play[e.Name], b.order = d, nil
	}
	d.take(e, st)
}

// hasWork reports whether a node runs, or could.
func hasWork(st *schemas.DAGStatus) bool {
	for _, n := range st.Nodes {
		if n.State == schemas.NodeRunning || n.State == schemas.NodeQueued {
			return true
		}
	}
	return false
}

// take reads a status.
func (d *dag) take(e *state.Entry, st *schemas.DAGStatus) {
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if d.entry = e; d.object != e.Object {
		d.object = e.Object
		d.prepare(spec)
	}
	d.tally, d.rest.known = tally{}, false
	for i := range spec.Nodes {
		s := st.Nodes[spec.Nodes[i].Name]
		c := count(s.State)
		d.done, d.total, d.failed = d.done+c.done, d.total+1, d.failed+c.failed
		d.running, d.queued, d.waiting = d.running+c.running, d.queued+c.queued, d.waiting+c.waiting
		n := &d.nodes[i]
		*n = Node{Owner: n.Owner, Name: n.Name, State: s.State, Message: s.Message, Attempt: s.Attempts,
			Attempts: d.plan[i].attempts, Usual: d.plan[i].usual}
		d.states[i] = s.State
		switch s.State {
		case schemas.NodeRunning:
			n.Since = s.StartedAt.Time
		case schemas.NodeQueued:
			n.Attempt++
			n.Due = s.RetryAt.Time
		}
	}
}
